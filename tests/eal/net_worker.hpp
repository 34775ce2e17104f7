/// @file
/// A process of net_multi_test, which polls a queue of two ports and follows commands.
#pragma once

#include <cstdint>

namespace rio::test {

inline constexpr uint32_t kHeld = 5;    ///< mbufs that "hold" keeps
inline constexpr uint16_t kBurst = 16;  ///< frames in a burst

/// Runs a process. The primary sets up both ports and has their queue 0; the secondary has queue 1.
/// Both send from each port to the other, in flows for both queues. Commands: count, stats,
/// control, hold, stop, end. @return exit code.
int run_net_worker(bool primary);

}  // namespace rio::test
