/// @file
/// Devices and links that fail and come back, at set times or by seed.
#pragma once

#include <cstdint>
#include <vector>

#include "fpga/sim/topology.hpp"

namespace rio::sim {

enum class FaultKind : uint8_t { kDeviceDown, kDeviceUp, kLinkDown, kLinkUp };

/// A device or link that fails or comes back. Links have one direction: to cut a cable, also cut
/// NetworkTopology::reverse() of the link.
struct NetworkFault {
  uint64_t at_ns;
  FaultKind kind;
  uint32_t target;  ///< a device, or a link
};

/// Choose distinct nodes or links at random, each with a time. Any thread.
/// @param kind kDeviceDown and kDeviceUp choose among nodes only, not switches.
/// @param count how many; if there are fewer, all are chosen. @param first_ns, last_ns the times,
/// inclusive.
/// @return in order of time.
[[nodiscard]] std::vector<NetworkFault> random_faults(const NetworkTopology& topology,
                                                      FaultKind kind, uint32_t count,
                                                      uint64_t first_ns, uint64_t last_ns,
                                                      uint64_t seed);

}  // namespace rio::sim
