/// @file
/// Memory that a program of this machine has shown to its card.
#pragma once

#include <cstdint>
#include <map>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "fpga/model/host_memory.hpp"

namespace rio::cardsim {

/// One thread, which steps the card too: nothing is mapped or unmapped during a step.
class ClientMemory final : public model::HostMemory {
 public:
  static constexpr size_t kWindowsMax = 4096;

  ClientMemory() = default;
  ~ClientMemory() override { clear(); }
  ClientMemory(const ClientMemory&) = delete;
  ClientMemory& operator=(const ClientMemory&) = delete;

  /// Show the card bytes [offset, offset + len) of a memfd at `iova`. Nothing about the arguments
  /// is believed. @return 0; -EINVAL: no multiples of 4096, empty, wraps, beyond the end; -EPERM:
  /// not sealed against shrinking; -ENOTSUP: hugepages, no memfd; -EEXIST: overlaps; -ENOSPC: too
  /// many; -errno of mmap().
  [[nodiscard]] int map(uint64_t iova, uint64_t offset, uint64_t len_bytes, const base::Fd& memfd);
  /// @return 0, or -ENOENT: no window begins there.
  [[nodiscard]] int unmap(uint64_t iova);
  /// No card uses it any more.
  void clear();

  [[nodiscard]] bool find(uint64_t iova, model::HostWindow* out) override;
  void refused(uint64_t iova) override;
  [[nodiscard]] uint64_t faults() const { return faults_; }
  [[nodiscard]] uint64_t first_fault() const { return first_fault_; }

 private:
  struct Shown {
    model::HostWindow window;
    base::Mapping memory;
  };

  std::map<uint64_t, Shown> windows_;  ///< by the iova of their first byte
  uint64_t faults_ = 0;
  uint64_t first_fault_ = 0;
};

}  // namespace rio::cardsim
