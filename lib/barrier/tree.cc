// Gather to a root and broadcast.
#include <array>

#include "lib/barrier/makers.hpp"

namespace rio::barrier::makers {
namespace {

/// Members that are left in one round of the gathering, and their division into clusters of nearly
/// equal size. A member is named by its index among those left.
class Level {
 public:
  Level() = default;
  /// @param members at least 2. @param arity 2 or 3.
  Level(uint32_t members, uint32_t arity)
      : members_(members), clusters_(arity == 2 ? members / 2 : members / 3 + (members % 3 != 0)) {}

  [[nodiscard]] uint32_t clusters() const { return clusters_; }
  /// Its members, except for the leader of each cluster.
  [[nodiscard]] uint32_t others() const { return members_ - clusters_; }

  [[nodiscard]] uint32_t cluster_of(uint32_t member) const {
    return static_cast<uint32_t>(((uint64_t{member} + 1) * clusters_ - 1) / members_);
  }
  [[nodiscard]] uint32_t first(uint32_t cluster) const {
    return static_cast<uint32_t>(uint64_t{cluster} * members_ / clusters_);
  }
  /// The middle one of a cluster of three, the first one of two: the member that goes on.
  [[nodiscard]] uint32_t leader(uint32_t cluster) const {
    return first(cluster) + (first(cluster + 1) - first(cluster) - 1) / 2;
  }
  [[nodiscard]] bool is_leader(uint32_t member) const {
    return leader(cluster_of(member)) == member;
  }
  /// The index of a member that is no leader, among those that are none.
  [[nodiscard]] uint32_t other_index(uint32_t member) const {
    const uint32_t cluster = cluster_of(member);
    return member - cluster - (member > leader(cluster) ? 1 : 0);
  }
  /// The next member that is no leader. Two leaders are never neighbours.
  [[nodiscard]] uint32_t next_other(uint32_t member) const {
    return member + (is_leader(member + 1) ? 2 : 1);
  }
  [[nodiscard]] uint32_t previous_other(uint32_t member) const {
    return member - (is_leader(member - 1) ? 2 : 1);
  }

 private:
  uint32_t members_ = 0;
  uint32_t clusters_ = 0;
};

/// The levels of a tree, and the ranks of their members.
class Levels {
 public:
  /// @param ranks a size with at most kRoundsMax rounds.
  Levels(const Tree& tree, uint32_t ranks) {
    for (uint32_t members = ranks; members > 1; members = levels_[count_ - 1].clusters()) {
      levels_[count_++] = Level(members, tree.arity);
    }
  }

  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] const Level& at(uint32_t level) const { return levels_[level]; }
  /// @param member of `level`; of level count() there is one: the root.
  [[nodiscard]] uint32_t rank_of(uint32_t level, uint32_t member) const {
    for (; level != 0; --level) {
      member = levels_[level - 1].leader(member);
    }
    return member;
  }

 private:
  static constexpr uint32_t kLevelsMax = kRoundsMax / 2;

  uint32_t count_ = 0;
  std::array<Level, kLevelsMax> levels_{};
};

/// Let a member that waits for the broadcast exchange notifications with neighbours that wait too,
/// in rounds `begin` to `end` - 1: in pairs, and the last three of an odd number in a ring.
void fill_idle(const Levels& levels, uint32_t level, uint32_t member, uint32_t begin, uint32_t end,
               Schedule* out) {
  const Level& at = levels.at(level);
  const uint32_t index = at.other_index(member);
  const uint32_t count = at.others();
  if (begin >= end) {
    return;
  }
  uint32_t sent = 0;
  uint32_t awaited = 0;
  if (count % 2 == 1 && index + 3 >= count) {
    const bool is_first = index + 3 == count;
    const bool is_last = index + 1 == count;
    sent = is_last ? at.previous_other(at.previous_other(member)) : at.next_other(member);
    awaited = is_first ? at.next_other(at.next_other(member)) : at.previous_other(member);
  } else {
    sent = index % 2 == 0 ? at.next_other(member) : at.previous_other(member);
    awaited = sent;
  }
  for (uint32_t round = begin; round < end; ++round) {
    out->add(round, levels.rank_of(level, sent), true, false);
    out->add(round, levels.rank_of(level, awaited), false, true);
  }
}

}  // namespace

uint32_t rounds(const Tree& scheme, uint32_t ranks) {
  if (scheme.arity != 2 && scheme.arity != 3) {
    return kUnfit;
  }
  uint32_t levels = 0;
  for (uint32_t members = ranks; members > 1; members = Level(members, scheme.arity).clusters()) {
    ++levels;
  }
  return 2 * levels;
}

void fill(const Tree& scheme, uint32_t ranks, uint32_t rank, Schedule* out) {
  const Levels levels(scheme, ranks);
  uint32_t member = rank;
  for (uint32_t level = 0; level < levels.count(); ++level) {
    const uint32_t gather = level;
    const uint32_t broadcast = 2 * levels.count() - 1 - level;
    const Level& at = levels.at(level);
    const uint32_t cluster = at.cluster_of(member);
    const uint32_t leader = at.leader(cluster);
    if (member != leader) {
      const uint32_t leader_rank = levels.rank_of(level, leader);
      out->add(gather, leader_rank, true, false);
      out->add(broadcast, leader_rank, false, true);
      fill_idle(levels, level, member, gather + 1, broadcast, out);
      return;
    }
    for (uint32_t other = at.first(cluster); other < at.first(cluster + 1); ++other) {
      if (other != leader) {
        const uint32_t other_rank = levels.rank_of(level, other);
        out->add(gather, other_rank, false, true);
        out->add(broadcast, other_rank, true, false);
      }
    }
    member = cluster;
  }
}

}  // namespace rio::barrier::makers

namespace rio::barrier {

uint32_t root_of(const Tree& tree, uint32_t ranks) {
  const makers::Levels levels(tree, ranks);
  return levels.rank_of(levels.count(), 0);
}

}  // namespace rio::barrier
