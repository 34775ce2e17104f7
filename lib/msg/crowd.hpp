/// @file
/// Whether the program was told that it has to share its CPUs.
#pragma once

#include <atomic>

namespace rio::msg {

/// Of the process: more threads poll than there are CPUs, and whatever polls our ports yields after
/// each look in vain, as Open MPI does when told of it. Patience does not find this out at a thread
/// for which much arrives: it looks for switches only where most polls find nothing. Any thread.
inline std::atomic<bool> is_crowd_told{false};

/// Hot. Whether is_crowd_told is set.
[[nodiscard]] inline bool is_crowd() {
  return is_crowd_told.load(std::memory_order_relaxed);  // a hint, which guards no data
}

}  // namespace rio::msg
