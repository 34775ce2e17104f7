/// @file
/// The dimensions of a torus or mesh, and the order of its nodes.
///
/// Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <array>
#include <cstdint>

namespace rio::barrier {

/// The lengths of a torus or mesh. Rank = x0 + n0 * (x1 + n1 * (x2 + ...)): the first coordinate
/// changes fastest.
struct Grid {
  static constexpr uint32_t kDimensionsMax = 20;
  using Lengths = std::array<uint32_t, kDimensionsMax>;

  uint32_t dimensions = 0;  ///< 1 to kDimensionsMax
  Lengths lengths{};        ///< each at least 1

  /// How many nodes; 0: more than a rank of 32 bits can name, or a length is 0.
  [[nodiscard]] constexpr uint32_t nodes() const {
    uint64_t product = 1;
    for (uint32_t d = 0; d < dimensions && product <= UINT32_MAX; ++d) {
      product *= lengths[d];
    }
    return product <= UINT32_MAX ? static_cast<uint32_t>(product) : 0;
  }
  bool operator==(const Grid& other) const = default;
};

/// The coordinate on a line of a position on its folded ring. The ring needs no wrap-around link:
/// it visits every other node on the way up and the rest on the way down, so that neighbours on the
/// ring are at most two nodes apart on the line. @param position below `length`.
[[nodiscard]] constexpr uint32_t folded(uint32_t position, uint32_t length) {
  return position < length - position ? 2 * position : 2 * (length - position) - 1;
}

/// The position on the folded ring of a coordinate on its line. @param coordinate below `length`.
[[nodiscard]] constexpr uint32_t unfolded(uint32_t coordinate, uint32_t length) {
  return coordinate % 2 == 0 ? coordinate / 2 : length - (coordinate + 1) / 2;
}

}  // namespace rio::barrier
