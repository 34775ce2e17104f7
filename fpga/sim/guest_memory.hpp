/// @file
/// A QEMU guest's memory as its card sees it.
#pragma once

#include <string>

#include "fpga/model/host_memory.hpp"
#include "fpga/sim/guest_ram.hpp"

namespace rio::sim {

/// Without an IOMMU: bus addresses are guest-physical ones. One thread.
class GuestMemory : public model::HostMemory {
 public:
  explicit GuestMemory(const std::string& ram_path) : ram_(ram_path) {}

  [[nodiscard]] bool find(uint64_t iova, model::HostWindow* out) override;

  /// Lookups that failed; the same address again within a turn counts once.
  [[nodiscard]] uint64_t faults() const { return faults_; }
  [[nodiscard]] uint64_t first_fault() const { return first_fault_; }

  /// To be called before each step.
  virtual void begin_turn() { fault_in_turn_ = false; }

 protected:
  [[nodiscard]] GuestRam& ram() { return ram_; }
  /// Count a lookup that failed. @return false.
  [[nodiscard]] bool fault(uint64_t iova);

 private:
  GuestRam ram_;
  uint64_t faults_ = 0;
  uint64_t first_fault_ = 0;
  uint64_t last_fault_ = 0;
  bool fault_in_turn_ = false;
};

}  // namespace rio::sim
