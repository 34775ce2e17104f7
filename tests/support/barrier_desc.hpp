/// @file
/// Descriptors of barriers for tests. regs: BarrierDesc
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::test {

/// A peer of a round, and whether it is sent or awaited a notification.
struct PeerOfRound {
  uint32_t round;
  uint32_t which;  ///< 0 or 1
  uint32_t peer;   ///< its destID
  bool send = true;
  bool await = true;
};

/// A descriptor of group 0, epoch 0 and cookie 0.
/// @param peers each place once; places without a peer have destID ~0.
[[nodiscard]] inline regs::BarrierDesc make_barrier_desc(
    uint32_t rounds, const std::vector<PeerOfRound>& peers,
    regs::BarrierOp op = regs::BarrierOp::kRun) {
  using Control = regs::barrier_desc::Control;
  regs::BarrierDesc desc{};
  desc.control = Control::op.put(static_cast<uint32_t>(op)) | Control::rounds.put(rounds);
  std::fill(std::begin(desc.peers), std::end(desc.peers), ~0u);
  for (const PeerOfRound& each : peers) {
    const uint32_t place = 2 * each.round + each.which;
    desc.peers[place] = each.peer;
    desc.send |= uint64_t{each.send} << place;
    desc.await |= uint64_t{each.await} << place;
  }
  return desc;
}

}  // namespace rio::test
