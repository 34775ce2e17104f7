#include "fpga/model/fast/tx_several.hpp"

#include "fpga/model/fast/plain.hpp"

namespace rio::model {
namespace {

using plain::kFull;

/// Decode a message of several segments. @return false: it is another kind.
[[nodiscard]] inline bool decode_several(const plain::Decoder& decoder, const uint8_t* desc,
                                         plain::Message* out) {
  return decoder.decode_by_address<regs::kMessageBytesMax>(desc, out) && out->length() > kFull &&
         out->mbox() < regs::kMultiMailboxes && decoder.holds(*out);
}

/// Write the payload of a frame: its first bytes, which share the header's cache line, last. The
/// host has written its last 32 bytes as one piece, whatever their address: they are loaded alike.
/// @param length_bytes more than a segment.
[[gnu::always_inline]] inline void put_payload(uint8_t* to, const uint8_t* from,
                                               uint32_t length_bytes) {
  constexpr uint32_t kPiece = 32;
  if ((length_bytes & 7) != 0) [[unlikely]] {
    store64(to + (length_bytes & ~7u), 0);
  }
  const uint32_t last = length_bytes - kPiece;
  copy_32s(to, from, kPiece, last);
  copy32(to + last, from + last);
  copy32(to, from);
}

/// Prefetch for writing the memory of the host's next message, which mostly begins a longest
/// message behind this one: the partner's core has its lines since it copied from there. Not behind
/// a full message, which is mostly a part of a longer one: the host writes the next part at once.
[[gnu::always_inline]] inline void prefetch_next(Windows& mapped, const uint8_t* bytes,
                                                 uint32_t length_bytes) {
  constexpr uint32_t kLineBytes = 64;
  const uint8_t* const next = bytes + regs::kMessageBytesMax;
  if (length_bytes != regs::kMessageBytesMax &&
      mapped.find(reinterpret_cast<uintptr_t>(next), length_bytes) != nullptr) {
    for (uint32_t at = 0; at < length_bytes; at += kLineBytes) {
      prefetch_to_write(next + at);
    }
  }
}

}  // namespace

/// Send the message at the head of the ring. @return as send_single().
[[gnu::always_inline]] inline bool TxSeveral::send_head(Flow& flow, const plain::Decoder& decoder,
                                                        uint64_t route, Ring& ring) {
  const uint32_t index = ring.head;
  const uint8_t* const desc = ring.entry(index, 5);
  plain::Message message;
  if (!decode_several(decoder, desc, &message)) {
    return false;
  }
  FrameWriter& writer = *flow.way->requests;
  const uint32_t length = message.length();
  Windows* const mapped = flow.way->mapped;
  const bool is_mapped =
      mapped != nullptr && length >= plain::kMappedBytesMin &&
      mapped->find(reinterpret_cast<uintptr_t>(message.bytes), length) != nullptr;
  const uint32_t size = is_mapped ? sizeof(Frame) : frame_bytes(length);
  const uint32_t mbox = message.mbox();
  const uint32_t letter = plain::letter_for_several(flow.busy, mbox);
  if (letter >= core_.config.letters || tx_.contexts_full() || !writer.has_short_room(size)) {
    return false;
  }
  const uint32_t segments = plain::segments_of(length);
  const uint32_t place = place_of(mbox, letter);
  const uint64_t shape = plain::shape_of_several(length, segments, place);
  const uint32_t position = writer.tail();
  bool sleeps = false;
  if (is_mapped) {
    const FrameHead head = {static_cast<uint64_t>(FrameType::kMapped) << 32, route, shape,
                            reinterpret_cast<uintptr_t>(message.bytes)};
    sleeps = writer.put_short(size, head, [](uint8_t* /*at*/) {});
    prefetch_next(*mapped, message.bytes, length);
  } else {
    const FrameHead head = {static_cast<uint64_t>(FrameType::kMessage) << 32, route, shape, 0};
    sleeps =
        writer.put_short(size, head, [&](uint8_t* at) { put_payload(at, message.bytes, length); });
  }
  if (sleeps) [[unlikely]] {
    writer.wake();
  }
  TxMsg& msg = flow.msgs[place];
  plain::note(msg, message, desc, index, core_.now_ns);
  msg.segments = static_cast<uint8_t>(segments);
  msg.pull_at = is_mapped ? position | 1 : 0;
  tx_.begin_several(flow, msg);
  ring.head = index + 1;
  return true;
}

bool TxSeveral::send_single(Flow& flow, const plain::Decoder& decoder, uint64_t route, Ring& ring) {
  return send_head(flow, decoder, route, ring);
}

uint32_t TxSeveral::send(Pair& pair, Ring& ring, uint32_t count) {
  Flow* const flow = pair.last_flow;
  if (flow == nullptr || flow->way->gone) {
    return 0;
  }
  const plain::Decoder decoder(core_.host.read_window(), flow->dest_id);
  const uint64_t route = plain::route(pair.dest_id, flow->dest_id);
  uint32_t sent = 0;
  while (sent < count && send_head(*flow, decoder, route, ring)) {
    ++sent;
  }
  ring.outstanding += sent;
  core_.counts.tx_packets += sent;
  return sent;
}

bool TxSeveral::waits_for_letter(const Pair& pair, const Ring& ring, uint32_t count) const {
  const Flow* const flow = pair.last_flow;
  if (flow == nullptr || flow->way->gone || count == 0) {
    return false;
  }
  const plain::Decoder decoder(core_.host.read_window(), flow->dest_id);
  plain::Message message;
  return decode_several(decoder, ring.entry(ring.head, 5), &message) &&
         plain::letter_for_several(flow->busy, message.mbox()) >= core_.config.letters;
}

}  // namespace rio::model
