/// @file
/// Memory that a process shares with others, and that its forked children must not: a child that
/// goes on with objects which it has inherited would write there in its parent's name.
#pragma once

#include <cstddef>

namespace rio::base {

/// What a forked child finds in a parent's memory.
enum class ChildFinds : unsigned char {
  kZeros,  ///< memory of its own
  kOnes,   ///< memory of its own, all ones: a BAR of a card that is gone
  kCopy,   ///< what the parent had last written, as memory of its own
};

// Any thread. Control path only.

/// mmap() of shared memory; children get something else. @param at as for mmap(). @param fd stays
/// open until unmap_shared() if `child_finds` is kCopy. @return MAP_FAILED, errno.
[[nodiscard]] void* map_shared(void* at, size_t len_bytes, int protection, int flags, int fd,
                               ChildFinds child_finds);
/// @param at of map_shared().
void unmap_shared(void* at);

/// Children share it from now on. @param at of map_shared(), to be unmapped by other means.
void forget_in_child(void* at);

}  // namespace rio::base
