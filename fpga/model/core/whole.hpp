/// @file
/// Checks a frame against its header.
#pragma once

#include "fpga/model/frame.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

/// Whether the payload length fits the frame. Frames from other processes are untrusted.
[[nodiscard]] inline bool whole(const Frame& frame) {
  uint32_t payload = 0;
  switch (frame.type) {
    case FrameType::kMessage:
    case FrameType::kSegment:
      payload = padded(frame.length);
      break;
    case FrameType::kRequest: {
      const auto op = static_cast<regs::DmaOp>(frame.op);
      const bool data = op == regs::DmaOp::kNwrite || op == regs::DmaOp::kNwriteR ||
                        op == regs::DmaOp::kSwrite || op == regs::DmaOp::kAtomicSwap;
      payload = data ? frame.length : op == regs::DmaOp::kAtomicCswap ? 2u * frame.length : 0;
      break;
    }
    case FrameType::kMaintRequest:
      payload = static_cast<regs::MaintOp>(frame.op) == regs::MaintOp::kWrite ? frame.length : 0;
      break;
    default:
      payload = frame.type == FrameType::kDoorbell ? 0 : frame.length;
  }
  return frame_bytes(payload) <= frame.bytes;
}

}  // namespace rio::model
