/// @file
/// printf() into a string.
#pragma once

#include <cstdarg>
#include <string>

namespace rio::base {

/// The text that printf() would print. Control path, any thread.
[[nodiscard, gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);
/// For a function that has such arguments itself.
[[nodiscard, gnu::format(printf, 1, 0)]] std::string formatted_list(const char* format,
                                                                    va_list args);

}  // namespace rio::base
