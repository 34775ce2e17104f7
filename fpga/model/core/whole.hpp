/// @file
/// Checks the length of a frame against its header.
#pragma once

#include "fpga/model/frame.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

/// Payload bytes of a frame. @param length Frame::length: it may count bytes requested.
[[nodiscard]] inline uint32_t payload_bytes(FrameType type, uint8_t op, uint32_t length) {
  const auto dma_op = static_cast<regs::DmaOp>(op);
  switch (type) {
    case FrameType::kMessage:
    case FrameType::kSegment:
      return padded(length);
    case FrameType::kRequest:
      if (dma_op == regs::DmaOp::kAtomicCswap) {
        return 2 * length;  // two operands
      }
      return dma_op == regs::DmaOp::kNwrite || dma_op == regs::DmaOp::kNwriteR ||
                     dma_op == regs::DmaOp::kSwrite || dma_op == regs::DmaOp::kAtomicSwap
                 ? length
                 : 0;
    case FrameType::kMaintRequest:
      return static_cast<regs::MaintOp>(op) == regs::MaintOp::kWrite ? length : 0;
    default:
      return type == FrameType::kDoorbell ? 0 : length;
  }
}

/// Whether the payload length fits the frame. Frames from other processes are untrusted.
[[nodiscard]] inline bool whole(const Frame& frame) {
  return frame_bytes(payload_bytes(frame.type, frame.op, frame.length)) <= frame.bytes;
}

}  // namespace rio::model
