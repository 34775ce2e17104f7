/// @file
/// The time that waits are measured with.
#pragma once

#include <chrono>
#include <cstdint>

namespace rio::msg {

[[nodiscard]] inline uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

/// now_ns() in microseconds.
[[nodiscard]] inline uint64_t now_us() {
  return now_ns() / 1000;
}

}  // namespace rio::msg
