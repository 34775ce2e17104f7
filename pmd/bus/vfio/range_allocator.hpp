/// @file
/// First-fit allocation of ranges of numbers: bus addresses, or offsets in memory.
#pragma once

#include <cstdint>
#include <map>

namespace rio::pmd::vfio {

/// Hands out pieces of [first, last]. One thread. O(number of free pieces).
class RangeAllocator {
 public:
  /// Add numbers that may be handed out. Ranges must not overlap. @param len at least 1; the range
  /// may end with the last number of 64 bits, which is then left out.
  void add(uint64_t first, uint64_t len);
  /// Allocate a piece. @param len at least 1. @param align a power of two. @return false: there is
  /// no such piece.
  [[nodiscard]] bool allocate(uint64_t len, uint64_t align, uint64_t* first);
  /// Give back exactly a piece that was allocated.
  void free(uint64_t first, uint64_t len) { add(first, len); }

 private:
  std::map<uint64_t, uint64_t> free_;  // first number → one past the last
};

}  // namespace rio::pmd::vfio
