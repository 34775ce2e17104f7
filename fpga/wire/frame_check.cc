#include "fpga/wire/frame_check.hpp"

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::wire {

using model::Frame;
using model::FrameType;
using regs::MaintOp;

std::optional<bool> is_response(FrameType type) {
  switch (type) {
    case FrameType::kAcks:
    case FrameType::kResponse:
    case FrameType::kMaintResponse:
    case FrameType::kPulled:
      return true;
    case FrameType::kMessage:
    case FrameType::kSegment:
    case FrameType::kDoorbell:
    case FrameType::kRequest:
    case FrameType::kMaintRequest:
    case FrameType::kPortWrite:
    case FrameType::kPull:
      return false;
    default:
      return std::nullopt;
  }
}

bool may_travel(const Frame& head, bool response) {
  const bool aligned = head.bytes >= sizeof(Frame) && head.bytes % model::kFrameAlign == 0;
  // The longest is a message of fast mode; a ring has room for it wherever it begins.
  return aligned && head.bytes <= model::frame_bytes(regs::kMessageBytesMax) &&
         head.type != FrameType::kPull && head.type != FrameType::kPulled &&
         is_response(head.type) == response;
}

bool is_sane_maintenance(const Frame& head) {
  const auto op = static_cast<MaintOp>(head.op);
  if (head.length < 4 || head.length > regs::kMaintBytesMax || head.length % 4 != 0 ||
      head.address % 4 != 0 || head.address >= 1u << 24) {
    return false;
  }
  return op == MaintOp::kRead ||
         (op == MaintOp::kWrite && model::frame_bytes(head.length) <= head.bytes);
}

}  // namespace rio::wire
