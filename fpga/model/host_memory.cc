#include "fpga/model/host_memory.hpp"

#include <cerrno>

namespace rio::model {

int DmaTable::add(const HostWindow& window) {
  if (window.len_bytes == 0 || window.iova + window.len_bytes - 1 < window.iova) {
    return -EINVAL;
  }
  const std::lock_guard lock(mutex_);
  const auto next = windows_.upper_bound(window.iova + window.len_bytes - 1);
  if (next != windows_.begin()) {
    const HostWindow& before = std::prev(next)->second;
    if (before.iova + before.len_bytes - 1 >= window.iova) {
      return -EEXIST;
    }
  }
  windows_.emplace(window.iova, window);
  return 0;
}

int DmaTable::remove(uint64_t iova) {
  const std::lock_guard lock(mutex_);
  if (windows_.erase(iova) == 0) {
    return -ENOENT;
  }
  changed();
  return 0;
}

bool DmaTable::find(uint64_t iova, HostWindow* out) {
  const std::lock_guard lock(mutex_);
  const auto next = windows_.upper_bound(iova);
  if (next == windows_.begin() || !std::prev(next)->second.holds(iova, 1)) {
    return false;
  }
  *out = std::prev(next)->second;
  return true;
}

}  // namespace rio::model
