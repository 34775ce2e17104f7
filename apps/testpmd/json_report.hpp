/// @file
/// Results for programs; scripts/plot draws them.
#pragma once

#include <string>
#include <vector>

#include "apps/testpmd/run.hpp"

namespace rio::testpmd {

/// Whether options.json_file, if there is one, can be written; leaves what is there. Before the
/// runs, so that none is lost. @return 0, or -errno with the remedy in `error`.
[[nodiscard]] int check_json(const Options& options, std::string* error);

/// Write all runs to options.json_file. @return 0, or -errno with the cause in `error`.
[[nodiscard]] int write_json(const Options& options, const std::vector<RunResult>& results,
                             std::string* error);

}  // namespace rio::testpmd
