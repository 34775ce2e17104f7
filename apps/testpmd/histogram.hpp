/// @file
/// Counts of values in log-linear buckets, as HDR histograms have them: every value is counted,
/// none is thrown away, and a percentile is at most 1/64 too high. And a probe that fills them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace rio::testpmd {

/// One writer; others read after it has stopped. 30 KiB, no allocation.
class Histogram {
 public:
  static constexpr uint32_t kSubLog2 = 6;  ///< buckets for each power of two, log2
  static constexpr size_t kBuckets = (64 - kSubLog2 + 1) << kSubLog2;

  /// Hot. @param value any.
  void add(uint64_t value) {
    ++counts_[bucket_of(value)];
    ++total_;
    sum_ += value;
    max_ = value > max_ ? value : max_;
    min_ = value < min_ ? value : min_;
  }

  void merge(const Histogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) {
      counts_[i] += other.counts_[i];
    }
    total_ += other.total_;
    sum_ += other.sum_;
    max_ = std::max(max_, other.max_);
    min_ = std::min(min_, other.min_);
  }

  [[nodiscard]] uint64_t total() const { return total_; }
  [[nodiscard]] uint64_t max() const { return max_; }
  [[nodiscard]] uint64_t min() const { return total_ == 0 ? 0 : min_; }
  [[nodiscard]] double mean() const {
    return total_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(total_);
  }
  /// Smallest value that at least `percent` of all values do not exceed, rounded up to its bucket's
  /// last value, never above max(). @param percent 0 to 100. @return 0 if empty.
  [[nodiscard]] uint64_t percentile(double percent) const {
    if (total_ == 0) {
      return 0;
    }
    const double wanted = std::ceil(static_cast<double>(total_) * percent / 100.0);
    const uint64_t rank = std::clamp<uint64_t>(static_cast<uint64_t>(wanted), 1, total_);
    uint64_t seen = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen >= rank) {
        return std::min(last_value_of(i), max_);
      }
    }
    return max_;
  }

  /// For drawing: values in bucket `index`, and its largest value.
  [[nodiscard]] uint64_t count(size_t index) const { return counts_[index]; }
  [[nodiscard]] static constexpr uint64_t last_value_of(size_t index) {
    const uint64_t shift = index < (2u << kSubLog2) ? 0 : (index >> kSubLog2) - 1;
    const uint64_t mantissa = index - (shift << kSubLog2);
    return ((mantissa + 1) << shift) - 1;
  }
  [[nodiscard]] static constexpr size_t bucket_of(uint64_t value) {
    const uint32_t width = static_cast<uint32_t>(std::bit_width(value));
    const uint32_t shift = width <= kSubLog2 + 1 ? 0 : width - kSubLog2 - 1;
    return (static_cast<size_t>(shift) << kSubLog2) + static_cast<size_t>(value >> shift);
  }

 private:
  uint64_t total_ = 0;
  uint64_t sum_ = 0;
  uint64_t max_ = 0;
  uint64_t min_ = UINT64_MAX;
  std::array<uint64_t, kBuckets> counts_{};
};

static_assert(Histogram::bucket_of(0) == 0);
static_assert(Histogram::bucket_of(UINT64_MAX) == Histogram::kBuckets - 1);
static_assert(Histogram::last_value_of(Histogram::kBuckets - 1) == UINT64_MAX);

/// Latency without a look at the messages: when as many came as had gone out by then. One message
/// at a time is timed on the way into a port. Exact as long as none is lost and none
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
