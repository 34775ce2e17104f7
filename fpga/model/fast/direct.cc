#include "fpga/model/fast/direct.hpp"

#include <algorithm>

#include "fpga/model/fast/plain.hpp"

namespace rio::model {
namespace {

using plain::busy_for_several;
using plain::kFull;
using plain::segments_of;

/// Write a message of several segments as the reference does: with the landing quirk, the last
/// segment in full.
[[gnu::noinline]] void land_several(uint8_t* land, const uint8_t* from, uint32_t length_bytes,
                                    bool full) {
  std::memcpy(land, from, length_bytes);
  const uint32_t end = full ? segments_of(length_bytes) * kFull : padded(length_bytes);
  std::memset(land + length_bytes, 0, end - length_bytes);
}

/// Write one segment when land_full_256() does not fit: the card has no quirk, or zeros pad the
/// segment. Not inlined, to spare registers in the caller's loop.
[[gnu::noinline]] void land_padded(uint8_t* land, const uint8_t* from, uint32_t length_bytes,
                                   bool full) {
  if (full) {
    std::memset(land, 0, kFull);
  }
  copy_padded(land, from, length_bytes);
}

}  // namespace

/// The source and the destination of a run.
struct Direct::Sides {
  Pair& from;
  Ring& ring;
  Pair& to;
  Ring& shared;
  Core& peer;
  const Flow& flow;
  const Owner& owner;
  uint32_t map_entry;
  const HostWindow& target;
};

template <bool several, bool brief>
uint32_t Direct::carry_run(const Sides& sides, uint32_t count) const {
  constexpr uint32_t kCplBytes = brief ? sizeof(regs::SharedShortCpl) : sizeof(regs::SharedCpl);
  constexpr uint32_t kMost = several ? regs::kMessageBytesMax : kFull;
  const Ring& ring = sides.ring;
  const Ring& shared = sides.shared;
  // Locals: after each store through a byte pointer, the compiler would reload members.
  const plain::Decoder decoder(core_.host.read_window(), sides.flow.dest_id);
  const HostWindow target = sides.target;
  const uint64_t last_target = target.len_bytes - kFull;
  const uint32_t all_letters = all_letters_;
  const uint8_t* const busy_letters = sides.flow.busy;
  const uint64_t busy_several = several ? busy_for_several(busy_letters) : 0;
  const uint8_t* const plain_entry = sides.owner.plain_entry;
  const uint32_t map_entry = sides.map_entry;
  const bool full = sides.peer.config.quirk_last_full_256;
  const uint8_t* desc = ring.entry(ring.head, 5);
  const uint8_t* entry = shared.entry(shared.head, 3);
  uint8_t* cpl = shared.cbase + (shared.cidx & shared.cmask) * kCplBytes;
  const plain::Completion completion = {plain::route(sides.from.dest_id, sides.flow.dest_id),
                                        static_cast<uint64_t>(sides.peer.ticks()) << 32,
                                        static_cast<uint64_t>(shared.phase()) << 32, map_entry};
  uint32_t k = 0;
  for (; k < count; ++k) {
    plain::Message message;
    const uint64_t at = load64(entry) - target.iova;
    if (!decoder.decode_by_address<kMost>(desc, &message) || at > last_target ||
        plain_entry[message.mbox()] != map_entry) [[unlikely]] {
      break;
    }
    const uint32_t length = message.length();
    const uint32_t bytes = padded(length);
    const uint32_t mbox = message.mbox();
    const uint32_t segments = several ? segments_of(length) : 1;
    uint32_t busy = busy_letters[mbox];
    if constexpr (several) {
      busy = mbox < regs::kMultiMailboxes ? static_cast<uint8_t>(busy_several >> 8 * mbox)
                                          : all_letters;
      if (segments == 1 || !decoder.holds(message) || at + segments * kFull > target.len_bytes) {
        break;
      }
    }
    if (busy == all_letters) [[unlikely]] {
      break;
    }
    const uint32_t place = place_of(mbox, static_cast<uint32_t>(std::countr_one(busy)));
    uint8_t* const land = target.va + at;
    if (several) {
      land_several(land, message.bytes, length, full);
    } else if (full && bytes == length) [[likely]] {
      land_full_256(land, message.bytes, length);
    } else {
      land_padded(land, message.bytes, length, full);
    }
    completion.write<brief>(cpl, bytes, segments, place, shared.head + k, sides.to.arrivals + k);
    desc += sizeof(regs::TxDesc);
    entry += sizeof(regs::SharedDesc);
    cpl += kCplBytes;
  }
  return k;
}

uint32_t Direct::enter(Pair& pair, Ring& ring, uint32_t count) {
  if (pair.last_flow != nullptr) {
    // Frames already in the ring come first: enter_neighbour() fails while the neighbour sees a
    // frame.
    pair.last_flow->way->requests->publish();
  }
  Core* peer = core_.wire->enter_neighbour();
  if (peer == nullptr) {
    return 0;
  }
  const uint32_t carried = carry(pair, ring, count, *peer);
  core_.wire->leave_neighbour();
  return carried;
}

uint32_t Direct::carry(Pair& pair, Ring& ring, uint32_t count, Core& peer) const {
  Flow* flow = pair.last_flow;
  const Owner* owner = flow == nullptr ? nullptr : peer.owner(flow->dest_id);
  const uint8_t* const desc = ring.entry(ring.head, 5);
  const uint32_t mbox = plain::Control::mbox.get(load32(desc));
  if (owner == nullptr || peer.exact || !peer.link_up || owner->plain_entry[mbox] == kNoEntry) {
    return 0;
  }
  const uint8_t map_entry = owner->plain_entry[mbox];
  Pair& to = peer.pairs[peer.pair_of_entry[map_entry]];
  Ring& shared = to.rings[kSharedRing];
  const HostWindow& target = peer.host.write_window();
  if (shared.held || !peer.host.current() || ring.cbase == nullptr ||
      core_.host.read_window().len_bytes < kFull || target.len_bytes < kFull ||
      peer.poll_tail(shared) == 0) {
    return 0;
  }
  count = std::min({count, ring.entries_in_a_row(), shared.posted(), shared.entries_in_a_row(),
                    shared.completions_in_a_row()});
  const Sides sides = {pair, ring, to, shared, peer, *flow, *owner, map_entry, target};
  const bool several = load32(desc + offsetof(regs::TxDesc, length)) > kFull;
  const auto run =
      several ? shared.brief ? &Direct::carry_run<true, true> : &Direct::carry_run<true, false>
      : shared.brief ? &Direct::carry_run<false, true>
                     : &Direct::carry_run<false, false>;
  const uint32_t carried = (this->*run)(sides, count);
  plain::complete_run(ring, ring.head, carried, core_.ticks(), [&](uint32_t number) {
    return load32(ring.entry(ring.head + number, 5) + offsetof(regs::TxDesc, cookie));
  });
  ring.head += carried;
  shared.head += carried;
  shared.cidx += carried;
  to.arrivals += carried;
  core_.counts.tx_packets += carried;
  peer.counts.rx_packets += carried;
  return carried;
}

}  // namespace rio::model
