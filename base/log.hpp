/// @file
/// The log of the control path. The function that first knows the cause of an error logs it here,
/// once, with the remedy; bursts never log.
#pragma once

namespace rio::base {

/// Weight of a line.
enum class LogLevel : unsigned char { kError, kWarning, kInfo };

/// Takes one whole line without a newline. Called by the thread that logs, maybe by several at
/// once; must not throw.
using LogSink = void (*)(LogLevel level, const char* line) noexcept;

/// Send all lines to `sink` from now on; null restores the default, stderr. Any thread.
void set_log_sink(LogSink sink);

/// Log one line; cut at 1023 characters. Any thread, control path only.
[[gnu::format(printf, 1, 2)]] void log_error(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_warning(const char* format, ...);
[[gnu::format(printf, 1, 2)]] void log_info(const char* format, ...);

}  // namespace rio::base
