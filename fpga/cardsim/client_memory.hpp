/// @file
/// Memory that a program on this machine has shown to its card.
#pragma once

#include <cstdint>
#include <map>

#include "base/fd.hpp"
#include "base/mapping.hpp"
#include "fpga/model/host_memory.hpp"

namespace rio::cardsim {

/// One thread, which also steps the card: nothing is mapped or unmapped during a step.
class ClientMemory final : public model::DmaTable {
 public:
  static constexpr size_t kWindowsMax = 4096;

  /// Show the card bytes [offset, offset + len) of a memfd at `iova`. All arguments are foreign.
  /// @return 0; -EINVAL: no multiples of 4096, empty, wraps, beyond the end; -EPERM: not sealed
  /// against shrinking; -ENOTSUP: hugepages, or not a memfd; -EEXIST: overlaps; -ENOSPC: too many;
  /// -errno of mmap().
  [[nodiscard]] int map(uint64_t iova, uint64_t offset, uint64_t len_bytes, const base::Fd& memfd);
  /// Remove a window. @return 0, or -ENOENT: no window begins there.
  [[nodiscard]] int unmap(uint64_t iova);
  /// Remove all windows. No card uses the memory any more.
  void clear();

 private:
  std::map<uint64_t, base::Mapping> shown_;  ///< by the iova of their first byte
};

}  // namespace rio::cardsim
