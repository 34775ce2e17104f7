/// @file
/// Rounds and peers of each scheme, for scheme.cc. Private to lib/barrier.
///
/// Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <cstdint>

#include "lib/barrier/scheme.hpp"

namespace rio::barrier::makers {

/// Returned by rounds() for a group that the scheme does not fit.
inline constexpr uint32_t kUnfit = UINT32_MAX;

/// The least r with base^r >= value. @param base at least 2.
[[nodiscard]] constexpr uint32_t ceil_log(uint32_t base, uint32_t value) {
  uint32_t rounds = 0;
  for (uint64_t reach = 1; reach < value; reach *= base) {
    ++rounds;
  }
  return rounds;
}

/// Rounds that a scheme needs, perhaps more than kRoundsMax; or kUnfit. @param ranks at least 1.
[[nodiscard]] uint32_t rounds(const Classic& scheme, uint32_t ranks);
[[nodiscard]] uint32_t rounds(const TwoWay& scheme, uint32_t ranks);
[[nodiscard]] uint32_t rounds(const Dimensions& scheme, uint32_t ranks);
[[nodiscard]] uint32_t rounds(const Torus& scheme, uint32_t ranks);
[[nodiscard]] uint32_t rounds(const Mesh& scheme, uint32_t ranks);
[[nodiscard]] uint32_t rounds(const Tree& scheme, uint32_t ranks);

/// Add the peers of all rounds. @param ranks a size with at most kRoundsMax rounds. @param rank
/// below `ranks`. @param out an empty schedule; `rounds` stays as it is.
void fill(const Classic& scheme, uint32_t ranks, uint32_t rank, Schedule* out);
void fill(const TwoWay& scheme, uint32_t ranks, uint32_t rank, Schedule* out);
void fill(const Dimensions& scheme, uint32_t ranks, uint32_t rank, Schedule* out);
void fill(const Torus& scheme, uint32_t ranks, uint32_t rank, Schedule* out);
void fill(const Mesh& scheme, uint32_t ranks, uint32_t rank, Schedule* out);
void fill(const Tree& scheme, uint32_t ranks, uint32_t rank, Schedule* out);

}  // namespace rio::barrier::makers
