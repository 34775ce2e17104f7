// Messages written directly into the places of their entries.
#include <algorithm>
#include <cerrno>

#include "pmd/dev/reap.hpp"
#include "pmd/dev/tx_slots.hpp"

namespace rio::pmd {

int TxSlots::use_slots(uint8_t* va, uint64_t iova, uint32_t stride_bytes) {
  if (va == nullptr || stride_bytes < regs::kMessageBytesMax ||
      ((iova | stride_bytes) & addr_misaligned_) != 0) {
    return -EINVAL;
  }
  slots_va_ = va;
  slots_iova_minus_va_ = iova - reinterpret_cast<uintptr_t>(va);
  slot_stride_ = stride_bytes;
  slot_tail_ = bar_.word_to_write(tail_offset_);
  slot_hook_ = send_hook_;
  if (slot_tail_ == nullptr) {
    slot_tail_ = &nowhere_;
    slot_hook_ = {&write_and_hook, this};
  } else if (slot_hook_.fn == nullptr) {
    slot_hook_.fn = [](void* /*ctx*/) noexcept {
    };  // an empty hook, so that the hot path need not check for one
  }
  slots_counted_ = window_.head();
  return 0;
}

/// One doorbell for each slot posted since the last count.
void TxSlots::count_new_slots() {
  if (slot_tail_ != &nowhere_) {
    bar_.count_writes(window_.head() - slots_counted_);
    slots_counted_ = window_.head();
  }
}

void TxSlots::write_and_hook(void* queue) noexcept {
  auto* const self = static_cast<TxSlots*>(queue);
  self->bar_.write32(self->tail_offset_, self->window_.head());
  self->send_hook_();
}

uint32_t TxSlots::skip_delivered() {
  count_slots();
  if (!ready()) {
    hook_();
  }
  const uint32_t n = skip_delivered_run();
  const bool at_wrap =
      (window_.oldest() & window_.mask()) == 0 || (cursor_.consumed & cursor_.mask) == 0;
  return n != 0 && at_wrap ? n + skip_delivered_run() : n;
}

namespace {

constexpr uint32_t kTogether = 8;

/// Two completions of this ring, or what they should be.
using TwoCpls [[gnu::vector_size(32), gnu::aligned(8), gnu::may_alias]] = uint32_t;
static_assert(sizeof(TwoCpls) == 2 * sizeof(regs::TxCpl));
static_assert(offsetof(regs::TxCpl, index) == 4 && offsetof(regs::TxCpl, status) == 12);

/// Whether kTogether completions, which are there, are plain and of consecutive entries from
/// `index` on. @param flip of the last words.
[[nodiscard, gnu::always_inline]] inline bool all_plain(const regs::TxCpl* cpl, uint32_t index,
                                                        uint32_t flip) {
  constexpr TwoCpls kMask = {0, ~0u, 0, kPhaseBit | kCodeMask, 0, ~0u, 0, kPhaseBit | kCodeMask};
  constexpr TwoCpls kNext = {0, 2, 0, 0, 0, 2, 0, 0};
  const auto* const at = reinterpret_cast<const TwoCpls*>(cpl);
  TwoCpls good = {0, index, 0, flip, 0, index + 1, 0, flip};
  TwoCpls wrong = {};
#pragma GCC unroll 4
  for (uint32_t i = 0; i < kTogether / 2; ++i) {
    wrong |= at[i] ^ good;
    good += kNext;
  }
  using Four [[gnu::vector_size(32)]] = uint64_t;
  const auto four = reinterpret_cast<Four>(wrong & kMask);
  return (four[0] | four[1] | four[2] | four[3]) == 0;
}

}  // namespace

uint32_t TxSlots::skip_delivered_run() {
  const uint32_t n = std::min(cursor_.to_wrap(), window_.plain_in_a_row());
  const auto* cpl = cursor_.at<regs::TxCpl>();
  uint32_t index = window_.oldest();
  const regs::TxDesc* entry = entries_ + (index & window_.mask());
  const uint32_t flip = cursor_.flip();
  // The faults of the completion `i` ahead, as bits of its last word and its index.
  const auto wrong = [&](uint32_t i) {
    const uint32_t last = dma_load_last_word(&cpl[i].status) ^ flip;
    base::tsan_acquire(&cpl[i].status);
    if (base::kThreadSanitizer && (last & kPhaseBit) != 0) {
      return last;
    }
    return (last & (kPhaseBit | kCodeMask)) | (cpl[i].index ^ (index + i));
  };
  uint64_t bytes = 0;
  uint32_t k = 0;
  // Check the last one first: mostly it is not there yet, and if it is, so are the others.
  while (!base::kThreadSanitizer && k + kTogether <= n && wrong(kTogether - 1) == 0 &&
         all_plain(cpl, index, flip)) {
    uint32_t sum = 0;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kTogether; ++i) {
      sum += entry[i].length;
      keep_in_register(sum);
    }
    bytes += sum;
    cpl += kTogether;
    entry += kTogether;
    index += kTogether;
    k += kTogether;
  }
  while (k < n && wrong(0) == 0) {
    bytes += entry->length;
    ++cpl;
    ++entry;
    ++index;
    ++k;
  }
  cursor_.consumed += k;
  window_.complete_in_order(k);
  stats_.messages.add(k);
  stats_.bytes.add(bytes);
  return k;
}

}  // namespace rio::pmd
