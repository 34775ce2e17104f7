// The short way of fast mode: runs of whole messages of one segment from one sender into the
// shared queue. What is not plain goes the long way in rx_engine.cc; both keep the same state.
#include <algorithm>

#include "fpga/model/detail/copy.hpp"
#include "fpga/model/detail/rx_engine.hpp"
#include "fpga/model/tsan.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kFull = regs::kSegmentBytesMax;

/// Bytes 19 to 23 of a Frame of a whole message of one segment: segment 0 of 1, ssize 256.
constexpr uint64_t kOneSegment = 1ull << 8 | static_cast<uint64_t>(kFull) << 24;

/// First eight bytes of a Frame of such a message.
constexpr uint64_t kind_of(uint32_t length) {
  return frame_bytes(length) | static_cast<uint64_t>(FrameType::kMessage) << 32;
}

/// What the completions of a run have in common.
struct Completion {
  uint64_t route;
  uint64_t time;  // both in the upper half
  uint64_t last_word;

  /// Of such a message, whose payload has landed. @param bytes of it, padded.
  [[gnu::always_inline]] void write(uint8_t* cpl, uint32_t bytes, uint32_t place, uint32_t index,
                                    uint32_t arrival) const {
    store64(cpl, route);
    store32(cpl + 8, bytes | 1u << 16 | place << 24);
    store32(cpl + 12, index);
    store64(cpl + 16, arrival | time);
    // release: payload and completion before the last word; pairs with dma_load_last_word.
    tsan_release(cpl + 28);
    __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 24), last_word, __ATOMIC_RELEASE);
  }
};

/// Payload of such a message, padded to `bytes`. @param full the card's quirk.
[[gnu::always_inline]] inline void land_plain(uint8_t* to, const uint8_t* from, uint32_t bytes,
                                              bool full) {
  if (full) [[likely]] {
    land_full_256(to, from, bytes);
  } else {
    copy_bytes(to, from, bytes);
  }
}

}  // namespace

inline Pair* RxEngine::plain_target(const InFrame& frame) {
  const Owner* owner = core_.owner(frame.dest);
  if (core_.exact || core_.host.posting() || owner == nullptr || !core_.link_up ||
      owner->plain_pair[frame.mbox()] == kNobody || !responder_.ready(frame)) {
    return nullptr;
  }
  return &core_.pairs[owner->plain_pair[frame.mbox()]];
}

bool RxEngine::single(const InFrame& frame) {
  Pair* pair = plain_target(frame);
  if (pair == nullptr) {
    return false;
  }
  Ring& ring = pair->rings[kSharedRing];
  const HostWindow& host = core_.host.write_window();
  const auto* head = reinterpret_cast<const uint8_t*>(&frame);
  const uint64_t shape = load64(head + 16);
  const auto length = static_cast<uint32_t>(shape) & 0xFFFF;
  const auto place = static_cast<uint32_t>(shape >> 16) & 0xFF;
  if (ring.held || host.len_bytes < kFull || core_.look_at_tail(*pair, kSharedRing) == 0 ||
      load64(head) != kind_of(length) || shape >> 24 != kOneSegment || length - 1 >= kFull) {
    return false;
  }
  const uint64_t offset = load64(ring.entry(ring.head, 3)) - host.iova;
  if (offset > host.len_bytes - kFull) {
    return false;
  }
  const uint32_t bytes = padded(length);
  land_plain(host.va + offset, frame.payload(), bytes, core_.config.quirk_last_full_256);
  const Completion completion = {load64(head + 8), static_cast<uint64_t>(core_.ticks()) << 32,
                                 static_cast<uint64_t>(ring.phase()) << 32};
  completion.write(ring.cbase + (ring.cidx & ring.cmask) * sizeof(regs::SharedCpl), bytes, place,
                   ring.head, pair->arrivals);
  ++core_.counts.rx_packets;
  ++pair->arrivals;
  ++ring.cidx;
  ++ring.head;
  responder_.ack(place, 0, Answer::kDone);
  return true;
}

uint32_t RxEngine::express(const InFrame& first, uint32_t bytes_to_end) {
  Pair* const pair = plain_target(first);
  if (pair == nullptr || core_.host.write_window().len_bytes < kFull ||
      pair->rings[kSharedRing].held || core_.look_at_tail(*pair, kSharedRing) == 0) {
    return 0;
  }
  return core_.config.quirk_last_full_256 ? run<true>(*pair, first, bytes_to_end)
                                          : run<false>(*pair, first, bytes_to_end);
}

template <bool full>
uint32_t RxEngine::run(Pair& pair, const InFrame& first, uint32_t bytes_to_end) {
  Ring& ring = pair.rings[kSharedRing];
  const HostWindow host = core_.host.write_window();
  const uint8_t* at = first.at;
  const uint8_t* const begin = at;
  // Whatever length the next frames give, it ends within the memory.
  const uint8_t* const last_at = at + bytes_to_end - frame_bytes(kFull);
  const Completion completion = {load64(reinterpret_cast<const uint8_t*>(&first) + 8),
                                 static_cast<uint64_t>(core_.ticks()) << 32,
                                 static_cast<uint64_t>(ring.phase()) << 32};
  const uint64_t last_addr = host.len_bytes - kFull;
  Responder::Run acks = responder_.run();
  // Locals: stores through byte pointers would make the compiler load members again each time.
  const uint64_t mailboxes = core_.owner(first.dest)->plain_like[first.mbox()];
  const uint8_t* entry = ring.entry(ring.head, 3);
  uint8_t* cpl = ring.cbase + (ring.cidx & ring.cmask) * sizeof(regs::SharedCpl);
  const auto room = static_cast<uint32_t>(acks.end - acks.next);
  const uint32_t until = ring.head + std::min({ring.posted(), ring.entries_in_a_row(),
                                               ring.completions_in_a_row(), room});
  const uint32_t before = pair.arrivals - ring.head;
  uint32_t head = ring.head;
  for (; at <= last_at && head != until; ++head) {
    const uint64_t word = load_frame_word(at);  // first: the rest is there only if this is
    if constexpr (kThreadSanitizer) {
      if (word == 0) {
        break;
      }
    }
    // Read once, the first frame too: what was checked is what is used.
    const uint64_t shape = pinned(load64(at + 16));
    const auto length = static_cast<uint32_t>(shape) & 0xFFFF;
    const auto place = static_cast<uint32_t>(shape >> 16) & 0xFF;
    const uint64_t offset = load64(entry) - host.iova;
    if (word != kind_of(length) || load64(at + 8) != completion.route ||
        shape >> 24 != kOneSegment || length - 1 >= kFull || offset > last_addr ||
        (mailboxes >> (place & 63) & 1) == 0) [[unlikely]] {
      break;
    }
    const uint32_t bytes = padded(length);
    land_plain(host.va + offset, at + sizeof(Frame), bytes, full);
    completion.write(cpl, bytes, place, head, head + before);
    *acks.next++ = Ack::of(place, 0, Answer::kDone);
    at += frame_bytes(length);
    cpl += sizeof(regs::SharedCpl);
    entry += sizeof(regs::SharedDesc);
  }
  core_.counts.rx_packets += head - ring.head;
  pair.arrivals += head - ring.head;
  ring.cidx += head - ring.head;
  ring.head = head;
  responder_.end_run(acks);
  return static_cast<uint32_t>(at - begin);
}

}  // namespace rio::model
