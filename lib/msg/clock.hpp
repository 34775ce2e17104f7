/// @file
/// The time that waits are measured with.
#pragma once

#include "base/clock.hpp"

namespace rio::msg {

using base::now_ns;

/// now_ns() in microseconds.
[[nodiscard]] inline uint64_t now_us() {
  return now_ns() / 1000;
}

}  // namespace rio::msg
