/// @file
/// Schemes: the rules by which each member of a group computes its schedule from its rank and the
/// size of the group, without communication.
///
/// Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "lib/barrier/grid.hpp"
#include "lib/barrier/schedule.hpp"

namespace rio::barrier {

/// Classic dissemination: in round s a member sends to rank + 2^s and awaits rank - 2^s, modulo the
/// size. ceil(log2 ranks) rounds. [S1]
struct Classic {
  bool operator==(const Classic& /*other*/) const = default;
};

/// Two-way dissemination by rank order: in round s a member sends to and awaits rank + 3^s and
/// rank - 3^s, modulo the size. ceil(log3 ranks) rounds. [S1]
struct TwoWay {
  bool operator==(const TwoWay& /*other*/) const = default;
};

/// Two-way dissemination along one dimension of a torus after the other, with strides 3^s.
struct Dimensions {
  Grid grid{};
  bool operator==(const Dimensions& other) const = default;
};

/// Two-way dissemination along the dimensions of a torus with the shortest routes: the last stride
/// of a dimension is no longer than the distance still missing, so that the distances of all rounds
/// add up to the diameter. Two dimensions that lack one node each share a round.
struct Torus {
  Grid grid{};
  bool operator==(const Torus& other) const = default;
};

/// The scheme Torus on the folded rings of a mesh, which has no wrap-around links. The distances of
/// all rounds add up to the diameter, and one more for each dimension of even length.
struct Mesh {
  Grid grid{};
  bool operator==(const Mesh& other) const = default;
};

/// Gather to a root and broadcast back. In each round of the gathering the members that are left
/// form clusters of `arity` neighbours (two or three, where their number is not a multiple), and
/// the leader of each cluster goes on. A member that waits for the broadcast exchanges
/// notifications with a neighbour that waits too, since no round of a descriptor may be empty.
struct Tree {
  uint32_t arity = 3;  ///< 2 or 3
  bool operator==(const Tree& other) const = default;
};

using Scheme = std::variant<Classic, TwoWay, Dimensions, Torus, Mesh, Tree>;

/// Read "classic", "two-way", "dimensions:8x4x4", "torus:8x4x4", "mesh:8x4", "tree", "tree:2" or
/// "tree:3".
/// @param out set only on success. @param error one line with the remedy; set only on failure.
/// @return 0, -EINVAL.
[[nodiscard]] int parse_scheme(std::string_view text, Scheme* out, std::string* error);

/// The text that parse_scheme() reads.
[[nodiscard]] std::string to_string(const Scheme& scheme);

/// How many rounds a group of `ranks` needs.
/// @param out 0 (a group of one) to kRoundsMax; set only on success.
/// @return 0; -EINVAL: no ranks, or another number than the grid has nodes, or a bad grid or arity;
/// -E2BIG: more than kRoundsMax rounds.
[[nodiscard]] int count_rounds(const Scheme& scheme, uint32_t ranks, uint32_t* out);

/// Check that a scheme fits a group, with an error text for the user.
/// @param error one line with the remedy; set only on failure. @return as count_rounds().
[[nodiscard]] int check_fits(const Scheme& scheme, uint32_t ranks, std::string* error);

/// Compute the schedule of a rank. Costs O(rounds), for Tree O(rounds^2); allocates nothing.
/// @param rank below `ranks`, else -EINVAL. @param out set only on success.
/// @return as count_rounds().
[[nodiscard]] int make_schedule(const Scheme& scheme, uint32_t ranks, uint32_t rank, Schedule* out);

/// The rank at which a tree gathers. @param ranks a size that count_rounds() accepts.
[[nodiscard]] uint32_t root_of(const Tree& tree, uint32_t ranks);

}  // namespace rio::barrier
