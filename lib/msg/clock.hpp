/// @file
/// The clock that all waits of this library use.
#pragma once

#include "base/clock.hpp"

namespace rio::msg {

using base::now_ns;

/// now_ns() in microseconds.
[[nodiscard]] inline uint64_t now_us() {
  return now_ns() / 1000;
}

}  // namespace rio::msg
