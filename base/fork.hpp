/// @file
/// Objects of the library in a forked child: the kernel objects behind them are the parent's, so
/// the child must neither use them nor keep them alive. Memory that the parent shares with other
/// processes is replaced in the child, which would write there in its parent's name.
#pragma once

#include <cstddef>

#include "base/fifo.hpp"

namespace rio::base {

/// Runs a function in each child that fork() makes while the object lives, before fork() returns
/// there. Nothing runs in children of vfork(), posix_spawn() and clone(): those end with exec(),
/// which closes descriptors with O_CLOEXEC.
class InChild {
 public:
  /// @param run makes only stores and async-signal-safe system calls, since another thread of the
  /// parent may have held any lock, including the allocator's. Objects run in no particular order.
  using Run = void (*)(void* ctx);

  /// Any thread, control path only; waits for a fork() that is under way.
  /// @param before for an object whose lock a thread of the library takes: it takes that lock in
  /// the forking thread, since no thread of the child would release it. No InChild is made or
  /// destroyed under the lock. `run` and `in_parent` release it.
  InChild(Run run, void* ctx, Run before = nullptr, Run in_parent = nullptr);
  ~InChild();
  InChild(const InChild&) = delete;
  InChild& operator=(const InChild&) = delete;

 private:
  friend class Children;
  const Run run_;
  const Run before_;
  const Run in_parent_;
  void* const ctx_;
  FifoLinks<InChild> links_{};
};

/// Let go of the kernel object behind an inherited descriptor. The number stays taken, by an
/// eventfd of the child's own that never becomes readable by itself, so its owner never closes an
/// unrelated descriptor. For InChild::Run. @param fd below 0: nothing is done.
void release_in_child(int fd);

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
