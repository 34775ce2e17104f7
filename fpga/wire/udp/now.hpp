/// @file
/// The wire's clock: monotonic, and it goes on while a process is stopped.
#pragma once

#include <chrono>
#include <cstdint>

namespace rio::wire::udp {

[[nodiscard]] inline uint64_t monotonic_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

}  // namespace rio::wire::udp
