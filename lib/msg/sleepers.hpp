/// @file
/// The lock of a port, and the list of its sleeping threads.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/msg/lock.hpp"

namespace rio::msg {

/// One per port. Every function except lock() is called with the lock held, or by the port's only
/// thread.
///
/// `activity` is MessagePort::activity(). A thread that leaves the port wakes the sleepers if the
/// number is not the one that they have seen.
class Sleepers {
 public:
  void lock() { lock_.lock(); }
  void unlock() { lock_.unlock(); }

  /// Whether any sleeping thread is listed.
  [[nodiscard]] bool any() const { return !wake_fds_.empty(); }
  /// Wake all listed threads if something has arrived since they were listed.
  void wake_if_new(uint64_t activity) {
    if (activity != seen_) {
      wake();
    }
  }
  /// Wake all listed threads and clear the list.
  void wake();

  /// List a thread that is about to sleep. @param wake_fd its eventfd.
  void enlist(int wake_fd, uint64_t activity);
  /// Remove a thread from the list, if it is there.
  void strike(int wake_fd);

  /// Note that a thread is about to sleep, listed or not, for has_slept().
  void note_sleep() { has_slept_ = true; }
  /// Note that a sleep has ended. @param overslept it ended by time-out although something had
  /// arrived.
  void note_end(bool overslept) {
    ++woken_;
    overslept_ += overslept ? 1 : 0;
  }
  /// As in PortStats.
  [[nodiscard]] uint64_t woken() const { return woken_; }
  [[nodiscard]] uint64_t overslept() const { return overslept_; }
  /// Whether any thread has ever slept: then the port is not polled all the time.
  [[nodiscard]] bool has_slept() const { return has_slept_; }

 private:
  PortLock lock_;
  std::vector<int> wake_fds_;
  uint64_t seen_ = 0;  // activity that the listed threads have seen
  bool has_slept_ = false;
  uint64_t woken_ = 0;
  uint64_t overslept_ = 0;
};

}  // namespace rio::msg
