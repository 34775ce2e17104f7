// Schedules that are translates of rank 0's, checked by the differences between a member and its
// peers.
#include <algorithm>
#include <cerrno>

#include "base/formatted.hpp"
#include "lib/barrier/schedule_check.hpp"

namespace rio::barrier {
namespace {

/// Positions on the rings of the lattice, one for each dimension; or differences of positions.
using Positions = Grid::Lengths;

/// The lattice with tables for its rings.
class Rings {
 public:
  explicit Rings(const Lattice& lattice) : grid_(lattice.grid) {
    uint32_t step = 1;
    for (uint32_t d = 0; d < grid_.dimensions; ++d) {
      const uint32_t length = grid_.lengths[d];
      parts_.emplace_back(length);
      for (uint32_t at = 0; at < length; ++at) {
        parts_[d][at] = step * (lattice.is_folded ? folded(at, length) : at);
      }
      step *= length;
    }
  }

  /// Whether the positions of each ring stand for all its coordinates.
  [[nodiscard]] bool is_bijective() const {
    uint32_t step = 1;
    for (uint32_t d = 0; d < grid_.dimensions; ++d) {
      std::vector<uint32_t> sorted = parts_[d];
      std::sort(sorted.begin(), sorted.end());
      for (uint32_t at = 0; at < sorted.size(); ++at) {
        if (sorted[at] != at * step) {
          return false;
        }
      }
      step *= grid_.lengths[d];
    }
    return true;
  }
  [[nodiscard]] const Grid& grid() const { return grid_; }
  [[nodiscard]] uint32_t dimensions() const { return grid_.dimensions; }
  [[nodiscard]] uint32_t length(uint32_t d) const { return grid_.lengths[d]; }
  /// The share of the rank that a position in one dimension adds.
  [[nodiscard]] uint32_t part(uint32_t d, uint32_t position) const { return parts_[d][position]; }

  [[nodiscard]] uint32_t rank_at(const Positions& at) const {
    uint32_t rank = 0;
    for (uint32_t d = 0; d < dimensions(); ++d) {
      rank += part(d, at[d]);
    }
    return rank;
  }
  [[nodiscard]] Positions positions_of(uint32_t rank) const {
    Positions at{};
    uint32_t step = 1;
    for (uint32_t d = 0; d < dimensions(); ++d) {
      const uint32_t part = rank / step % length(d) * step;
      at[d] = static_cast<uint32_t>(std::find(parts_[d].begin(), parts_[d].end(), part) -
                                    parts_[d].begin());
      step *= length(d);
    }
    return at;
  }
  [[nodiscard]] uint32_t sum(uint32_t d, uint32_t position, uint32_t offset) const {
    const uint32_t room = length(d) - position;
    return offset < room ? position + offset : offset - room;
  }
  [[nodiscard]] bool are_opposite(const Positions& a, const Positions& b) const {
    for (uint32_t d = 0; d < dimensions(); ++d) {
      if (sum(d, a[d], b[d]) != 0) {
        return false;
      }
    }
    return true;
  }
  /// Go to the next node, in the order of positions. @return false: it was the last one.
  [[nodiscard]] bool advance(Positions* at, uint32_t from) const {
    for (uint32_t d = from; d < dimensions(); ++d) {
      if (++(*at)[d] < length(d)) {
        return true;
      }
      (*at)[d] = 0;
    }
    return false;
  }

 private:
  Grid grid_;
  std::vector<std::vector<uint32_t>> parts_;
};

/// A peer of rank 0, and where it is from there.
struct Offset {
  uint32_t index = 0;     ///< of Schedule::peers
  Positions positions{};  ///< rank 0 is at position 0 of each ring
};

std::vector<Offset> offsets_of(const Rings& rings, const Schedule& schedule) {
  std::vector<Offset> offsets;
  for (uint32_t i = 0; i < schedule.peers.size(); ++i) {
    if (schedule.peers[i] != kNoPeer) {
      offsets.push_back({i, rings.positions_of(schedule.peers[i])});
    }
  }
  return offsets;
}

/// Computes the peers of rank 0's translates.
class Translates {
 public:
  Translates(const Rings& rings, const std::vector<Offset>& offsets) : rings_(rings) {
    for (const Offset& offset : offsets) {
      used_.push_back(offset.index);
      for (uint32_t d = 0; d < rings.dimensions(); ++d) {
        if (offset.positions[d] != 0) {
          steps_.push_back({offset.index, d, offset.positions[d]});
        }
      }
    }
  }

  /// @param rank of the node at `at`. @param peers all others than rank 0's stay as they are.
  void move_to(const Positions& at, uint32_t rank, Schedule::Peers* peers) const {
    for (const uint32_t index : used_) {
      (*peers)[index] = rank;
    }
    for (const Step& step : steps_) {
      const uint32_t d = step.dimension;
      const uint32_t there = rings_.sum(d, at[d], step.offset);
      (*peers)[step.index] += rings_.part(d, there) - rings_.part(d, at[d]);
    }
  }

 private:
  /// The offset to a peer in one dimension.
  struct Step {
    uint32_t index = 0;  ///< of Schedule::peers
    uint32_t dimension = 0;
    uint32_t offset = 0;
  };

  const Rings& rings_;
  std::vector<uint32_t> used_;
  std::vector<Step> steps_;
};

std::string name_of(uint32_t peer) {
  return peer == kNoPeer ? "none" : "rank " + std::to_string(peer);
}

/// Check that `schedule` has the rounds and bits of `base`, and the peers that are expected.
/// @return 0, -EINVAL.
int check_translate(const Schedule& base, const Schedule::Peers& expected, uint32_t rank,
                    const Schedule& schedule, std::string* problem) {
  if (schedule.rounds != base.rounds || schedule.send != base.send ||
      schedule.await != base.await) {
    return base::fail(problem, "rank %u has other rounds or bits than rank 0", rank);
  }
  if (schedule.peers != expected) {
    const auto at = std::mismatch(expected.begin(), expected.end(), schedule.peers.begin());
    return base::fail(problem, "rank %u, round %u: the peer is %s instead of %s", rank,
                      static_cast<uint32_t>(at.first - expected.begin()) / kWays,
                      name_of(*at.second).c_str(), name_of(*at.first).c_str());
  }
  return 0;
}

/// Check that for each peer that is sent a notification, one in the opposite direction is awaited
/// in that round, and the other way round. @return 0, -EINVAL.
int check_opposites(const Rings& rings, const std::vector<Offset>& offsets, const Schedule& base,
                    std::string* problem) {
  const auto count = [&](const Offset& of, uint64_t bits) {
    return std::count_if(offsets.begin(), offsets.end(), [&](const Offset& other) {
      return other.index / kWays == of.index / kWays && (bits >> other.index & 1) != 0 &&
             rings.are_opposite(of.positions, other.positions);
    });
  };
  for (const Offset& offset : offsets) {
    const bool is_sent = (base.send >> offset.index & 1) != 0;
    const bool is_awaited = (base.await >> offset.index & 1) != 0;
    if ((is_sent && count(offset, base.await) != 1) ||
        (is_awaited && count(offset, base.send) != 1)) {
      return base::fail(problem,
                        "rank 0, round %u: what it exchanges with rank %u has no counterpart in "
                        "the opposite direction",
                        offset.index / kWays, base.peers[offset.index]);
    }
  }
  return 0;
}

/// A set of nodes, a byte each, in the order of positions.
using NodeSet = std::vector<uint8_t>;

/// Add to `later` the nodes of `known`, moved by an offset.
void add_moved(const Rings& rings, const NodeSet& known, const Positions& offset, NodeSet* later) {
  const uint32_t length = rings.length(0);
  const uint32_t shift = offset[0];
  Positions row{};  // all nodes with the same positions in the dimensions from 1 on
  size_t from = 0;
  do {
    size_t to = 0;
    size_t step = length;
    for (uint32_t d = 1; d < rings.dimensions(); ++d) {
      to += step * rings.sum(d, row[d], offset[d]);
      step *= rings.length(d);
    }
    const uint8_t* const source = known.data() + from;
    uint8_t* const target = later->data() + to;
    for (uint32_t x = 0; x < length - shift; ++x) {
      target[x + shift] |= source[x];
    }
    for (uint32_t x = length - shift; x < length; ++x) {
      target[x - (length - shift)] |= source[x];
    }
    from += length;
  } while (rings.advance(&row, 1));
}

/// Check that rank 0 learns of all nodes. By translation, a peer knows what rank 0 knows, moved by
/// the peer's offset. @return 0, -EINVAL.
int check_offsets_cover(const Rings& rings, const std::vector<Offset>& offsets,
                        const Schedule& base, std::string* problem) {
  NodeSet known(rings.grid().nodes());
  known[0] = 1;
  for (uint32_t round = 0; round < base.rounds; ++round) {
    NodeSet later = known;
    for (const Offset& offset : offsets) {
      if (offset.index / kWays == round && (base.await >> offset.index & 1) != 0) {
        add_moved(rings, known, offset.positions, &later);
      }
    }
    known.swap(later);
  }
  Positions at{};
  for (const uint8_t is_known : known) {
    if (is_known == 0) {
      return base::fail(problem, "rank 0 leaves without knowing that rank %u arrived",
                        rings.rank_at(at));
    }
    (void)rings.advance(&at, 0);
  }
  return 0;
}

}  // namespace

int check_translates(const Lattice& lattice, const ScheduleOf& schedule_of, std::string* problem) {
  const uint32_t ranks = lattice.grid.nodes();
  if (ranks == 0 || lattice.grid.dimensions == 0) {
    return base::fail(problem, "a lattice without nodes, or with too many");
  }
  const Rings rings(lattice);
  Schedule base;
  if (schedule_of(0, &base) != 0 || !rings.is_bijective()) {
    return base::fail(problem, "rank 0 has no schedule, or a ring leaves a node out");
  }
  if (const BrokenRule broken = broken_rule(base, ranks, 0); broken.rule != nullptr) {
    return base::fail(problem, "rank 0, round %u: %s", broken.round, broken.rule);
  }
  const std::vector<Offset> offsets = offsets_of(rings, base);
  const Translates translates(rings, offsets);
  Schedule::Peers expected = Schedule{}.peers;
  Positions at{};
  Schedule schedule;
  do {
    const uint32_t rank = rings.rank_at(at);
    if (schedule_of(rank, &schedule) != 0) {
      return base::fail(problem, "rank %u has no schedule", rank);
    }
    translates.move_to(at, rank, &expected);
    if (check_translate(base, expected, rank, schedule, problem) != 0) {
      return -EINVAL;
    }
  } while (rings.advance(&at, 0));
  if (check_opposites(rings, offsets, base, problem) != 0) {
    return -EINVAL;
  }
  return check_offsets_cover(rings, offsets, base, problem);
}

}  // namespace rio::barrier
