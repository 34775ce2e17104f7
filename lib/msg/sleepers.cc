#include "lib/msg/sleepers.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

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
  static_cast<void>(syscall(SYS_futex, word_of(serving_), FUTEX_WAKE_BITSET_PRIVATE, INT_MAX,
                            nullptr, nullptr, bit_of(next)));
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
