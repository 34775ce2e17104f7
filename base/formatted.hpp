/// @file
/// printf() into a string, also one that tells an error.
#pragma once

#include <cstdarg>
#include <string>

namespace rio::base {

/// The text that printf() would print. Control path, any thread.
[[nodiscard, gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);
/// Like formatted(), for a function that takes such arguments itself; it calls va_end().
[[nodiscard, gnu::format(printf, 1, 0)]] std::string formatted_list(const char* format,
                                                                    va_list args);
/// Say in `error` what is wrong with an input, and the remedy; a system call that failed is for
/// fail() of trouble.hpp. Any thread. @return -EINVAL, for the caller to return.
[[nodiscard, gnu::format(printf, 2, 3)]] int fail(std::string* error, const char* format, ...);

}  // namespace rio::base
