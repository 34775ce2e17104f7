#include "fpga/wire/relay/packet.hpp"

#include <algorithm>
#include <cstring>

namespace rio::wire::relay {
namespace {

using model::Frame;
using model::FrameWriter;

[[nodiscard]] uint32_t packets_bytes(uint32_t length) {
  uint32_t bytes = sizeof(Announce);
  for (uint32_t at = 0; at < length; at += kDataMax) {
    bytes += model::frame_bytes(std::min(length - at, kDataMax));
  }
  return bytes;
}

template <class Kind>
[[nodiscard]] bool put(FrameWriter& ring, const Kind& head, std::span<const uint8_t> payload) {
  const uint32_t bytes = model::frame_bytes(static_cast<uint32_t>(payload.size()));
  Frame* const at = ring.reserve(bytes);
  if (at == nullptr) {
    return false;
  }
  constexpr size_t kSkip = sizeof(Frame::bytes);  // that field belongs to the ring
  auto* const to = reinterpret_cast<uint8_t*>(at);
  std::memcpy(to + kSkip, reinterpret_cast<const uint8_t*>(&head) + kSkip, sizeof head - kSkip);
  std::copy(payload.begin(), payload.end(), to + sizeof head);
  ring.commit(at, bytes);
  return true;
}

[[nodiscard]] bool all_zero(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t byte) { return byte == 0; });
}

}  // namespace

bool put_transfer(FrameWriter& ring, Announce head, std::span<const uint8_t> frame) {
  const auto length = static_cast<uint32_t>(frame.size());
  // Contiguous room for the whole frame is room for its packets, wherever the ring ends.
  if (!ring.fits(packets_bytes(length))) {
    return false;
  }
  head.id = kControlBit;
  head.length = length;
  bool done = put(ring, head, {});
  const bool one = length <= kDataMax;
  for (uint32_t at = 0, fragment = 1; at < length; at += kDataMax, ++fragment) {
    const auto part = frame.subspan(at, std::min(length - at, kDataMax));
    const Data data{.sequence = head.sequence,
                    .source_process = head.source_process,
                    .dest_process = head.dest_process,
                    .fragment = one ? 0 : fragment,
                    .length = static_cast<uint32_t>(part.size())};
    done = done && put(ring, data, part);
  }
  ring.publish();
  return done;
}

bool put_credit(FrameWriter& ring, uint32_t process, uint32_t lane, uint32_t taken) {
  const Credit credit{.lane = static_cast<uint8_t>(lane), .process = process, .taken = taken};
  if (!put(ring, credit, {})) {
    return false;
  }
  ring.publish();
  return true;
}

const char* Assembler::announce(const Announce& head) {
  if (head.bytes != sizeof head || head.id != kControlBit || !all_zero(head.zero)) {
    return "sends a malformed control packet";
  }
  if (open_) {
    return "announces a transfer before the one before is complete";
  }
  if (head.sequence != next_sequence_) {
    return "announces a transfer out of sequence";
  }
  if (head.length < sizeof(Frame) || head.length > kTransferMax ||
      head.length % model::kFrameAlign != 0) {
    return "announces a transfer of an impossible length";
  }
  head_ = head;
  frame_.clear();
  fragments_ = 0;
  ++next_sequence_;
  open_ = true;
  return nullptr;
}

const char* Assembler::data(const Data& head, std::span<const uint8_t> payload, bool* whole) {
  if (head.id != kDataBit || !all_zero(head.zero) || head.zero2 != 0) {
    return "sends a malformed data packet";
  }
  if (!open_ || head.sequence != head_.sequence) {
    return "sends data that it has not announced";
  }
  const uint32_t left = head_.length - static_cast<uint32_t>(frame_.size());
  const uint32_t fragment_due = head_.length <= kDataMax ? 0 : fragments_ + 1;
  if (head.fragment != fragment_due || head.length != std::min(left, kDataMax) ||
      head.bytes != model::frame_bytes(head.length) || payload.size() < head.length) {
    return "sends a fragment of a wrong number or length";
  }
  frame_.insert(frame_.end(), payload.begin(), payload.begin() + head.length);
  ++fragments_;
  open_ = frame_.size() < head_.length;
  *whole = !open_;
  return nullptr;
}

}  // namespace rio::wire::relay
