/// @file
/// Where the driver's messages go. Control path only.
#pragma once

namespace rio::pmd {

[[gnu::format(printf, 1, 2)]] void log_error(const char* fmt, ...);
[[gnu::format(printf, 1, 2)]] void log_warning(const char* fmt, ...);

}  // namespace rio::pmd
