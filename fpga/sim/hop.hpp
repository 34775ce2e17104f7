/// @file
/// The names of a simulated network's devices and links.
#pragma once

#include <cstdint>

namespace rio::sim {

/// No link: the device is the destination itself.
inline constexpr uint32_t kNoLink = (1u << 28) - 1;
/// Links are numbered below it: an event keeps a link in 28 bits.
inline constexpr uint32_t kLinksMax = kNoLink;

/// Consecutive numbers of links, some of which may not exist.
struct LinkRange {
  uint32_t first;
  uint32_t count;
};

}  // namespace rio::sim
