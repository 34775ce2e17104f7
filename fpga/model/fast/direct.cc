// Between two cards of one process that one thread steps, a plain message is sent, lands and is
// answered in one go: nobody could see it fly. Buffers, letters, the receive map and
// dedicated rings are obeyed; what is not plain, or would be refused, goes through the wire.
#include <algorithm>

#include "base/tsan.hpp"
#include "fpga/model/copy.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {
namespace {

using Control = regs::tx_desc::Control;

constexpr uint32_t kFull = regs::kSegmentBytesMax;
constexpr uint32_t kPlain = Control::ssize.put(14);
constexpr uint64_t kMboxMask = Control::mbox.mask();

[[nodiscard]] constexpr uint32_t segments_of(uint32_t length_bytes) {
  return (length_bytes + kFull - 1) / kFull;
}

/// Letters that are busy in any of the mailboxes that a message of several segments names, a byte
/// for each of the four.
[[nodiscard]] uint32_t busy_for_several(const uint8_t* busy_letters) {
  uint32_t busy = 0;
  for (uint32_t m = 0; m < regs::kMailboxes; m += regs::kMultiMailboxes) {
    busy |= load32(busy_letters + m);
  }
  return busy;
}

/// As it lands segment by segment, the last one in full where the card does so.
void land_several(uint8_t* land, const uint8_t* from, uint32_t length_bytes, bool full) {
  std::memcpy(land, from, length_bytes);
  const uint32_t end = full ? segments_of(length_bytes) * kFull : padded(length_bytes);
  std::memset(land + length_bytes, 0, end - length_bytes);
}

}  // namespace

uint32_t TxEngine::direct(Pair& pair, Ring& ring, uint32_t count) {
  if (!core_.wire->may_enter_neighbour(core_.thread)) {
    return 0;
  }
  if (pair.last_flow != nullptr) {
    // What has gone into the ring comes first: the neighbour is not entered while it sees a frame.
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

uint32_t TxEngine::carry(Pair& pair, Ring& ring, uint32_t count, Core& peer) {
  Flow* flow = pair.last_flow;
  const Owner* owner = flow == nullptr ? nullptr : peer.owner(flow->dest_id);
  const uint8_t* desc = ring.entry(ring.head, 5);
  const auto first_mbox = static_cast<uint32_t>(load64(desc) >> Control::mbox.lsb) & 63;
  if (owner == nullptr || peer.exact || !peer.link_up || owner->plain_pair[first_mbox] == kNobody) {
    return 0;
  }
  Pair& to = peer.pairs[owner->plain_pair[first_mbox]];
  Ring& shared = to.rings[kSharedRing];
  const HostWindow source = core_.host.read_window();
  const HostWindow target = peer.host.write_window();
  if (shared.held || !peer.host.current() || ring.cbase == nullptr || source.len_bytes < kFull ||
      target.len_bytes < kFull || peer.look_at_tail(to, kSharedRing) == 0) {
    return 0;
  }
  count = std::min({count, ring.entries_in_a_row(), ring.completions_in_a_row(), shared.posted(),
                    shared.entries_in_a_row(), shared.completions_in_a_row()});
  // Locals: stores through byte pointers would make the compiler load members again each time.
  const uint64_t plain = kPlain | static_cast<uint64_t>(flow->dest_id) << 32;
  const uint64_t route = pair.dest_id | static_cast<uint64_t>(flow->dest_id) << 32;
  const uint64_t last_source = source.len_bytes - kFull;
  const uint64_t last_target = target.len_bytes - kFull;
  const uint64_t unaligned = (1ull << core_.config.tx_addr_log2) - 1;
  const uint32_t all_letters = letter_mask_;
  const uint8_t* const busy_letters = flow->busy;
  const uint32_t busy_several = busy_for_several(busy_letters);
  const uint8_t* const plain_pair = owner->plain_pair;
  const uint32_t number = to.number;
  const bool full = peer.config.quirk_last_full_256;
  const uint8_t* entry = shared.entry(shared.head, 3);
  uint8_t* done = ring.cbase + (ring.cidx & ring.cmask) * sizeof(regs::TxCpl);
  uint8_t* cpl = shared.cbase + (shared.cidx & shared.cmask) * sizeof(regs::SharedCpl);
  const uint64_t done_last = core_.ticks() | static_cast<uint64_t>(ring.phase()) << 32;
  const uint64_t cpl_last = static_cast<uint64_t>(shared.phase()) << 32;
  const uint64_t cpl_time = static_cast<uint64_t>(peer.ticks()) << 32;
  uint32_t k = 0;
  for (; k < count; ++k) {
    const uint64_t word = load64(desc);
    const uint64_t cookie_length = load64(desc + 8);
    const auto length = static_cast<uint32_t>(cookie_length >> 32);
    const uint64_t addr = load64(desc + 16);
    const uint64_t from = addr - source.iova;
    const uint64_t at = load64(entry) - target.iova;
    const auto mbox = static_cast<uint32_t>(word >> Control::mbox.lsb) & 63;
    uint32_t busy = busy_letters[mbox];
    if ((word & ~kMboxMask) != plain || length - 1 >= regs::kMessageBytesMax ||
        (addr & unaligned) != 0 || from > last_source || at > last_target ||
        plain_pair[mbox] != number) [[unlikely]] {
      break;
    }
    const uint32_t segments = segments_of(length);
    if (segments != 1) {
      busy = mbox < regs::kMultiMailboxes ? busy_several >> 8 * mbox & 0xFF : all_letters;
      if (from + length > source.len_bytes || at + segments * kFull > target.len_bytes) {
        break;
      }
    }
    if (busy == all_letters) [[unlikely]] {
      break;
    }
    const uint32_t place = place_of(mbox, static_cast<uint32_t>(__builtin_ctz(~busy)));
    const uint32_t bytes = padded(length);
    uint8_t* const land = target.va + at;
    if (segments != 1) {
      land_several(land, source.va + from, length, full);
    } else if (full && bytes == length) [[likely]] {
      land_full_256(land, source.va + from, length);
    } else {
      if (full) {
        std::memset(land, 0, kFull);
      }
      copy_padded(land, source.va + from, length);
    }
    store64(cpl, route);
    store32(cpl + 8, bytes | segments << 16 | place << 24);
    store32(cpl + 12, shared.head + k);
    store64(cpl + 16, (to.arrivals + k) | cpl_time);
    // release: payload and completion before the last word; pairs with dma_load_last_word.
    base::tsan_release(cpl + 28);
    __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 24), cpl_last, __ATOMIC_RELEASE);
    store32(done, static_cast<uint32_t>(cookie_length));
    store32(done + 4, ring.head + k);
    base::tsan_release(done + 12);
    __atomic_store_n(reinterpret_cast<uint64_t*>(done + 8), done_last,
                     __ATOMIC_RELEASE);  // as above
    desc += sizeof(regs::TxDesc);
    entry += sizeof(regs::SharedDesc);
    cpl += sizeof(regs::SharedCpl);
    done += sizeof(regs::TxCpl);
  }
  ring.head += k;
  ring.cidx += k;
  shared.head += k;
  shared.cidx += k;
  to.arrivals += k;
  core_.counts.tx_packets += k;
  peer.counts.rx_packets += k;
  return k;
}

}  // namespace rio::model
