/// @file
/// A process of net_multi_test: polls a queue of two ports, and does what it is told.
#pragma once

#include <cstdint>

namespace rio::test {

inline constexpr uint32_t kHeld = 5;    ///< frames that "hold" keeps
inline constexpr uint16_t kBurst = 16;  ///< frames at once

/// The primary has queue 0 of both ports, and sets them up; the secondary has queue 1. Both send
/// from each port to the other, flows for both queues. Commands: count, stats, control,
/// hold, stop, end. @return exit code.
int run_net_worker(bool primary);

}  // namespace rio::test
