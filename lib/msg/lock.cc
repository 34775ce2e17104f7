#include "lib/msg/lock.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace rio::msg {
namespace {

/// The bit of a sleeper in a futex word's wake-up set: the kernel wakes only sleepers with that
/// bit.
[[nodiscard]] uint32_t bit_of(uint32_t ticket) {
  constexpr uint32_t kBits = 32;
  return 1u << ticket % kBits;
}

/// The kernel's view of an atomic, which is aligned and holds nothing but the number.
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
    // seq_cst: after the addition; pairs with unlock(). It is also an acquire.
    const uint32_t serving = serving_.load(std::memory_order_seq_cst);
    if (serving == mine) {
      break;
    }
    // It returns at once if another turn has begun meanwhile; then look again.
    static_cast<void>(syscall(SYS_futex, word_of(serving_), FUTEX_WAIT_BITSET_PRIVATE, serving,
                              nullptr, nullptr, bit_of(mine)));
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void PortLock::wake(uint32_t next) {
  static_cast<void>(syscall(SYS_futex, word_of(serving_), FUTEX_WAKE_BITSET_PRIVATE, INT_MAX,
                            nullptr, nullptr, bit_of(next)));
}

}  // namespace rio::msg
