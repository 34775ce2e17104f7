/// @file
/// The lock of a port that several threads use.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace rio::msg {

/// Taken in the order of asking, so nobody starves; held for a call, so who waits looks again and
/// again, and lets others run if it takes longer.
class PortLock {
 public:
  void lock() {
    const uint32_t mine = next_.fetch_add(1, std::memory_order_relaxed);
    // acquire: pairs with unlock().
    for (uint32_t looks = 1; serving_.load(std::memory_order_acquire) != mine; ++looks) {
      if (looks % kLooks == 0) {
        static_cast<void>(sched_yield());
      }
    }
  }
  void unlock() {
    // release: what the port was left with is visible to the next; pairs with lock().
    serving_.store(serving_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

 private:
  static constexpr uint32_t kLooks = 128;

  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> serving_{0};
};

}  // namespace rio::msg
