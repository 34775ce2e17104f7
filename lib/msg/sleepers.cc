#include "lib/msg/sleepers.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <utility>

#include "base/wake_fd.hpp"

namespace rio::msg {
namespace {

/// The wake-up bit of a sleeper: FUTEX_WAKE_BITSET wakes only sleepers with the same bit.
[[nodiscard]] uint32_t bit_of(uint32_t ticket) {
  constexpr uint32_t kBits = 32;
  return 1u << ticket % kBits;
}

/// The futex word of an atomic, which has the layout of a plain uint32_t.
[[nodiscard]] uint32_t* word_of(std::atomic<uint32_t>& of) {
  static_assert(sizeof(of) == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  return reinterpret_cast<uint32_t*>(&of);
}

}  // namespace

void PortLock::wait_for(uint32_t mine) {
  for (uint32_t looks = 0; looks < kLooks; ++looks) {
    // acquire: pairs with unlock().
    if (serving_.load(std::memory_order_acquire) == mine) {
      return;
    }
  }
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  for (;;) {
    // seq_cst: this load follows the addition to sleepers_; pairs with unlock(). Also an acquire.
    const uint32_t serving = serving_.load(std::memory_order_seq_cst);
    if (serving == mine) {
      break;
    }
    // The call returns at once if another turn has begun meanwhile; then check again.
    static_cast<void>(syscall(SYS_futex, word_of(serving_), FUTEX_WAIT_BITSET_PRIVATE, serving,
                              nullptr, nullptr, bit_of(mine)));
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void PortLock::wake(uint32_t next) {
  uint64_t given_up = next;
  if (given_up_.compare_exchange_strong(given_up, kNone, std::memory_order_seq_cst)) {
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
    unlock();  // in place of the thread that waits no more
    return;
  }
  static_cast<void>(syscall(SYS_futex, word_of(serving_), FUTEX_WAKE_BITSET_PRIVATE, INT_MAX,
                            nullptr, nullptr, bit_of(next)));
}

void PortLock::before_fork() {
  using Clock = std::chrono::steady_clock;
  if (given_up_.load(std::memory_order_relaxed) != kNone) {
    return;  // this thread has held the lock since an earlier fork
  }
  const auto end = Clock::now() + std::chrono::seconds(1);
  const uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
  held_for_fork_ = true;
  // acquire: pairs with unlock().
  while (serving_.load(std::memory_order_acquire) != mine) {
    if (Clock::now() >= end) {
      held_for_fork_ = !give_up(mine);
      return;
    }
    sched_yield();
  }
}

/// Leaves the queue. @return false: it has become the thread's turn instead.
bool PortLock::give_up(uint32_t mine) {
  // seq_cst: either unlock() sees the ticket that is given up, or this thread sees its turn.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  given_up_.store(mine, std::memory_order_seq_cst);
  uint64_t given_up = mine;
  if (serving_.load(std::memory_order_seq_cst) != mine ||
      !given_up_.compare_exchange_strong(given_up, kNone, std::memory_order_seq_cst)) {
    return true;
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void PortLock::after_fork() {
  if (std::exchange(held_for_fork_, false)) {
    unlock();
  }
}

/// The threads that wait for the lock are the parent's.
void PortLock::in_child() {
  next_.store(serving_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  sleepers_.store(0, std::memory_order_relaxed);
  given_up_.store(kNone, std::memory_order_relaxed);
  after_fork();
}

void Sleepers::wake() {
  for (const int fd : wake_fds_) {
    base::wake(fd);
  }
  wake_fds_.clear();
}

void Sleepers::enlist(int wake_fd, uint64_t activity) {
  base::clear_wake_fd(wake_fd);
  strike(wake_fd);
  wake_if_new(activity);  // this call has taken something, which may be for other sleepers
  wake_fds_.push_back(wake_fd);
  seen_ = activity;
}

void Sleepers::strike(int wake_fd) {
  std::erase(wake_fds_, wake_fd);
}

}  // namespace rio::msg
