/// @file
/// Latency without a look at the messages: when as many came as had gone out by then.
#pragma once

#include <atomic>
#include <cstdint>

#include "apps/testpmd/histogram.hpp"

namespace rio::testpmd {

/// One message at a time is timed on the way into a port. Exact as long as none is lost and none
/// overtakes; after a loss it stops. One sending and one receiving thread.
class alignas(64) LatencyProbe {
 public:
  /// Main thread, between runs.
  void reset() {
    target_.store(kIdle, std::memory_order_relaxed);
    sent_ = 0;
    received_ = 0;
  }
  /// Sender: whether it is worth a look at the clock.
  [[nodiscard]] bool idle() const { return target_.load(std::memory_order_relaxed) == kIdle; }
  /// Sender, after a burst of n. @param tsc before the burst, 0 if the probe was not idle.
  void sent(uint32_t n, uint64_t tsc) {
    sent_ += n;
    if (tsc != 0 && n != 0) {
      start_ = tsc;
      // release: start_ before the target; pairs with received().
      target_.store(sent_, std::memory_order_release);
    }
  }
  /// Sender: counts no longer match.
  void give_up() { target_.store(kOff, std::memory_order_relaxed); }

  /// Receiver, after a burst of n > 0. @param clock gives the TSC.
  template <typename Clock>
  void received(uint32_t n, Clock clock, Histogram* histogram) {
    received_ += n;
    // acquire: pairs with sent().
    const uint64_t target = target_.load(std::memory_order_acquire);
    if (received_ >= target) [[unlikely]] {
      histogram->add(clock() - start_);
      // A probe that was given up meanwhile stays so: only kIdle is written over its own target.
      uint64_t expected = target;
      target_.compare_exchange_strong(expected, kIdle, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr uint64_t kIdle = UINT64_MAX;
  static constexpr uint64_t kOff = UINT64_MAX - 1;

  std::atomic<uint64_t> target_{kIdle};
  uint64_t start_ = 0;
  alignas(64) uint64_t sent_ = 0;      // sender's line
  alignas(64) uint64_t received_ = 0;  // receiver's line
};

}  // namespace rio::testpmd
