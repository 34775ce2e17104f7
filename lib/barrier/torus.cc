// Two-way dissemination along the dimensions of a torus or mesh.
#include <algorithm>
#include <array>

#include "lib/barrier/makers.hpp"

namespace rio::barrier::makers {
namespace {

/// One dimension, seen by one rank: a ring on which the rank has a position.
struct Ring {
  uint32_t length = 1;
  uint32_t position = 0;
  uint32_t step = 1;       ///< difference of the ranks of two neighbours on the line
  bool is_folded = false;  ///< the ring is folded into a line

  [[nodiscard]] uint32_t coordinate(uint32_t at) const {
    return is_folded ? folded(at, length) : at;
  }
  /// Add this to a rank, modulo 2^32, to go up the ring. @param offset below `length`.
  [[nodiscard]] uint32_t way_up(uint32_t offset) const {
    const uint32_t room = length - position;
    const uint32_t at = offset < room ? position + offset : offset - room;
    return step * (coordinate(at) - coordinate(position));
  }
  /// Add this to a rank, modulo 2^32, to go down the ring. @param offset 1 to `length` - 1.
  [[nodiscard]] uint32_t way_down(uint32_t offset) const { return way_up(length - offset); }
};

/// Whether a rank that knows of `reach` nodes on each side lacks just one node of the ring.
bool is_one_missing(uint32_t length, uint32_t reach) {
  return reach != 0 && length == 2 * reach + 2;
}

/// How many nodes on each side a rank knows of before the last round of a ring.
uint32_t last_reach(uint32_t length) {
  uint32_t reach = 0;
  while (length / 2 - reach > 2 * reach + 1) {
    reach += 2 * reach + 1;
  }
  return reach;
}

/// Rounds of Torus and Mesh.
uint32_t rounds_of_rings(const Grid& grid, uint32_t ranks) {
  if (grid.dimensions == 0 || grid.dimensions > Grid::kDimensionsMax || grid.nodes() != ranks) {
    return kUnfit;
  }
  uint32_t rounds = 0;
  uint32_t shared = 0;
  for (uint32_t d = 0; d < grid.dimensions; ++d) {
    rounds += ceil_log(3, grid.lengths[d]);
    shared += is_one_missing(grid.lengths[d], last_reach(grid.lengths[d])) ? 1 : 0;
  }
  return rounds - shared / 2;
}

/// Adds the rounds of Torus and Mesh.
class RingWalk {
 public:
  RingWalk(const Grid& grid, uint32_t rank, bool is_folded, Schedule* out)
      : rank_(rank), out_(*out) {
    uint32_t rest = rank;
    uint32_t step = 1;
    for (uint32_t d = 0; d < grid.dimensions; ++d) {
      const uint32_t length = grid.lengths[d];
      const uint32_t coordinate = rest % length;
      walk({length, is_folded ? unfolded(coordinate, length) : coordinate, step, is_folded});
      rest /= length;
      step *= length;
    }
    if (is_waiting_) {
      add_one_way(waiting_);
    }
  }

 private:
  void walk(const Ring& ring) {
    const bool is_short_of_one = is_one_missing(ring.length, last_reach(ring.length));
    if (is_short_of_one) {
      add_or_wait(ring);
    }
    uint32_t reach = 0;
    while (2 * reach + 1 < ring.length &&
           !(is_short_of_one && is_one_missing(ring.length, reach))) {
      const uint32_t stride = std::min(2 * reach + 1, ring.length / 2 - reach);
      out_.add(round_, rank_ + ring.way_up(stride), true, true);
      out_.add(round_, rank_ + ring.way_down(stride), true, true);
      reach += stride;
      ++round_;
    }
  }

  /// One round for two rings that each lack one node after their other rounds. Rounds may have any
  /// order; this one has the longest route, and a barrier ends when its last notifications are
  /// answered, so it comes before the rings' other rounds.
  ///
  /// By the other rounds a rank knows of a block of nodes, all but one of each ring. The blocks of
  /// the diagonal neighbours hold the missing row and column, since a block is more than half as
  /// long as its ring.
  void add_or_wait(const Ring& ring) {
    if (!is_waiting_) {
      waiting_ = ring;
      is_waiting_ = true;
      return;
    }
    is_waiting_ = false;
    out_.add(round_, rank_ + waiting_.way_up(1) + ring.way_up(1), true, true);
    out_.add(round_, rank_ + waiting_.way_down(1) + ring.way_down(1), true, true);
    ++round_;
  }

  /// The last round of a ring that lacks its farthest node: a neighbour on either side knows of it.
  void add_one_way(const Ring& ring) {
    out_.add(round_, rank_ + ring.way_up(1), true, false);
    out_.add(round_, rank_ + ring.way_down(1), false, true);
    ++round_;
  }

  uint32_t rank_;
  Schedule& out_;
  uint32_t round_ = 0;
  bool is_waiting_ = false;
  Ring waiting_{};
};

}  // namespace

uint32_t rounds(const Dimensions& scheme, uint32_t ranks) {
  const Grid& grid = scheme.grid;
  if (grid.dimensions == 0 || grid.dimensions > Grid::kDimensionsMax || grid.nodes() != ranks) {
    return kUnfit;
  }
  uint32_t rounds = 0;
  for (uint32_t d = 0; d < grid.dimensions; ++d) {
    rounds += ceil_log(3, grid.lengths[d]);
  }
  return rounds;
}

void fill(const Dimensions& scheme, uint32_t /*ranks*/, uint32_t rank, Schedule* out) {
  uint32_t rest = rank;
  uint32_t round = 0;
  uint32_t step = 1;
  for (uint32_t d = 0; d < scheme.grid.dimensions; ++d) {
    const uint32_t length = scheme.grid.lengths[d];
    const Ring ring{length, rest % length, step, false};
    for (uint64_t stride = 1; stride < length; stride *= 3) {
      const auto offset = static_cast<uint32_t>(stride);
      out->add(round, rank + ring.way_up(offset), true, true);
      out->add(round, rank + ring.way_down(offset), true, true);
      ++round;
    }
    rest /= length;
    step *= length;
  }
}

uint32_t rounds(const Torus& scheme, uint32_t ranks) {
  return rounds_of_rings(scheme.grid, ranks);
}

void fill(const Torus& scheme, uint32_t /*ranks*/, uint32_t rank, Schedule* out) {
  RingWalk(scheme.grid, rank, false, out);
}

uint32_t rounds(const Mesh& scheme, uint32_t ranks) {
  return rounds_of_rings(scheme.grid, ranks);
}

void fill(const Mesh& scheme, uint32_t /*ranks*/, uint32_t rank, Schedule* out) {
  RingWalk(scheme.grid, rank, true, out);
}

}  // namespace rio::barrier::makers
