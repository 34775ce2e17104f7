/// @file
/// The numbers of a simulated network's links.
#pragma once

#include <cstdint>

namespace rio::sim {

/// Not a link: the device is the destination itself.
inline constexpr uint32_t kNoLink = (1u << 28) - 1;
/// Numbers of links are below this: an event has 28 bits for a link.
inline constexpr uint32_t kLinksMax = kNoLink;

/// Consecutive numbers of links, some of which may not exist.
struct LinkRange {
  uint32_t first;
  uint32_t count;
};

}  // namespace rio::sim
