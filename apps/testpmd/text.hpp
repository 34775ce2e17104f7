/// @file
/// Texts for people, by the formats of printf. Any thread.
#pragma once

#include <cstddef>
#include <string>

#include "base/formatted.hpp"

namespace rio::testpmd {

using base::fail;
using base::formatted;

/// "1 port", "2 ports".
[[nodiscard]] inline std::string counted(size_t n, const char* what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

}  // namespace rio::testpmd
