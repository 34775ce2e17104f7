/// @file
/// Lets the control path take a queue away from the thread that polls it.
#pragma once

#include <rte_pause.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace rio::pmd {

/// The turn of a queue. A burst takes it at its start and gives it back at its end; the control
/// path takes it for good, to close or replace the queue. It is not a lock: a burst that does not
/// get the turn, beside another thread or process, returns 0. Place it beside data that its bursts
/// write, in memory of all processes that poll (Bus::shared_alloc()). One that dies inside leaves
/// it taken.
class Turn {
 public:
  /// Hot. @return false: a burst is inside, or it was taken for good.
  [[nodiscard]] bool take() {
    if (wanted_.load(std::memory_order_relaxed) != 0) [[unlikely]] {
      return false;  // else a thread that polls without a pause might never let the control path in
    }
    return take_now();
  }
  /// Hot. Like take(), for a caller that would lose its frames, while other threads stay inside
  /// only briefly: tries for some microseconds at most.
  [[nodiscard]] bool take_soon() {
    constexpr uint32_t kTriesMax = 500;
    for (uint32_t tries = 0; tries < kTriesMax; ++tries) {
      if (take()) {
        return true;
      }
      if (wanted_.load(std::memory_order_relaxed) != 0) {
        return false;
      }
      rte_pause();
    }
    return false;
  }
  /// Give the turn back. Hot, and of the control path. @pre the caller has it.
  void give() {
    // release: stores made inside are visible to the next taker; pairs with take_now().
    inside_.store(0, std::memory_order_release);
  }
  /// Control path, one thread at a time: make take() fail until give(). Waits for a burst inside.
  /// @return false: it did not end in time, and take() works as before.
  [[nodiscard]] bool take_for_good(uint32_t timeout_ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    wanted_.store(1, std::memory_order_relaxed);
    bool mine = take_now();
    while (!mine && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();  // the thread inside may want this CPU
      mine = take_now();
    }
    wanted_.store(0, std::memory_order_relaxed);
    return mine;
  }
  /// Hot. Whether take() would have succeeded just now.
  [[nodiscard]] bool is_free() const {
    return (inside_.load(std::memory_order_relaxed) | wanted_.load(std::memory_order_relaxed)) == 0;
  }

 private:
  [[nodiscard]] bool take_now() {
    // acquire: pairs with give().
    return inside_.exchange(1, std::memory_order_acquire) == 0;
  }

  std::atomic<uint32_t> inside_{0};  // this alone says who has the turn
  std::atomic<uint32_t> wanted_{0};  // by the control path: a hint, read without ordering
};
static_assert(std::atomic<uint32_t>::is_always_lock_free, "other processes use it");

/// The turn of one burst, if it could be taken.
class InTurn {
 public:
  explicit InTurn(Turn& turn) : turn_(turn), mine_(turn.take()) {}
  ~InTurn() {
    if (mine_) {
      turn_.give();
    }
  }
  InTurn(const InTurn&) = delete;
  InTurn& operator=(const InTurn&) = delete;
  [[nodiscard]] explicit operator bool() const { return mine_; }

 private:
  Turn& turn_;
  bool mine_;
};

}  // namespace rio::pmd
