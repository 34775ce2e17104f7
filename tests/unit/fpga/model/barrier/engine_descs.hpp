/// @file
/// Descriptors of barriers for tests of the engine.
#pragma once

#include <cstdint>
#include <vector>

#include "fpga/regs/gen/rio_regs.hpp"
#include "tests/support/barrier_desc.hpp"

namespace rio::model::barrier {

/// A descriptor of group 5, cookie 77.
inline regs::BarrierDesc desc(uint32_t rounds, const std::vector<test::PeerOfRound>& peers,
                              uint32_t epoch = 0, regs::BarrierOp op = regs::BarrierOp::kRun) {
  regs::BarrierDesc out = test::make_barrier_desc(rounds, peers, op);
  out.group = 5;
  out.epoch = epoch;
  out.cookie = 77;
  return out;
}

}  // namespace rio::model::barrier
