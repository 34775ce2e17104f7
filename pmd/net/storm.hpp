/// @file
/// Storm control, as switches have it.
#pragma once

#include <rte_cycles.h>

#include <algorithm>
#include <cstdint>

namespace rio::pmd {

/// Lets so many broadcast frames pass in a second, and a sixteenth of that at once. One thread
/// at a time.
class StormControl {
 public:
  /// @param frames_per_s 0: all. @param ticks_per_s of the TSC. Their product fits
  /// into 64 bits.
  void start(uint64_t frames_per_s, uint64_t ticks_per_s) {
    rate_ = frames_per_s;
    ticks_per_s_ = ticks_per_s;
    most_ = std::max<uint64_t>(1, rate_ / 16);
    left_ = most_;
    last_ticks_ = rte_rdtsc();
  }
  /// @return whether a frame passes.
  [[nodiscard]] bool admit() {
    if (rate_ == 0) {
      return true;
    }
    if (left_ == 0) {
      refill(rte_rdtsc());
    }
    if (left_ == 0) {
      return false;
    }
    --left_;
    return true;
  }

  /// One that was admitted did not pass after all.
  void refund() { left_ += rate_ == 0 ? 0 : 1; }

 private:
  void refill(uint64_t now_ticks) {
    const uint64_t ticks = std::min(now_ticks - last_ticks_, ticks_per_s_);
    const uint64_t more = ticks * rate_ / ticks_per_s_;
    if (more != 0) {
      last_ticks_ = now_ticks;
      left_ = std::min(most_, more);
    }
  }

  uint64_t rate_ = 0;
  uint64_t ticks_per_s_ = 1;
  uint64_t most_ = 0;
  uint64_t left_ = 0;
  uint64_t last_ticks_ = 0;
};

}  // namespace rio::pmd
