/// @file
/// Results for people.
#pragma once

#include <string>
#include <vector>

#include "apps/testpmd/run.hpp"

namespace rio::testpmd {

/// Percentiles that are shown.
struct LatencyFigures {
  double p50_ns, p90_ns, p99_ns, p999_ns, max_ns, min_ns, mean_ns;
};
[[nodiscard]] LatencyFigures latency_of(const Histogram& ticks);

/// "37.21 M/s", "812.0 K/s".
[[nodiscard]] std::string rate_text(double per_second);
/// "2.38 GB/s".
[[nodiscard]] std::string bandwidth_text(double bytes_per_second);
/// "133 ns", "4.1 us".
[[nodiscard]] std::string time_text(double ns);
/// 1234567 -> "1,234,567".
[[nodiscard]] std::string grouped(uint64_t number);

/// The totals of a run, several lines.
[[nodiscard]] std::string totals_text(const RunResult& result);
/// A sweep as a table, one line a size.
[[nodiscard]] std::string sweep_text(const std::vector<RunResult>& results);

}  // namespace rio::testpmd
