#include "fpga/model/fast/rx_several.hpp"

#include "fpga/model/fast/plain.hpp"

namespace rio::model {

using plain::kFull;

namespace {

constexpr uint32_t kPiece = 32;

/// Copy the first `len_bytes` of a piece, fewer than all, and write zeros for the others.
inline void copy_piece_kept(uint8_t* to, const uint8_t* from, uint32_t len_bytes) {
  // A window into this gives `len_bytes` ones, then zeros.
  static constexpr struct {
    alignas(64) uint64_t words[2 * kPiece / 8] = {~0ull, ~0ull, ~0ull, ~0ull};
  } kOnes{};
  const uint8_t* const kept = reinterpret_cast<const uint8_t*>(kOnes.words) + kPiece - len_bytes;
  *reinterpret_cast<Bytes32*>(to) =
      *reinterpret_cast<const Bytes32*>(from) & *reinterpret_cast<const Bytes32*>(kept);
}

/// Write a message, and zeros up to `extent`, in pieces of 32 bytes each of which the host can load
/// at once. @param from readable up to a multiple of 32 bytes.
[[gnu::always_inline]] inline void land_pieces(uint8_t* to, const uint8_t* from,
                                               uint32_t length_bytes, uint32_t extent) {
  const uint32_t whole = length_bytes & ~(kPiece - 1);
  copy_32s(to, from, 0, whole);
  if (extent % kPiece != 0) [[unlikely]] {
    copy_rest(to + whole, from + whole, length_bytes - whole);
    std::memset(to + length_bytes, 0, extent - length_bytes);
    return;
  }
  uint32_t at = whole;
  if (whole != length_bytes) [[likely]] {
    copy_piece_kept(to + whole, from + whole, length_bytes - whole);
    at += kPiece;
  }
  for (; at < extent; at += kPiece) {
    zero32(to + at);
  }
}

}  // namespace

bool RxSeveral::take(const InFrame& frame) {
  if (!responder_.ready(frame) || !land(frame)) {
    return false;
  }
  responder_.ack(frame.place, 0, Answer::kDone);
  return true;
}

bool RxSeveral::take_mapped(const InFrame& frame, Windows* windows) {
  if (!responder_.ready(frame)) {
    return false;
  }
  InFrame message = frame;
  message.type = FrameType::kMessage;
  message.bytes = frame_bytes(frame.length);
  const uint8_t* const bytes = windows == nullptr || !RxEngine::sane(frame)
                                   ? nullptr
                                   : windows->find(frame.address, frame.length);
  if (bytes == nullptr) {
    ++core_.counts.rx_packets;
    core_.count_answer(Answer::kError);
    responder_.ack(frame.place, 0, Answer::kError);
    return true;
  }
  message.at = bytes - sizeof(Frame);
  if (land(message, frame.at)) {
    responder_.ack(frame.place, 0, Answer::kDone);
    return true;
  }
  alignas(Frame) uint8_t copy[sizeof(Frame) + regs::kMessageBytesMax] = {};
  std::memcpy(copy + sizeof(Frame), bytes, frame.length);
  message.at = copy;
  return !is_still(FrameType::kMapped, frame.at) || rx_.on_message(message);
}

bool RxSeveral::take_single(const Inbound& in, uint64_t word, const RxPlain::Aim& aim) {
  FrameReader& reader = *in.requests;
  const uint8_t* const at = reader.next();
  Ring& ring = *aim.ring;
  const auto frame = plain::Arrived::read(at);
  const uint32_t length = frame.length();
  const uint32_t place = frame.place();
  const uint32_t source = frame.source();
  const uint32_t segments = plain::segments_of(length);
  const bool is_mapped = word == plain::kMappedKind;
  const uint32_t bytes = is_mapped ? sizeof(Frame) : frame_bytes(length);
  const uint8_t* const from =
      !is_mapped ? at + sizeof(Frame)
      : in.windows == nullptr
          ? nullptr
          : in.windows->find(pinned(load64(at + 24)), (length + kPiece - 1) & ~(kPiece - 1));
  const uint32_t padded_bytes = padded(length);
  const uint32_t extent = core_.config.quirk_last_full_256 ? segments * kFull : padded_bytes;
  const uint32_t index = ring.head;
  if (ring.posted() == 0 && core_.poll_tail(ring) == 0) {
    return false;  // the entry is that of a lap before
  }
  const uint64_t offset = load64(ring.entry(index, 3)) - aim.begin;
  if ((!is_mapped && word != plain::kind_of(length)) || from == nullptr ||
      length - kFull - 1 >= regs::kMessageBytesMax - kFull ||
      frame.shape != plain::shape_of_several(length, segments, place) ||
      (place & 63) >= regs::kMultiMailboxes || (aim.mailboxes >> (place & 63) & 1) == 0 ||
      frame.route >> 32 != aim.dest_id || source - in.first_source > in.more_sources ||
      bytes > reader.to_end() || offset > aim.last || aim.last - offset < extent - kFull ||
      rx_.full() || !responder_.ready_for_one(source, aim.dest_id)) {
    return false;
  }
  land_pieces(aim.va + offset, from, length, extent);
  if (is_mapped && !is_still(FrameType::kMapped, at)) [[unlikely]] {
    return false;
  }
  const plain::Completion completion = {frame.route, aim.time,
                                        static_cast<uint64_t>(ring.phase()) << 32, aim.map_entry};
  plain::end_entry(core_, *aim.pair, ring, completion, index, padded_bytes, segments, place);
  responder_.answer_later(Ack::of(place, 0, Answer::kDone), &reader);
  reader.pop_bytes(bytes);
  return true;
}

bool RxSeveral::land(const InFrame& frame, const uint8_t* revocable) {
  const Owner* const owner = core_.owner(frame.dest);
  if (frame.type != FrameType::kMessage || frame.segments < 2 || frame.ssize != kFull ||
      !RxEngine::sane(frame) || !whole(frame) || owner == nullptr || core_.exact ||
      core_.host.posting() || !core_.link_up || rx_.full()) {
    return false;
  }
  const uint8_t map_entry = owner->plain_entry[frame.mbox()];
  if (map_entry == kNoEntry) {
    return false;
  }
  Pair& pair = core_.pairs[core_.pair_of_entry[map_entry]];
  Ring& ring = pair.rings[kSharedRing];
  if (!ring.running() || ring.held || ring.cbase == nullptr ||
      (ring.posted() == 0 && core_.poll_tail(ring) == 0)) {
    return false;
  }
  const HostWindow& host = core_.host.write_window();
  const uint64_t offset = load64(ring.entry(ring.head, 3)) - host.iova;
  const uint32_t bytes = padded(frame.length);
  const uint32_t extent = core_.config.quirk_last_full_256 ? frame.segments * kFull : bytes;
  if (offset > host.len_bytes || host.len_bytes - offset < extent) {
    return false;
  }
  uint8_t* const to = host.va + offset;
  copy_pieces(to, frame.payload(), frame.length);
  if (extent != frame.length) {
    std::memset(to + frame.length, 0, extent - frame.length);
  }
  if (revocable != nullptr && is_revoked(revocable)) {
    return false;
  }
  const plain::Completion completion = {plain::route(frame.source, frame.dest),
                                        static_cast<uint64_t>(core_.ticks()) << 32,
                                        static_cast<uint64_t>(ring.phase()) << 32, map_entry};
  plain::end_entry(core_, pair, ring, completion, ring.head, bytes, frame.segments, frame.place);
  return true;
}

}  // namespace rio::model
