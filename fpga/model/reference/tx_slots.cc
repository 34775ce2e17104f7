// Push mode: entries that the host writes into slots in the BAR.
#include <bit>
#include <cstring>

#include "fpga/model/reference/tx_desc.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {

using Control = regs::tx_desc::Control;
using First = regs::push_slot::First;

/// Read the next slot. @return false: it is not whole, or its entry is not the next one of the
/// ring.
bool TxEngine::read_slot(const Ring& ring, TxEntry* out) const {
  if (ring.slots_at == 0) {
    return false;
  }
  constexpr uint32_t kWords = sizeof(regs::PushSlot) / 4;
  const Bar& bar = ring.pair->function->bar;
  const uint32_t log2 = core_.config.push_slots_log2;
  const uint32_t number = ring.next_slot & ((1u << log2) - 1);
  const uint32_t phase = First::phase.put(~(ring.next_slot >> log2) & 1);
  uint32_t words[kWords];
  for (uint32_t i = 0; i < kWords; ++i) {
    words[i] = bar.load(ring.slots_at + number * uint32_t{sizeof(regs::PushSlot)} + 4 * i);
    if (((words[i] ^ phase) & First::phase.mask()) != 0) {
      return false;
    }
  }
  if (First::index.put(ring.head) != (words[0] & First::index.mask())) {
    return false;
  }
  uint32_t entry[kWords] = {};
  for (uint32_t i = 0; i + 1 < kWords; ++i) {
    entry[i] = (words[i + 1] & ~First::phase.mask()) | First::phase.put(words[0] >> i & 1);
  }
  out->index = ring.head;
  std::memcpy(&out->desc, entry, sizeof(out->desc));
  std::memcpy(&out->further.units[0], entry + sizeof(out->desc) / 4, sizeof(regs::TxWide));
  out->desc.control |= Control::pushed.mask();
  return true;
}

bool TxEngine::has_posted(const Ring& ring) const {
  TxEntry entry{};
  const uint32_t tail = __atomic_load_n(ring.tail_word, __ATOMIC_RELAXED);
  return (ring.waits() && (ring.slots_at == 0 || static_cast<int32_t>(tail - ring.head) > 0)) ||
         (ring.running() && read_slot(ring, &entry));
}

void TxEngine::run_slots(Pair& pair) {
  Ring& ring = pair.rings[kTxRing];
  TxEntry entry{};
  while (!ring.held && read_slot(ring, &entry)) {
    if (core_.host.posting() && core_.host.rng().below(3) == 0) {
      break;  // a word of the slot is still on its way
    }
    const uint32_t units = units_of(entry.desc);
    ring.tail = ring.head + units;  // the entry is posted, whatever TAIL says
    const bool fits = units <= 2 && (Control::inline_.get(entry.desc.control) == 0 ||
                                     entry.desc.length <= regs::kPushInlineBytes);
    if (!core_.link_up || !fits) {
      finish_unsent(ring, entry.desc,
                    fits ? regs::Status::kLinkDown : regs::Status::kBadDescriptor);
    } else if (!launch_entry(pair, ring, entry)) {
      ring.tail = ring.head;
      break;
    }
  }
  if (pair.last_flow != nullptr) {
    pair.last_flow->way->requests->publish();
  }
}

}  // namespace rio::model
