#include "pmd/bus/vfio/range_allocator.hpp"

#include <iterator>

namespace rio::pmd::vfio {

void RangeAllocator::add(uint64_t first, uint64_t len) {
  uint64_t end = len > UINT64_MAX - first ? UINT64_MAX : first + len;
  auto next = free_.lower_bound(first);
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->second == first) {
      before->second = end;
      return;
    }
  }
  free_.emplace(first, end);
}

bool RangeAllocator::allocate(uint64_t len, uint64_t align, uint64_t* first) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const uint64_t begin = it->first;
    const uint64_t end = it->second;
    if (begin > UINT64_MAX - (align - 1)) {
      return false;
    }
    const uint64_t start = (begin + align - 1) & ~(align - 1);
    if (start >= end || end - start < len) {
      continue;
    }
    free_.erase(it);
    if (begin < start) {
      free_.emplace(begin, start);
    }
    if (start + len < end) {
      free_.emplace(start + len, end);
    }
    *first = start;
    return true;
  }
  return false;
}

}  // namespace rio::pmd::vfio
