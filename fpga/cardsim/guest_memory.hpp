/// @file
/// The memory of a QEMU guest, in its card's view.
#pragma once

#include <memory>
#include <string>

#include "fpga/cardsim/guest_ram.hpp"
#include "fpga/model/host_memory.hpp"

namespace rio::cardsim {

/// A guest without an IOMMU: bus addresses are guest-physical ones. One thread.
class GuestMemory : public model::HostMemory {
 public:
  explicit GuestMemory(const std::string& ram_path) : ram_path_(ram_path) { forget_guest(); }

  [[nodiscard]] bool find(uint64_t iova, model::HostWindow* out) override;
  void refused(uint64_t iova) override;

  /// Number of refused accesses, and the first refused address.
  [[nodiscard]] uint64_t faults() const { return faults_; }
  [[nodiscard]] uint64_t first_fault() const { return first_fault_; }

  /// Called before each step: find out which memory the guest has unmapped. @param gen_req the
  /// card's word GEN_REQ: a new value means that a driver takes the card over.
  virtual void begin_turn(uint32_t gen_req) { static_cast<void>(gen_req); }
  /// Called between steps: take up or drop the connection to QEMU; does not wait.
  virtual void serve() {}
  /// Whether QEMU was connected and has gone, as far as that can be known.
  [[nodiscard]] virtual bool guest_gone() const { return false; }
  [[nodiscard]] virtual bool guest_here() const { return false; }
  /// The guest has gone, and no card uses its memory: another guest may come.
  virtual void forget_guest();

 protected:
  [[nodiscard]] GuestRam& ram() { return *ram_; }

 private:
  std::string ram_path_;
  std::unique_ptr<GuestRam> ram_;
  uint64_t faults_ = 0;
  uint64_t first_fault_ = 0;
};

}  // namespace rio::cardsim
