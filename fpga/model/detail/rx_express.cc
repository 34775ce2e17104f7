// The short way of fast mode: runs of whole messages of one segment from one sender into the
// shared queue. What is not plain goes the long way in rx_engine.cc; both keep the same state.
#include "fpga/model/detail/copy.hpp"
#include "fpga/model/detail/rx_engine.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kFull = regs::kSegmentBytesMax;

/// Bytes 20 to 23 of a Frame of a whole message of one segment: segment 0 of 1, ssize 256.
constexpr uint32_t kOneSegment = 1u << 8 | kFull << 16;

void store64(uint8_t* to, uint64_t value) { std::memcpy(to, &value, sizeof(value)); }

uint64_t load64(const uint8_t* from) {
  uint64_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Zeros in [to + from, to + 256), from at least 8 and a multiple of 8.
void fill_to_full(uint8_t* to, uint32_t from) {
  const Bytes16 zero{};
  if ((from & 8) != 0) {
    std::memcpy(to + from, &zero, 8);
    from += 8;
  }
  for (; (from & 63) != 0; from += 16) {
    std::memcpy(to + from, &zero, 16);
  }
  for (; from < kFull; from += 64) {
    std::memcpy(to + from, &zero, 16);
    std::memcpy(to + from + 16, &zero, 16);
    std::memcpy(to + from + 32, &zero, 16);
    std::memcpy(to + from + 48, &zero, 16);
  }
}

}  // namespace

uint32_t RxEngine::express(const Frame& first, uint32_t bytes_in_a_row) {
  const Owner* owner = core_.owner(first.dest);
  if (core_.exact || core_.host.posting() || owner == nullptr || !core_.link_up ||
      owner->pair_of_mbox[first.mbox & 63] == kNobody || !responder_.ready(first)) {
    return 0;
  }
  Pair& pair = core_.pairs[owner->pair_of_mbox[first.mbox & 63]];
  Ring& ring = pair.rings[kSharedRing];
  const HostWindow host = core_.host.write_window();
  if (ring.held || host.len_bytes < kFull || core_.look_at_tail(pair, kSharedRing) == 0) {
    return 0;
  }
  const auto* at = reinterpret_cast<const uint8_t*>(&first);
  const uint8_t* const begin = at;
  const uint8_t* const end = at + bytes_in_a_row;
  const uint64_t route = load64(at + 8);
  const uint64_t last_addr = host.len_bytes - kFull;
  const bool full = core_.config.quirk_last_full_256;
  const uint32_t time = core_.ticks();
  Responder::Run acks = responder_.run();
  uint32_t head = ring.head;
  uint32_t cidx = ring.cidx;
  while (at != end && head != ring.tail && acks.next != acks.end) {
    const uint64_t word = load64(at);
    const uint64_t shape = load64(at + 16);
    const auto length = static_cast<uint32_t>(shape) & 0xFFFF;
    const auto mbox = static_cast<uint32_t>(shape >> 16) & 0xFF;
    const auto letter = static_cast<uint32_t>(shape >> 24) & 0xFF;
    const uint32_t bytes = padded(length);
    uint64_t addr = 0;
    std::memcpy(&addr, ring.entry(head, 3), sizeof(addr));
    const uint64_t offset = addr - host.iova;
    if (word != (frame_bytes(bytes) | static_cast<uint64_t>(FrameType::kMessage) << 32) ||
        load64(at + 8) != route || shape >> 32 != kOneSegment || length - 1 >= kFull ||
        ((mbox & 0xC0) | (letter & 0xFC)) != 0 || offset > last_addr ||
        owner->pair_of_mbox[mbox] != pair.number || pair.dedicated_open[mbox] != 0) [[unlikely]] {
      break;
    }
    uint8_t* to = host.va + offset;
    copy_bytes(to, at + sizeof(Frame), bytes);
    if (full) {
      fill_to_full(to, bytes);
    }
    const uint32_t place = place_of(mbox, letter);
    uint8_t* cpl = ring.cbase + (cidx & ring.cmask) * sizeof(regs::SharedCpl);
    store64(cpl, route);
    store64(cpl + 8, bytes | 1u << 16 | place << 24 | static_cast<uint64_t>(head) << 32);
    store64(cpl + 16, pair.arrivals++ | static_cast<uint64_t>(time) << 32);
    const uint64_t phase = ~(cidx >> ring.cshift) & 1u;
    // release: payload and completion before the last word; pairs with dma_load_last_word.
    __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 24), phase << 63, __ATOMIC_RELEASE);
    const Ack ack = Ack::of(place, 0, Answer::kDone);
    std::memcpy(acks.next++, &ack, sizeof(ack));
    ++head;
    ++cidx;
    at += frame_bytes(bytes);
  }
  core_.counts.rx_packets += head - ring.head;
  ring.head = head;
  ring.cidx = cidx;
  responder_.end_run(acks);
  return static_cast<uint32_t>(at - begin);
}

}  // namespace rio::model
