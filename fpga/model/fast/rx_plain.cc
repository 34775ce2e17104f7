#include "fpga/model/fast/rx_plain.hpp"

#include <algorithm>

namespace rio::model {

using plain::Completion;
using plain::kFull;
using plain::kind_of;
using plain::kOneSegment;
using plain::land_plain;

inline Pair* RxPlain::target(const InFrame& frame) {
  const Owner* owner = core_.owner(frame.dest);
  if (core_.exact || core_.host.posting() || owner == nullptr || !core_.link_up ||
      owner->plain_entry[frame.mbox()] == kNoEntry || !responder_.ready(frame)) {
    return nullptr;
  }
  return &core_.pairs[core_.pair_of_entry[owner->plain_entry[frame.mbox()]]];
}

uint32_t RxPlain::take_run(const InFrame& first, uint32_t bytes_to_end, uint32_t tag) {
  Pair* const pair = target(first);
  if (pair == nullptr || core_.host.write_window().len_bytes < kFull ||
      pair->rings[kSharedRing].held || core_.poll_tail(pair->rings[kSharedRing]) == 0) {
    return 0;
  }
  const bool full = core_.config.quirk_last_full_256;
  const auto take = pair->rings[kSharedRing].brief
                        ? full ? &RxPlain::run<true, true> : &RxPlain::run<false, true>
                    : full ? &RxPlain::run<true, false>
                           : &RxPlain::run<false, false>;
  return (this->*take)(*pair, first, bytes_to_end, tag);
}

template <bool full, bool brief>
uint32_t RxPlain::run(Pair& pair, const InFrame& first, uint32_t bytes_to_end, uint32_t tag) {
  Ring& ring = pair.rings[kSharedRing];
  const HostWindow host = core_.host.write_window();
  const uint8_t* at = first.at;
  const uint8_t* const begin = at;
  // Limit for the start of a frame, so that a copy stays in the ring's memory whatever length the
  // frame claims.
  const uint8_t* const last_at = at + bytes_to_end - frame_bytes(kFull);
  const Completion completion = {load64(reinterpret_cast<const uint8_t*>(&first) + 8),
                                 static_cast<uint64_t>(core_.ticks()) << 32,
                                 static_cast<uint64_t>(ring.phase()) << 32,
                                 core_.owner(first.dest)->plain_entry[first.mbox()]};
  const uint64_t last_addr = host.len_bytes - kFull;
  Responder::Run acks = responder_.run();
  // Locals: after each store through a byte pointer, the compiler would reload members.
  const uint64_t mailboxes = core_.owner(first.dest)->plain_like[first.mbox()];
  const uint8_t* entry = ring.entry(ring.head, 3);
  constexpr uint32_t kCplBytes = brief ? sizeof(regs::SharedShortCpl) : sizeof(regs::SharedCpl);
  uint8_t* cpl = ring.cbase + (ring.cidx & ring.cmask) * kCplBytes;
  const auto room = static_cast<uint32_t>(acks.end - acks.next);
  const uint32_t until = ring.head + std::min({ring.posted(), ring.entries_in_a_row(),
                                               ring.completions_in_a_row(), room});
  const uint32_t before = pair.arrivals - ring.head;
  uint32_t head = ring.head;
  for (; at <= last_at && head != until; ++head) {
    const uint64_t word =
        load_frame_word(at, tag);  // load this first: the rest is valid only if this is a frame
    if constexpr (base::kThreadSanitizer) {
      if (word == 0) {
        break;
      }
    }
    // Read each word once, also of the first frame: use exactly the value that was checked.
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
    completion.write<brief>(cpl, bytes, 1, place, head, head + before);
    *acks.next++ = Ack::of(place, 0, Answer::kDone);
    at += frame_bytes(length);
    cpl += kCplBytes;
    entry += sizeof(regs::SharedDesc);
  }
  core_.counts.rx_packets += head - ring.head;
  pair.arrivals += head - ring.head;
  ring.cidx += head - ring.head;
  ring.head = head;
  responder_.end_run(acks);
  return static_cast<uint32_t>(at - begin);
}

bool RxPlain::aim() {
  const HostWindow& host = core_.host.write_window();
  if (core_.owners.empty() || host.len_bytes < kFull) {
    return false;
  }
  const Owner& owner = core_.last_owner != nullptr ? *core_.last_owner : core_.owners.front();
  const auto* const mine = std::find_if(std::begin(owner.plain_entry), std::end(owner.plain_entry),
                                        [](uint8_t entry) { return entry != kNoEntry; });
  if (mine == std::end(owner.plain_entry)) {
    return false;
  }
  Pair& pair = core_.pairs[core_.pair_of_entry[*mine]];
  Ring& ring = pair.rings[kSharedRing];
  if (!ring.running() || ring.held || ring.cbase == nullptr) {
    return false;
  }
  lane_ = {.pair = &pair,
           .ring = &ring,
           .mailboxes = owner.plain_like[mine - std::begin(owner.plain_entry)],
           .begin = host.iova,
           .last = host.len_bytes - kFull,
           .va = host.va,
           .time = static_cast<uint64_t>(core_.ticks()) << 32,
           .dest_id = owner.dest_id,
           .map_entry = *mine};
  return true;
}

}  // namespace rio::model
