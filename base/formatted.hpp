/// @file
/// printf() into a string.
#pragma once

#include <string>

namespace rio::base {

/// The text that printf() would print. Control path, any thread.
[[nodiscard, gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

}  // namespace rio::base
