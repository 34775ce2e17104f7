/// @file
/// Sets of rails, and the rails of one peer as they are now.
///
/// Thread rule: plain values; any thread.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>

namespace rio::rail {

/// Most rails of a port. They are numbered from 0.
inline constexpr uint32_t kRails = 8;

/// A set of rails, one bit each: bit 0 is rail 0.
using RailSet = uint32_t;

/// Hot. The set of one rail.
[[nodiscard]] constexpr RailSet only(uint32_t rail) {
  return 1u << rail;
}
/// Hot. Whether a set has a rail.
[[nodiscard]] constexpr bool has(RailSet rails, uint32_t rail) {
  return (rails >> rail & 1) != 0;
}
/// The first rail of a set at or after a given one, beginning again at rail 0 after the last.
/// @param rails not empty. @param from below kRails.
[[nodiscard]] constexpr uint32_t first_from(RailSet rails, uint32_t from) {
  assert(rails != 0 && from < kRails);
  const RailSet after = rails >> from << from;
  return static_cast<uint32_t>(std::countr_zero(after != 0 ? after : rails));
}
/// The rail at a place of a set, counted from the lowest.
/// @param rails not empty. @param place any number; taken modulo the size of the set.
[[nodiscard]] constexpr uint32_t rail_at(RailSet rails, uint32_t place) {
  assert(rails != 0);
  for (uint32_t left = place % static_cast<uint32_t>(std::popcount(rails)); left > 0; --left) {
    rails &= rails - 1;
  }
  return static_cast<uint32_t>(std::countr_zero(rails));
}

/// The rails of one peer as they are now.
struct RailView {
  RailSet up = 0;           ///< RailState::is_up() of the path
  RailSet last_resort = 0;  ///< RailState::is_last_resort() of the path
  RailSet room = 0;         ///< the rail can take work now: a ring entry, or a free dedicated queue
};

}  // namespace rio::rail
