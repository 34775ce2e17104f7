/// @file
/// Counts of values in log-linear buckets, as HDR histograms have them: every value is counted,
/// none is thrown away, and a percentile is at most 1/64 too high.
#pragma once

#include <array>
#include <bit>
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

  void merge(const Histogram& other);
  void clear() { *this = Histogram(); }

  [[nodiscard]] uint64_t total() const { return total_; }
  [[nodiscard]] uint64_t max() const { return max_; }
  [[nodiscard]] uint64_t min() const { return total_ == 0 ? 0 : min_; }
  [[nodiscard]] double mean() const;
  /// Smallest value that at least `percent` of all values do not exceed, rounded up to its bucket's
  /// last value, never above max(). @param percent 0 to 100. @return 0 if empty.
  [[nodiscard]] uint64_t percentile(double percent) const;

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

}  // namespace rio::testpmd
