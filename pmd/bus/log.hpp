/// @file
/// Where the driver's messages go.
#pragma once

#include <cstdint>

namespace rio::pmd {

enum class LogLevel : uint8_t { kError, kWarning, kInfo, kDebug };

/// Takes a line without its newline. Any thread.
using LogSink = void (*)(LogLevel level, const char* text) noexcept;

/// Null: stderr. Before any other thread runs.
void set_log_sink(LogSink sink);

[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_warning(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_info(const char* format, ...);

}  // namespace rio::pmd
