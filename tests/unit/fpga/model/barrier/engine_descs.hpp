/// @file
/// Descriptors of barriers for tests of the engine.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "fpga/model/barrier/engine.hpp"

namespace rio::model::barrier {

/// A peer of a round, and whether it is sent or awaited a notification.
struct Way {
  uint32_t round;
  uint32_t which;
  uint32_t peer;
  bool send = true;
  bool await = true;
};

/// A descriptor of group 5, cookie 77.
/// @param ways each peer once; places without a peer have destID ~0.
inline regs::BarrierDesc desc(uint32_t rounds, const std::vector<Way>& ways, uint32_t epoch = 0,
                              regs::BarrierOp op = regs::BarrierOp::kRun) {
  using Control = regs::barrier_desc::Control;
  regs::BarrierDesc out{};
  out.control = Control::op.put(static_cast<uint32_t>(op)) | Control::rounds.put(rounds);
  out.group = 5;
  out.epoch = epoch;
  out.cookie = 77;
  std::fill(std::begin(out.peers), std::end(out.peers), ~0u);
  for (const Way& way : ways) {
    const uint32_t place = 2 * way.round + way.which;
    out.peers[place] = way.peer;
    out.send |= uint64_t{way.send} << place;
    out.await |= uint64_t{way.await} << place;
  }
  return out;
}

}  // namespace rio::model::barrier
