#include "apps/testpmd/histogram.hpp"

#include <algorithm>
#include <cmath>

namespace rio::testpmd {

void Histogram::merge(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) {
    counts_[i] += other.counts_[i];
  }
  total_ += other.total_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
  min_ = std::min(min_, other.min_);
}

double Histogram::mean() const {
  return total_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(total_);
}

uint64_t Histogram::percentile(double percent) const {
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

}  // namespace rio::testpmd
