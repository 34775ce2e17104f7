/// @file
/// First-fit allocation of ranges of numbers: parts of memory.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

namespace rio::pmd::vfio {

/// Hands out pieces of [first, last]. One thread. O(number of free pieces).
class RangeAllocator {
 public:
  /// Add numbers that may be handed out. Ranges must not overlap. @param len at least 1; the range
  /// may end with the last number of 64 bits, which is then left out.
  void add(uint64_t first, uint64_t len) {
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
  /// Allocate a piece. @param len at least 1. @param align a power of two. @return false: there is
  /// no such piece.
  [[nodiscard]] bool allocate(uint64_t len, uint64_t align, uint64_t* first) {
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
  /// Give back exactly a piece that was allocated.
  void free(uint64_t first, uint64_t len) { add(first, len); }

 private:
  std::map<uint64_t, uint64_t> free_;  // first number → one past the last
};

}  // namespace rio::pmd::vfio
