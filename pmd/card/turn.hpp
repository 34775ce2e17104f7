/// @file
/// Whose turn it is at something that one thread at a time may use.
#pragma once

#include <rte_pause.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace rio::pmd {

/// No lock: who does not get the turn does without, and nobody waits but the control path. Any
/// thread, any process: it may lie in memory that processes share, where zero means that it is
/// free.
class Turn {
 public:
  /// Hot. @return false: somebody is inside, or has it for good.
  [[nodiscard]] bool take() {
    // acquire: what the last one inside did is seen; pairs with give()
    return word_.exchange(1, std::memory_order_acquire) == 0;
  }
  /// Hot. take() for who must not lose his turn to somebody who is in and out at once: tries for
  /// some microseconds at most. @return as take().
  [[nodiscard]] bool take_soon() {
    for (uint32_t tries = 0; tries < kTriesMax; ++tries) {
      if (word_.load(std::memory_order_relaxed) == 0 && take()) {
        return true;
      }
      rte_pause();
    }
    return false;
  }
  /// Hot. By who has it. release: pairs with take()
  void give() { word_.store(0, std::memory_order_release); }

  /// Control path: wait until nobody is inside. Nobody gets it then until give().
  /// @return false: somebody is still inside; it is not taken.
  [[nodiscard]] bool take_for_good(uint32_t timeout_ms) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
    while (!take()) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

 private:
  static constexpr uint32_t kTriesMax = 500;

  std::atomic<uint32_t> word_;
};

}  // namespace rio::pmd
