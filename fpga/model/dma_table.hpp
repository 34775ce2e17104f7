/// @file
/// A table of mapped windows: the simplest HostMemory.
#pragma once

#include <map>
#include <mutex>

#include "fpga/model/host_memory.hpp"

namespace rio::model {

/// Thread-safe. Functions return 0 or -errno.
class DmaTable : public HostMemory {
 public:
  /// Add a window. @return 0; -EINVAL: empty or wraps; -EEXIST: overlaps a window.
  [[nodiscard]] int add(const HostWindow& window);
  /// Remove the window that begins at `iova`. The caller keeps the card from stepping meanwhile
  /// (Card::with_lock), and may free the memory afterwards. @return 0; -ENOENT.
  [[nodiscard]] int remove(uint64_t iova);
  [[nodiscard]] bool find(uint64_t iova, HostWindow* out) override;

 private:
  std::mutex mutex_;
  std::map<uint64_t, HostWindow> windows_;
};

}  // namespace rio::model
