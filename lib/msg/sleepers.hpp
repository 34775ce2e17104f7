/// @file
/// The threads of a port: its lock, and the list of those that sleep.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/msg/lock.hpp"

namespace rio::msg {

/// Of one port. All but lock() is called with the lock held, or by the port's only thread.
///
/// `activity` is a number that grows with all that comes from the card: a thread that leaves the
/// port with another number than the sleeping threads know wakes them.
class Sleepers {
 public:
  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

  /// Whether a thread sleeps that other threads have to wake.
  [[nodiscard]] bool any() const { return !wake_fds_.empty(); }
  /// Wake all, if something has come since they were listed.
  void wake_if_new(uint64_t activity) {
    if (activity != seen_) {
      wake();
    }
  }
  /// Wake all: they look again, and are not listed any more.
  void wake();

  /// A thread is about to sleep. @param wake_fd eventfd of its own.
  void enlist(int wake_fd, uint64_t activity);
  /// It sleeps no more.
  void strike(int wake_fd);

  /// A thread is about to sleep, listed or not: remembered for has_slept().
  void note_sleep() { has_slept_ = true; }
  /// Its sleep has ended. @param overslept the clock ended it, though something had come.
  void note_end(bool overslept) {
    ++woken_;
    overslept_ += overslept ? 1 : 0;
  }
  /// As PortStats'.
  [[nodiscard]] uint64_t woken() const { return woken_; }
  [[nodiscard]] uint64_t overslept() const { return overslept_; }
  /// Whether any thread has slept: the users of the port do not look all the time.
  [[nodiscard]] bool has_slept() const { return has_slept_; }

 private:
  PortLock lock_;
  std::vector<int> wake_fds_;
  uint64_t seen_ = 0;  // activity that they know of
  bool has_slept_ = false;
  uint64_t woken_ = 0;
  uint64_t overslept_ = 0;
};

}  // namespace rio::msg
