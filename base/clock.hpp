/// @file
/// The clock that waits and timeouts are measured with.
#pragma once

#include <chrono>
#include <cstdint>

namespace rio::base {

/// Nanoseconds of CLOCK_MONOTONIC: never backwards, common to all processes of the machine, and
/// going on while a process is stopped. Any thread.
[[nodiscard]] inline uint64_t now_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                               std::chrono::nanoseconds(1));
}

}  // namespace rio::base
