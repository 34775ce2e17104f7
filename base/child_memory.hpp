/// @file
/// Memory that a process shares with other processes, but not with its forked children: a child
/// that used inherited objects would write there in its parent's name.
#pragma once

#include <cstddef>

namespace rio::base {

/// The content that a forked child finds in place of its parent's shared memory.
enum class ChildFinds : unsigned char {
  kZeros,  ///< memory of its own
  kOnes,   ///< memory of its own, all ones: reads like the BAR of a card that is gone
  kCopy,   ///< memory of its own, holding what the parent had last written
};

// Any thread. Control path only.

/// Map shared memory, as mmap() does; forked children find something else there. @param fd stays
/// open until unmap_shared() if `child_finds` is kCopy. @return MAP_FAILED, errno.
[[nodiscard]] void* map_shared(void* at, size_t len_bytes, int protection, int flags, int fd,
                               ChildFinds child_finds);
/// Unmap it, in the parent and in later children. @param at returned by map_shared().
void unmap_shared(void* at);

/// Share the memory with later children after all. @param at returned by map_shared(); the caller
/// unmaps it itself.
void forget_in_child(void* at);

}  // namespace rio::base
