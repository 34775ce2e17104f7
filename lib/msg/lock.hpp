/// @file
/// The lock of a port that is used by several threads.
#pragma once

#include <atomic>
#include <cstdint>

namespace rio::msg {

/// A fair ticket lock, held for one call at a time. A waiting thread spins briefly, then sleeps
/// until its turn: with more threads than CPUs, spinning would delay the thread whose turn it is.
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

  void wait_for(uint32_t mine);
  void wake(uint32_t next);

  std::atomic<uint32_t> next_{0};
  std::atomic<uint32_t> serving_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace rio::msg
