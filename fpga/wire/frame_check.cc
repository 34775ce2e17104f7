#include "fpga/wire/frame_check.hpp"

#include <cstring>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::wire {

using model::Frame;
using model::FrameType;

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

Frame head_of(const uint8_t* frame) {
  Frame head;
  std::memcpy(static_cast<void*>(&head), frame, sizeof(head));
  return head;
}

bool put_frame(model::FrameWriter& ring, const Frame& head, const uint8_t* payload) {
  Frame* const to = ring.reserve(head.bytes);
  if (to == nullptr) {
    return false;
  }
  constexpr size_t kSkip = sizeof(head.bytes);  // that field belongs to the ring
  std::memcpy(reinterpret_cast<uint8_t*>(to) + kSkip,
              reinterpret_cast<const uint8_t*>(&head) + kSkip, sizeof(head) - kSkip);
  std::memcpy(to->payload(), payload, head.bytes - sizeof(head));
  ring.commit(to, head.bytes);
  return true;
}

}  // namespace rio::wire
