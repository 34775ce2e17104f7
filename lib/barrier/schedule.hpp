/// @file
/// What one member of a group sends and awaits in each round of a barrier [S1], in ranks, and the
/// descriptor that tells it to the card.
///
/// A member sends its notifications of round r when all that it awaits in rounds below r has
/// arrived, and leaves the barrier when everything that it awaits has arrived. A notification
/// carries the sender's round, so its receiver awaits it in the round of the same number.
///
/// Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cerrno>
#include <concepts>
#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::barrier {

inline constexpr uint32_t kRoundsMax = regs::kBarrierRoundsMax;
/// Peers in one round.
inline constexpr uint32_t kWays = 2;
/// The rank of an unused place for a peer, and its destID in a descriptor.
inline constexpr uint32_t kNoPeer = UINT32_MAX;

static_assert(sizeof(regs::BarrierDesc::peers) == sizeof(uint32_t) * kWays * kRoundsMax);

/// The bit of Schedule::send and Schedule::await for a peer. @param round 0 to kRoundsMax - 1.
/// @param way 0 or 1.
[[nodiscard]] constexpr uint64_t peer_bit(uint32_t round, uint32_t way) {
  return uint64_t{1} << (kWays * round + way);
}

/// The schedule of one member. Peers 2r and 2r + 1 belong to round r, as in regs::BarrierDesc.
struct Schedule {
  using Peers = std::array<uint32_t, kWays * kRoundsMax>;

  uint32_t rounds = 0;  ///< 0 to kRoundsMax; 0: a group of one, which needs no descriptor
  Peers peers = no_peers();
  uint64_t send = 0;
  uint64_t await = 0;

  [[nodiscard]] uint32_t peer(uint32_t round, uint32_t way) const {
    return peers[kWays * round + way];
  }
  [[nodiscard]] bool sends(uint32_t round, uint32_t way) const {
    return (send & peer_bit(round, way)) != 0;
  }
  [[nodiscard]] bool awaits(uint32_t round, uint32_t way) const {
    return (await & peer_bit(round, way)) != 0;
  }
  /// Add a peer to a round, or a direction to a peer that the round has already. At most kWays
  /// different peers a round. @param round below kRoundsMax.
  void add(uint32_t round, uint32_t peer, bool is_sent, bool is_awaited) {
    assert(round < kRoundsMax);
    uint32_t* const places = &peers[kWays * round];
    const uint32_t way = places[0] == kNoPeer || places[0] == peer ? 0 : 1;
    assert(places[way] == kNoPeer || places[way] == peer);
    places[way] = peer;
    send |= is_sent ? peer_bit(round, way) : 0;
    await |= is_awaited ? peer_bit(round, way) : 0;
  }
  /// Call `each(rank)` once for each rank that is a peer in any round.
  template <std::invocable<uint32_t> Each>
  void for_each_peer(Each&& each) const {
    for (auto at = peers.begin(); at != peers.end(); ++at) {
      if (*at != kNoPeer && std::find(peers.begin(), at, *at) == at) {
        each(*at);
      }
    }
  }
  bool operator==(const Schedule& other) const = default;

 private:
  static constexpr Peers no_peers() {
    Peers peers{};
    peers.fill(kNoPeer);
    return peers;
  }
};

/// The rule that a schedule breaks, so that the card would refuse it.
struct BrokenRule {
  const char* rule = nullptr;  ///< null: none is broken
  uint32_t round = 0;
};

/// Check the card's rules for descriptors, and that each peer is another rank of the group.
/// @param ranks of the group. @param rank whose schedule it is.
[[nodiscard]] BrokenRule broken_rule(const Schedule& schedule, uint32_t ranks, uint32_t rank);

/// The words of a descriptor that are not in the schedule.
struct DescriptorTerms {
  uint32_t group = 0;  ///< 0 to kGroupMax
  uint32_t epoch = 0;
  uint32_t cookie = 0;
  uint32_t prio = 0;  ///< 0 to kPrioMax
  regs::BarrierOp op = regs::BarrierOp::kRun;
};
inline constexpr uint32_t kGroupMax = 127;
inline constexpr uint32_t kPrioMax = 2;

/// Fill in all words of a descriptor but `peers`. @return 0; -EINVAL: a term is out of range, or
/// the schedule has no rounds or too many.
[[nodiscard]] int write_words(const Schedule& schedule, const DescriptorTerms& terms,
                              regs::BarrierDesc* out);

/// Write the descriptor of a schedule. Costs O(rounds); allocates nothing.
/// @param schedule one without a broken rule.
/// @param dest_id_of gives the destID of a rank.
/// @param out set only on success.
/// @return 0; -EINVAL: as write_words(), or a destID is all ones, or both peers of a round have the
/// same destID, which the card cannot tell apart.
template <std::invocable<uint32_t> DestIdOf>
[[nodiscard]] int write_descriptor(const Schedule& schedule, const DescriptorTerms& terms,
                                   DestIdOf&& dest_id_of, regs::BarrierDesc* out) {
  regs::BarrierDesc desc{};
  if (const int error = write_words(schedule, terms, &desc); error != 0) {
    return error;
  }
  const Schedule::Peers& peers = schedule.peers;
  for (uint32_t i = 0; i < peers.size(); ++i) {
    desc.peers[i] = peers[i] == kNoPeer ? kNoPeer : static_cast<uint32_t>(dest_id_of(peers[i]));
    const bool is_lost = peers[i] != kNoPeer && desc.peers[i] == kNoPeer;
    if (is_lost ||
        (i % kWays == 1 && desc.peers[i] != kNoPeer && desc.peers[i] == desc.peers[i - 1])) {
      return -EINVAL;
    }
  }
  *out = desc;
  return 0;
}

}  // namespace rio::barrier
