/// @file
/// Now, for people and for files.
#pragma once

#include <string>

namespace rio::tool {

/// "2026-11-22T02:38:24Z".
[[nodiscard]] std::string utc_now();
/// "02:38:24.123", UTC.
[[nodiscard]] std::string time_of_day();

}  // namespace rio::tool
