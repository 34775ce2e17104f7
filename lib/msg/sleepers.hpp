/// @file
/// The lock of a port, and the list of its sleeping threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/fork.hpp"

namespace rio::msg {

/// A fair ticket lock, held for one call at a time. A waiting thread spins briefly, then sleeps
/// until its turn: with more threads than CPUs, spinning would delay the thread whose turn it is.
///
/// A thread that forks waits for its turn first, so a child finds the port at rest and can close
/// it. A thread that forks while it holds the lock itself does so after a second; its child holds
/// the lock, too.
class PortLock {
 public:
  void lock() {
    const uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    // acquire: pairs with unlock().
    if (serving_.load(std::memory_order_acquire) != mine) [[unlikely]] {
      wait_for(mine);
    }
  }
  void unlock() {
    const uint32_t next = serving_.load(std::memory_order_relaxed) + 1;
    // release: the holder's stores are visible to the next holder; pairs with lock(). seq_cst, with
    // the load below: either unlock() sees the sleeper, or the sleeper sees this turn; pairs with
    // wait_for().
    serving_.store(next, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) != 0) [[unlikely]] {
      wake(next);
    }
  }

 private:
  static constexpr uint32_t kLooks = 1024;
  static constexpr uint64_t kNone = ~0ull;  // no ticket

  void wait_for(uint32_t mine);
  void wake(uint32_t next);
  void before_fork();
  [[nodiscard]] bool give_up(uint32_t mine);
  void after_fork();
  void in_child();

  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> serving_{0};
  std::atomic<uint32_t> sleepers_{0};
  std::atomic<uint64_t> given_up_{kNone};  // a ticket whose thread waits no more
  bool held_for_fork_ = false;             // under the lock
  const base::InChild in_child_{[](void* ctx) { static_cast<PortLock*>(ctx)->in_child(); }, this,
                                [](void* ctx) { static_cast<PortLock*>(ctx)->before_fork(); },
                                [](void* ctx) { static_cast<PortLock*>(ctx)->after_fork(); }};
};

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

  // Of all threads, listed or not; like the functions, with the lock held.
  bool has_slept = false;  ///< a thread has begun to sleep: the port is not polled all the time
  uint64_t woken = 0;      ///< as in PortStats
  uint64_t overslept = 0;  ///< as in PortStats

 private:
  PortLock lock_;
  std::vector<int> wake_fds_;
  uint64_t seen_ = 0;  // activity that the listed threads have seen
};

}  // namespace rio::msg
