/// @file
/// The result of a run as text and as JSON. Any thread.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "apps/sim/barrier_run.hpp"

namespace rio::simapp {

/// Numbers with unsigned integers wherever the value is a count or a time in ns.
using Json = nlohmann::ordered_json;

/// The result as JSON. @param exits whether to add the exit time of each rank of the last barrier.
[[nodiscard]] Json to_json(const BarrierPlan& plan, const BarrierResult& result, bool exits);
/// The result as lines for a terminal.
[[nodiscard]] std::string to_text(const BarrierPlan& plan, const BarrierResult& result);
/// A number as in "1,234,567".
[[nodiscard]] std::string with_commas(uint64_t value);
/// Write a JSON text to a file, or to stdout for "-". @param error set only on failure.
/// @return 0, -errno.
[[nodiscard]] int write_json(const Json& json, const std::string& path, std::string* error);

}  // namespace rio::simapp
