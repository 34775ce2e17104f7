// The short way of fast mode: runs of whole messages of one segment from one sender into the
// shared queue. What is not plain goes the long way in rx_engine.cc; both keep the same state.
#include <algorithm>

#include "fpga/model/detail/copy.hpp"
#include "fpga/model/detail/rx_engine.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kFull = regs::kSegmentBytesMax;

/// Bytes 19 to 23 of a Frame of a whole message of one segment: segment 0 of 1, ssize 256.
constexpr uint64_t kOneSegment = 1ull << 8 | static_cast<uint64_t>(kFull) << 24;

}  // namespace

uint32_t RxEngine::express(const Frame& first, uint32_t bytes_to_end) {
  const Owner* owner = core_.owner(first.dest);
  if (core_.exact || core_.host.posting() || owner == nullptr || !core_.link_up ||
      owner->plain_pair[first.mbox()] == kNobody || !responder_.ready(first)) {
    return 0;
  }
  Pair& pair = core_.pairs[owner->plain_pair[first.mbox()]];
  Ring& ring = pair.rings[kSharedRing];
  const HostWindow host = core_.host.write_window();
  if (ring.held || host.len_bytes < kFull || core_.look_at_tail(pair, kSharedRing) == 0) {
    return 0;
  }
  const auto* at = reinterpret_cast<const uint8_t*>(&first);
  const uint8_t* const begin = at;
  // Whatever length the next frames give, it ends within the memory.
  const uint8_t* const last_at = at + bytes_to_end - frame_bytes(kFull);
  const uint64_t route = load64(at + 8);
  const uint64_t last_addr = host.len_bytes - kFull;
  const bool full = core_.config.quirk_last_full_256;
  const uint32_t time = core_.ticks();
  Responder::Run acks = responder_.run();
  // Locals: stores through byte pointers would make the compiler load members again each time.
  const uint8_t* const plain_pair = owner->plain_pair;
  const uint8_t* entry = ring.entry(ring.head, 3);
  uint8_t* cpl = ring.cbase + (ring.cidx & ring.cmask) * sizeof(regs::SharedCpl);
  const uint64_t last_word = static_cast<uint64_t>(ring.phase()) << 32;
  const uint32_t number = pair.number;
  const auto room = static_cast<uint32_t>(acks.end - acks.next);
  const uint32_t until = ring.head + std::min({ring.posted(), ring.entries_in_a_row(),
                                               ring.completions_in_a_row(), room});
  uint32_t head = ring.head;
  uint32_t arrival = pair.arrivals;
  for (; at <= last_at && head != until; ++head) {
    const uint64_t word = load_frame_word(at);  // first: the rest is there only if this is
    const uint64_t shape = load64(at + 16);
    const auto length = static_cast<uint32_t>(shape) & 0xFFFF;
    const auto place = static_cast<uint32_t>(shape >> 16) & 0xFF;
    const uint64_t offset = load64(entry) - host.iova;
    const uint64_t kind = frame_bytes(length) | static_cast<uint64_t>(FrameType::kMessage) << 32;
    if (word != kind || load64(at + 8) != route || shape >> 24 != kOneSegment ||
        length - 1 >= kFull || offset > last_addr || plain_pair[place & 63] != number)
        [[unlikely]] {
      break;
    }
    const uint32_t bytes = padded(length);
    if (full) [[likely]] {
      land_full_256(host.va + offset, at + sizeof(Frame), bytes);
    } else {
      copy_bytes(host.va + offset, at + sizeof(Frame), bytes);
    }
    store64(cpl, route);
    store32(cpl + 8, bytes | 1u << 16 | place << 24);
    store32(cpl + 12, head);
    store32(cpl + 16, arrival++);
    store32(cpl + 20, time);
    // release: payload and completion before the last word; pairs with dma_load_last_word.
    __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 24), last_word, __ATOMIC_RELEASE);
    const Ack ack = Ack::of(place, 0, Answer::kDone);
    std::memcpy(acks.next++, &ack, sizeof(ack));
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
