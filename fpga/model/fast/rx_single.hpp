/// @file
/// The shortest way from the wire to the host: one plain message of one segment into the shared
/// queue, in fast mode. A host that waits takes it; rx_express.cc has runs of such messages,
/// rx_engine.cc what is not plain. All keep the same state.
#pragma once

#include "base/tsan.hpp"
#include "fpga/model/copy.hpp"
#include "fpga/model/reference/rx_engine.hpp"

namespace rio::model {
namespace plain {

inline constexpr uint32_t kFull = regs::kSegmentBytesMax;

/// Bytes 19 to 23 of a Frame of a whole message of one segment: segment 0 of 1, ssize 256.
inline constexpr uint64_t kOneSegment = 1ull << 8 | static_cast<uint64_t>(kFull) << 24;

/// First eight bytes of a Frame of such a message.
[[nodiscard]] constexpr uint64_t kind_of(uint32_t length) {
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
    base::tsan_release(cpl + 28);
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

}  // namespace plain

inline bool RxEngine::take_single(const Inbound& in, uint64_t word) {
  FrameReader& reader = *in.requests;
  const uint8_t* const at = reader.next();
  Ring& ring = *lane_.ring;
  // Read once, since others may write there: what is checked is what is used.
  const uint64_t route = pinned(load64(at + 8));
  const uint64_t shape = pinned(load64(at + 16));
  const auto length = static_cast<uint32_t>(shape) & 0xFFFF;
  const auto place = static_cast<uint32_t>(shape >> 16) & 0xFF;
  const auto source = static_cast<uint32_t>(route);
  const uint32_t bytes = frame_bytes(length);
  const uint32_t index = ring.head;
  const uint64_t offset = load64(ring.entry(index, 3)) - lane_.begin;
  if (word != plain::kind_of(length) || shape >> 24 != plain::kOneSegment ||
      length - 1 >= plain::kFull || route >> 32 != lane_.dest_id ||
      (lane_.mailboxes >> (place & 63) & 1) == 0 || source - in.first_source > in.more_sources ||
      bytes > reader.to_end() || offset > lane_.last ||
      (ring.posted() == 0 && core_.read_tail(*lane_.pair, kSharedRing) == 0) ||
      !responder_.ready_at_once(source, lane_.dest_id)) [[unlikely]] {
    return false;
  }
  const uint32_t landed = padded(length);
  plain::land_plain(lane_.va + offset, at + sizeof(Frame), landed,
                    core_.config.quirk_last_full_256);
  const plain::Completion completion = {route, lane_.time,
                                        static_cast<uint64_t>(ring.phase()) << 32};
  completion.write(ring.cbase + (ring.cidx & ring.cmask) * sizeof(regs::SharedCpl), landed, place,
                   index, lane_.pair->arrivals++);
  ++ring.cidx;
  ring.head = index + 1;
  ++core_.counts.rx_packets;
  responder_.answer_at_once(Ack::of(place, 0, Answer::kDone));
  reader.pop_bytes(bytes);
  reader.release();
  return true;
}

}  // namespace rio::model
