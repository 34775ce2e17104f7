/// @file
/// Objects of the library in a forked child: the kernel objects behind them are the parent's, so
/// the child must neither use them nor keep them alive. Memory that the parent shares with other
/// processes is replaced in the child, which would write there in its parent's name.
#pragma once

#include <cstddef>
#include <cstdint>

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

/// Call release_in_child() for a descriptor in each later child, until forget_fd_in_child(). A
/// thread that forks between the system call that makes the descriptor and this one gives it to
/// the child. Any thread, control path only. @param fd below 0: nothing is done.
void release_fd_in_child(int fd);
/// Call it before the descriptor is closed. @param fd given to release_fd_in_child().
void forget_fd_in_child(int fd);

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

/// Have later children find something else in place of memory that is mapped already.
/// @param child_finds not kCopy. @param at the caller calls forget_in_child() before it unmaps it.
void replace_in_child(void* at, size_t len_bytes, ChildFinds child_finds);

/// Share the memory with later children after all. @param at of map_shared() or
/// replace_in_child(); the caller unmaps it itself.
void forget_in_child(void* at);

/// Pages of the program that later children do not have (MADV_DONTFORK): to touch them there is a
/// segmentation fault. Objects may overlap; a page is inherited again once the last one that covers
/// it is gone. Any thread, control path only.
class NotInherited {
 public:
  NotInherited() = default;
  /// @param va, len_bytes any range; only pages that lie wholly in it count, since the rest of the
  /// others is not the caller's. Those that the kernel does not let go of (a part of a hugepage)
  /// are inherited all the same.
  NotInherited(void* va, size_t len_bytes);
  ~NotInherited();
  NotInherited(const NotInherited&) = delete;
  NotInherited& operator=(const NotInherited&) = delete;

 private:
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
};

}  // namespace rio::base
