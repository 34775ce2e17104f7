/// @file
/// Texts for people, by the formats of printf. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/formatted.hpp"

namespace rio::testpmd {

using base::formatted;

/// Say in `error` what is wrong, and the remedy. @return -EINVAL, for the caller to return.
[[nodiscard, gnu::format(printf, 2, 3)]] int fail(std::string* error, const char* text, ...);

/// "1 port", "2 ports".
[[nodiscard]] std::string counted(size_t n, const char* what);

}  // namespace rio::testpmd
