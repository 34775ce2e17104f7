#include "pmd/dev/pusher.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace rio::pmd {
namespace {

using Control = regs::tx_desc::Control;
using First = regs::push_slot::First;

constexpr uint32_t kWords = sizeof(regs::PushSlot) / 4;

[[nodiscard]] uint32_t units_of(const regs::TxDesc& entry) {
  return Control::units.get(entry.control) + 1;
}

[[nodiscard]] bool fits(const regs::TxDesc& entry) {
  const bool is_short =
      Control::inline_.get(entry.control) != 0 && entry.length <= regs::kPushInlineBytes;
  return Control::op.get(entry.control) != static_cast<uint32_t>(regs::TxOp::kSkip) &&
         (units_of(entry) == 1 || is_short);
}

}  // namespace

Pusher::Pusher(SharedKey /*key*/, uint32_t qp, uint32_t slots, uint32_t start_index)
    : first_at_(regs::qp::base(qp) + regs::kPushSlotsAt), mask_(slots - 1) {
  begin(start_index);
}

void Pusher::begin(uint32_t start_index) {
  next_ = 0;
  told_ = start_index;
  std::fill_n(last_, mask_ + 1, start_index - 1);  // all slots are free
}

bool Pusher::push(Mmio& bar, regs::TxDesc* entries, const EntryWindow& window) {
  const uint32_t head = window.head();
  uint32_t index = told_;
  told_ = head;
  if (head - index > kUnitsMax) {
    return false;
  }
  const uint32_t first = next_;
  while (index != head) {
    regs::TxDesc* const entry = &entries[index & window.mask()];
    // The card fetches in order: it has passed the slots of entries before the oldest.
    const bool is_free = static_cast<int32_t>(window.oldest() - last_[next_ & mask_]) > 0;
    if (!is_free || !fits(*entry)) {
      return false;
    }
    write(bar, entry, index);
    index += units_of(*entry);
  }
  write_combined_barrier();
  // One doorbell a lap, so that TAIL never lies far behind.
  return ((first ^ next_) & ~mask_) == 0;
}

void Pusher::write(Mmio& bar, regs::TxDesc* entry, uint32_t index) {
  entry->control |= Control::pushed.put(1);
  alignas(32) uint32_t words[kWords] = {};
  std::memcpy(words + 1, entry, units_of(*entry) == 1 ? sizeof *entry : sizeof words - 4);
  const uint32_t phase = First::phase.put(~(next_ >> std::popcount(mask_)) & 1);
  uint32_t tops = 0;
  for (uint32_t i = 1; i < kWords; ++i) {
    tops |= First::phase.get(words[i]) << (i - 1);
    words[i] = (words[i] & ~First::phase.mask()) | phase;
  }
  words[0] = phase | First::index.put(index) | First::tops.put(tops);
  bar.write_line(first_at_ + (next_ & mask_) * uint32_t{sizeof(regs::PushSlot)}, words);
  last_[next_ & mask_] = index;
  ++next_;
  pushed_.add(1);
}

}  // namespace rio::pmd
