// Messages written directly into the places of their entries.
#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "pmd/dev/tx_slots.hpp"

namespace rio::pmd {

int TxSlots::use_slots(uint8_t* va, uint64_t iova, uint32_t stride_bytes, uint32_t spares) {
  if (va == nullptr || stride_bytes < regs::kMessageBytesMax ||
      ((iova | stride_bytes) & addr_misaligned_) != 0) {
    return -EINVAL;
  }
  const uint32_t slots = window_.mask() + 1;
  places_.reset(new (std::nothrow) uint8_t*[slots]);
  asides_.reset(new (std::nothrow) Aside[spares]);
  if (places_ == nullptr || asides_ == nullptr) {
    return -ENOMEM;
  }
  window_.limit_stragglers(spares);
  aside_count_ = spares;
  for (uint32_t i = 0; i < slots; ++i) {
    places_[i] = va + uint64_t{i} * stride_bytes;
  }
  for (uint32_t i = 0; i < spares; ++i) {
    asides_[i] = {va + uint64_t{slots + i} * stride_bytes, 0, false, {}};
  }
  slots_iova_minus_va_ = iova - reinterpret_cast<uintptr_t>(va);
  slot_tail_ = tail_word_;
  slot_hook_ = send_hook_;
  if (slot_tail_ == nullptr) {
    slot_tail_ = &nowhere_;
    slot_hook_ = {&tell_and_hook, this};
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

void TxSlots::set_oldest_aside() {
  const uint32_t index = window_.oldest();
  window_.set_aside(entries_[index & window_.mask()].length);
  if (aside_count_ == 0) {
    return;  // the queue has no slots
  }
  const auto advance = [this] {
    next_aside_ = next_aside_ + 1 == aside_count_ ? 0 : next_aside_ + 1;
  };
  while (asides_[next_aside_].is_out) {  // not all are: as many entries are set aside at most
    advance();
  }
  Aside& aside = asides_[next_aside_];
  advance();
  const uint32_t slot = index & window_.mask();
  aside.index = last_aside_ = index;
  aside.is_out = true;
  aside.desc = entries_[slot];
  std::swap(aside.va, places_[slot]);
  window_.cookies()[slot] = ~uint64_t{index};
}

void TxSlots::free_place(uint32_t index) {
  for (uint32_t i = 0; i < aside_count_; ++i) {
    asides_[i].is_out = asides_[i].is_out && asides_[i].index != index;
  }
}

bool TxSlots::look_aside(uint32_t* index) {
  look_at_ = look_at_ + 1 < aside_count_ ? look_at_ + 1 : 0;
  if (aside_count_ == 0 || !asides_[look_at_].is_out) {
    return false;
  }
  *index = asides_[look_at_].index;
  return true;
}

const TxSlots::Aside* TxSlots::search_asides(uint32_t index) const {
  for (uint32_t i = 0; i < aside_count_; ++i) {
    if (asides_[i].index == index && asides_[i].desc.length != 0) {  // 0: never used
      return &asides_[i];
    }
  }
  return nullptr;
}

int TxSlots::prepare_tell(Bus& bus, const Caps& caps) {
  const RingConfig& config = ring_.config();
  if (!config.push) {
    tail_word_ = bar_.word_to_write(tail_offset_);
    return 0;
  }
  pusher_ = make_shared_object<Pusher>(bus, config.qp, caps.push_slots, config.start_index);
  return pusher_ != nullptr ? 0 : -ENOMEM;
}

[[gnu::noinline]] void TxSlots::tell_card_slow() {
  if (pusher_ == nullptr || !pusher_->push(bar_, entries_, window_)) {
    bar_.write32(tail_offset_, window_.head());
  }
}

void TxSlots::tell_and_hook(void* queue) noexcept {
  auto* const self = static_cast<TxSlots*>(queue);
  self->tell_card_slow();
  self->send_hook_();
}

int TxSlots::restart() {
  const int error = PostingQueue::restart();
  if (error == 0 && pusher_ != nullptr) {
    pusher_->begin(window_.head());
  }
  return error;
}

/// @return bytes of the messages of entries that do not wrap.
[[gnu::always_inline]] static inline uint64_t bytes_of(const regs::TxDesc* entries,
                                                       uint32_t count) {
  uint64_t bytes = 0;
#pragma GCC unroll 4
  for (uint32_t i = 0; i < count; ++i) {
    bytes += entries[i].length;
    keep_in_register(bytes);  // is added where it is: no vector is made of lengths far apart
  }
  return bytes;
}

uint32_t TxSlots::skip_delivered() {
  count_slots();
  end_posts();  // send_slot() does not
  end_next();
  if (!ready()) {
    hook_();
  }
  uint32_t n = take_single(~0u, [](size_t /*message*/, uint32_t /*time*/) {});
  uint32_t time = 0;
  while (const uint32_t count = delivered(&time)) {
    const uint32_t slot = window_.oldest() & window_.mask();
    const uint32_t first = std::min(count, window_.mask() + 1 - slot);
    const uint64_t bytes = bytes_of(entries_ + slot, first) + bytes_of(entries_, count - first);
    pass_delivered(count, count, bytes);
    n += count;
  }
  return n;
}

}  // namespace rio::pmd
