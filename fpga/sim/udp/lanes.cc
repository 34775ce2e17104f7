#include "fpga/sim/udp/lanes.hpp"

#include <algorithm>
#include <cstring>

namespace rio::sim::udp {
namespace {

/// Longest frame: a message of 4 KiB and its header, with room to spare.
constexpr uint32_t kFrameBytesMax = 4352;

[[nodiscard]] bool possible(uint32_t bytes) {
  return bytes >= sizeof(model::Frame) && bytes <= kFrameBytesMax &&
         bytes % model::kFrameAlign == 0;
}

[[nodiscard]] uint32_t length_of(const uint8_t* frame) {
  uint32_t bytes = 0;
  std::memcpy(&bytes, frame, sizeof(bytes));
  return bytes;
}

}  // namespace

bool Lanes::gather(Session* session) {
  const bool responses = gather(session, Lane::kResponses);
  const bool requests = gather(session, Lane::kRequests);
  return responses || requests;
}

bool Lanes::gather(Session* session, Lane lane) {
  One& from = of(lane);
  bool any = false;
  while (from.out.reader.peek() != nullptr) {
    const std::span<uint8_t> unit = session->begin_unit(lane);
    if (unit.empty()) {
      break;
    }
    session->end_unit(lane, fill(from, unit.first(session->unit_bytes())));
    any = true;
  }
  if (any) {
    from.out.reader.release();
  }
  return any;
}

size_t Lanes::fill(One& from, std::span<uint8_t> unit) {
  size_t used = 0;
  const model::InFrame* frame = from.out.reader.peek();
  while (frame != nullptr && used < unit.size()) {
    const size_t bytes = std::min<size_t>(frame->bytes - from.sent, unit.size() - used);
    uint8_t* const to = unit.data() + used;
    std::memcpy(to, frame->at + from.sent, bytes);
    if (from.sent == 0) {  // units are cut so that a header is never apart
      model::Frame header = *frame;
      header.source -= ids_.ours;
      header.dest -= ids_.theirs;
      std::memcpy(to, static_cast<const void*>(&header), sizeof(header));
    }
    used += bytes;
    from.sent += static_cast<uint32_t>(bytes);
    if (from.sent < frame->bytes) {
      break;
    }
    from.sent = 0;
    from.out.reader.pop(frame);
    frame = from.out.reader.peek();
  }
  return used;
}

bool Lanes::take(Lane lane, std::span<const uint8_t> unit) {
  One& to = of(lane);
  // One more frame, for the end of the ring that it may not fit into.
  if (!to.in.writer.fits(static_cast<uint32_t>(unit.size() + to.begun.size()) + kFrameBytesMax)) {
    return false;
  }
  while (!unit.empty() && !foul_) {
    const bool begun = !to.begun.empty();
    const uint8_t* const head = begun ? to.begun.data() : unit.data();
    const uint32_t length = begun || unit.size() >= sizeof(model::Frame) ? length_of(head) : 0;
    if (!possible(length)) {
      foul_ = true;
      break;
    }
    const size_t bytes = std::min<size_t>(length - to.begun.size(), unit.size());
    if (!begun && bytes == length) {
      put_frame(lane, unit.first(bytes));
    } else {
      to.begun.insert(to.begun.end(), unit.begin(), unit.begin() + static_cast<ptrdiff_t>(bytes));
      if (to.begun.size() == length) {
        put_frame(lane, to.begun);
        to.begun.clear();
      }
    }
    unit = unit.subspan(bytes);
  }
  to.in.writer.publish();
  return true;
}

bool Lanes::may_come(Lane lane, const model::Frame& frame) const {
  using model::FrameType;
  if (frame.source >= ids_.their_count || frame.dest >= ids_.our_count) {
    return false;
  }
  switch (frame.type) {
    case FrameType::kMessage:
    case FrameType::kSegment:
    case FrameType::kDoorbell:
    case FrameType::kRequest:
    case FrameType::kMaintRequest:
    case FrameType::kPortWrite:
      return lane == Lane::kRequests;
    case FrameType::kAcks:
    case FrameType::kResponse:
    case FrameType::kMaintResponse:
      return lane == Lane::kResponses;
    default:
      return false;  // nothing can be pulled out of another machine's memory
  }
}

void Lanes::put_frame(Lane lane, std::span<const uint8_t> frame) {
  model::Frame header;
  std::memcpy(static_cast<void*>(&header), frame.data(), sizeof(header));
  if (!may_come(lane, header)) {
    foul_ = true;
    return;
  }
  model::FrameWriter& writer = of(lane).in.writer;
  model::Frame* const to = writer.reserve(header.bytes);
  if (to == nullptr) {
    foul_ = true;  // there was room a moment ago
    return;
  }
  constexpr size_t kLength = sizeof(header.bytes);  // the ring's own
  std::memcpy(reinterpret_cast<uint8_t*>(to) + kLength, frame.data() + kLength,
              frame.size() - kLength);
  to->source = header.source + ids_.theirs;
  to->dest = header.dest + ids_.ours;
  writer.commit(to, header.bytes);
}

bool Lanes::taken() {
  return requests_.in.reader.peek() == nullptr && responses_.in.reader.peek() == nullptr;
}

}  // namespace rio::sim::udp
