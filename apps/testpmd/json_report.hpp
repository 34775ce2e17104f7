/// @file
/// Results for programs; scripts/plot draws them.
#pragma once

#include <string>
#include <vector>

#include "apps/testpmd/run.hpp"

namespace rio::testpmd {

/// Write all runs to options.json_file. @return 0, or -errno with the cause in `error`.
[[nodiscard]] int write_json(const Options& options, const std::vector<RunResult>& results,
                             std::string* error);

}  // namespace rio::testpmd
