// Messages written directly into the places of their entries.
#include <cerrno>

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
  uint32_t n = 0;
  uint32_t time = 0;
  while (const uint32_t count = delivered(&time)) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) {
      bytes += slot_bytes(window_.oldest() + i);
    }
    pass_delivered(count, count, bytes);
    n += count;
  }
  return n;
}

}  // namespace rio::pmd
