/// @file
/// What happens to objects of the library in a child that the program forks: the kernel objects
/// behind them are the parent's, and the child must not use them, or keep them alive.
#pragma once

namespace rio::base {

/// Runs a function in each child that fork() makes while the object lives, before fork() returns
/// there. Nothing runs in children of vfork(), posix_spawn() and clone(), which end with exec():
/// descriptors with O_CLOEXEC are closed by that.
class InChild {
 public:
  /// @param run only stores and async-signal-safe system calls: another thread of the parent may
  /// have held any lock, the allocator's too. Objects run in no particular order.
  using Run = void (*)(void* ctx);

  /// Any thread, control path only; waits for a fork() that is under way.
  /// @param before for an object with a lock that a thread of the library's own takes: takes that
  /// lock, in the thread that forks, since nobody would ever release it in the child. Under the
  /// lock no InChild is made or destroyed. `run` and `in_parent` release it.
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
  InChild* next_ = nullptr;
  InChild* previous_ = nullptr;
};

/// Let go of the kernel object behind a descriptor that was inherited. The number stays taken, by
/// an eventfd of the child's own that never becomes readable by itself, so the object that owns the
/// number closes nothing else later. For InChild::Run.
/// @param fd below 0: nothing is done.
void release_in_child(int fd);

}  // namespace rio::base
