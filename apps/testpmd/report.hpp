/// @file
/// Results for people (report.cc), and for programs (json_report.cc; scripts/plot draws them).
#pragma once

#include <string>
#include <vector>

#include "apps/testpmd/run.hpp"

namespace rio::testpmd {

/// Nanoseconds of TSC ticks.
[[nodiscard]] double ns_of(double ticks);

/// How many there are of `n` to one of `by`, 0 if there is none of those.
[[nodiscard]] double ratio(uint64_t n, double by);
/// "37.21 M/s", "812.0 K/s".
[[nodiscard]] std::string rate_text(uint64_t n, double seconds);
/// "2.38 GB/s".
[[nodiscard]] std::string bandwidth_text(uint64_t bytes, double seconds);
/// "133 ns", "4.1 us".
[[nodiscard]] std::string time_text(double ns);
/// 1234567 -> "1,234,567".
[[nodiscard]] std::string grouped(uint64_t number);

/// The totals of a run, several lines.
[[nodiscard]] std::string totals_text(const RunResult& result);
/// A sweep as a table, one line a size.
[[nodiscard]] std::string sweep_text(const std::vector<RunResult>& results);

/// Whether options.json_file, if there is one, can be written; leaves what is there. Before the
/// runs, so that none is lost. @return 0, or -EINVAL with the remedy in `error`.
[[nodiscard]] int check_json(const Options& options, std::string* error);

/// Write all runs to options.json_file. @return 0, or -EINVAL with the cause in `error`.
[[nodiscard]] int write_json(const Options& options, const std::vector<RunResult>& results,
                             std::string* error);

}  // namespace rio::testpmd
