/// @file
/// The words of barriers as the engine uses them: what a member sends and awaits, and
/// notifications.
#pragma once

#include <array>
#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model::barrier {

/// Number of a peer in a descriptor: 2r + w is peer w of round r. Bit of SEND and AWAIT.
using Place = uint32_t;
inline constexpr Place kPlaces = 2 * regs::kBarrierRoundsMax;
/// In `peers`: this place is not used.
inline constexpr uint32_t kNoPeer = ~0u;

[[nodiscard]] constexpr uint64_t bit(Place place) {
  return uint64_t{1} << place;
}
[[nodiscard]] constexpr uint32_t round_of(Place place) {
  return place / 2;
}
/// Bits of the rounds below `round`.
[[nodiscard]] constexpr uint64_t below(uint32_t round) {
  return bit(2 * round) - 1;
}

/// The parts of a notification's information. regs: barrier_notice.
struct Notice {
  uint32_t group;
  uint32_t epoch;  ///< its low 3 bits
  uint32_t round;  ///< of the sender, or regs::kBarrierRoundCancel
  /// A pledge: its sender takes the receiver's notification of the same round whenever it comes, so
  /// this one answers it. Not a part of info().
  bool pledges = false;

  [[nodiscard]] static constexpr Notice of(uint16_t info) {
    using Info = regs::barrier_notice::Info;
    return {Info::group.get(info), Info::epoch.get(info), Info::round.get(info)};
  }
  [[nodiscard]] constexpr uint16_t info() const {
    using Info = regs::barrier_notice::Info;
    return static_cast<uint16_t>(Info::barrier.put(1) | Info::group.put(group) |
                                 Info::epoch.put(epoch & kEpochMask) | Info::round.put(round));
  }
  [[nodiscard]] constexpr bool is_cancel() const { return round == regs::kBarrierRoundCancel; }

  static constexpr uint32_t kEpochMask = regs::barrier_notice::Info::epoch.max();
};

/// The notifications that a barrier sends and awaits: the words of a well-formed descriptor that
/// say so, without the others, since a simulator keeps a million plans.
struct Plan {
  std::array<uint32_t, kPlaces> peers;
  uint64_t send;
  uint64_t await;
  uint32_t rounds;
  uint32_t prio;

  /// Read a descriptor. @param desc the host's bytes. @param out its places are set up to the last
  /// round. @return false: the descriptor breaks the contract (kBadDescriptor), and `out` is no
  /// plan.
  [[nodiscard]] static bool of(const regs::BarrierDesc& desc, Plan* out);
  /// The place at which a notification of `source` is awaited in a round. @return kPlaces: none.
  [[nodiscard]] Place awaited(uint32_t source, uint32_t round) const;
  /// A place of a peer, in any round. @param source any destID. @return kPlaces: it is no peer.
  [[nodiscard]] Place peer(uint32_t source) const;
  /// The place at which a notification counts. @param round of the notification: a cancellation
  /// counts at a place of its peer. @return kPlaces: nowhere.
  [[nodiscard]] Place expected(uint32_t source, uint32_t round) const {
    return round == regs::kBarrierRoundCancel ? peer(source) : awaited(source, round);
  }
  /// Places to which a cancellation goes: one of each peer.
  [[nodiscard]] uint64_t distinct_peers() const;
};

}  // namespace rio::model::barrier
