#include "pmd/dev/barrier_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"

namespace rio::pmd {
namespace {

using Control = regs::barrier_desc::Control;
using Cpl = regs::BarrierCpl;
using Index = regs::barrier_cpl::Index;
using End = regs::barrier_cpl::Status;
using Where = regs::barrier_cpl::Where;

constexpr uint32_t kPrioMax = 2;
constexpr uint32_t kGroupMax = regs::barrier_notice::Info::group.max();
constexpr uint32_t kFrom = 1;  // a completion is read from this word on: word 0 is not needed
constexpr uint32_t kLineBytes = 64;
constexpr uint32_t kGoStride = regs::barrier::go(0, 1) - regs::barrier::go(0, 0);
constexpr uint32_t kDescBytes = sizeof(regs::BarrierDesc);

}  // namespace

int BarrierQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                         SharedPtr<BarrierQueue>* out) {
  if (caps.barrier_rounds == 0) {
    base::log_error("%s: the card has no barrier engine; leave the barrier ring out",
                    bus.name().c_str());
    return -ENOTSUP;
  }
  return make_queue(bus, out, [&](BarrierQueue& queue) {
    queue.rounds_max_ = caps.barrier_rounds;
    queue.slot_count_ = std::min(caps.barrier_slots, regs::kBarrierSlots);
    queue.go_at_ = regs::barrier::go(config.qp, 0);
    queue.bar_ = bus.bar();
    queue.start_hook_ = bus.emulation().step_to_start_hook(config.qp);
    // A ring that runs has another owner, whose settings must stay; start() reports it.
    if (Ring::busy(queue.bar_, config.qp, config.ring) == 0) {
      queue.bar_.write32(regs::barrier::resend_limit(config.qp), config.barrier_resends);
      queue.bar_.write32(regs::barrier::early_reserve(config.qp), config.barrier_reserve);
      for (uint32_t slot = 0; slot < queue.slot_count_; ++slot) {
        queue.bar_.write32(queue.go_at_ + slot * kGoStride, 0);
      }
    }
    return queue.start<Cpl>(bus, caps, config, &queue.entries_, 0, regs::kBarrierSlots);
  });
}

/// The checks that cost nothing; the card checks the rest, and answers kBadDescriptor.
bool BarrierQueue::is_known(const regs::BarrierDesc& desc) const {
  const uint32_t control = desc.control;
  return Control::op.get(control) <= static_cast<uint32_t>(regs::BarrierOp::kCancel) &&
         Control::rounds.get(control) - 1 < rounds_max_ && Control::prio.get(control) <= kPrioMax &&
         desc.group <= kGroupMax;
}

void BarrierQueue::write_entry(uint32_t index, const BarrierRequest& request) {
  const uint32_t at = index & window_.mask();
  regs::BarrierDesc* const entry = &entries_[at];
  *entry = *request.desc;
  entry->epoch = request.epoch;
  entry->cookie = static_cast<uint32_t>(request.cookie);
  window_.cookies()[at] = request.cookie;
  window_.sizes()[at] = request.epoch;  // for BarrierDone
}

uint16_t BarrierQueue::post(const BarrierRequest* requests, uint16_t n) {
  begin_post();
  const uint32_t count = std::min<uint32_t>(n, window_.room());
  const uint32_t head = window_.head();
  uint32_t k = 0;
  for (; k < count; ++k) {
    if (!is_known(*requests[k].desc)) [[unlikely]] {
      refuse(Reject::kOperation);
      break;
    }
    write_entry(head + k, requests[k]);
  }
  window_.post(k);
  ring_doorbell(head);
  hook_();
  return static_cast<uint16_t>(k);
}

int BarrierQueue::load(uint32_t slot, const regs::BarrierDesc& desc, uint64_t cookie) {
  const uint32_t qp = ring_.config().qp;
  const char* const card = ring_.bus().name().c_str();
  if (slot >= slot_count_) {
    base::log_error("%s: qp %u: barrier slot %u; the card has %u: use another one, or post", card,
                    qp, slot, slot_count_);
    return -EINVAL;
  }
  if (!is_known(desc)) {
    base::log_error(
        "%s: qp %u: barrier with control word 0x%x and group %u; the card takes 1 to %u rounds, "
        "priority 0 to %u and group 0 to %u",
        card, qp, desc.control, desc.group, rounds_max_, kPrioMax, kGroupMax);
    return -EINVAL;
  }
  Slot& place = slots_[slot];
  if (is_running(slot)) {
    base::log_error("%s: qp %u: barrier slot %u runs; reap its barrier first", card, qp, slot);
    return -EBUSY;
  }
  regs::BarrierDesc& copy = loaded_[slot];
  copy = desc;
  copy.epoch = 0;
  copy.cookie = static_cast<uint32_t>(cookie);
  for (uint32_t at = 0; at < kDescBytes; at += kLineBytes) {
    alignas(32) uint32_t words[kLineBytes / sizeof(uint32_t)];
    std::memcpy(words, reinterpret_cast<const uint8_t*>(&copy) + at, sizeof words);
    bar_.write_line(regs::barrier::slot(qp, (slot * kDescBytes + at) / 4), words);
  }
  write_combined_barrier();  // the slot's words before GO; pairs with the card's read of the slot
  place.cookie = cookie;
  place.state = SlotState::kLoaded;
  return 0;
}

bool BarrierQueue::go(uint32_t slot, uint32_t epoch) {
  begin_post();
  if (slot >= slot_count_ || slots_[slot].state != SlotState::kLoaded) [[unlikely]] {
    return refuse(Reject::kOperation);
  }
  Slot& place = slots_[slot];
  if (epoch == place.word) [[unlikely]] {
    return go_in_ring(slot, epoch);
  }
  place.word = epoch;
  place.epoch = epoch;
  place.state = SlotState::kRunning;
  ++slots_running_;
  slots_started_.add(1);
  // Starts the barrier: all that the program wrote before is visible before it (barrier in
  // write32); pairs with the card's read of GO.
  bar_.write32(go_at_ + slot * kGoStride, epoch);
  start_hook_();
  return true;
}

bool BarrierQueue::go_in_ring(uint32_t slot, uint32_t epoch) {
  if (window_.room() == 0) {
    return false;
  }
  Slot& place = slots_[slot];
  const uint32_t head = window_.head();
  write_entry(head, {&loaded_[slot], place.cookie, epoch});
  place.epoch = epoch;
  place.entry = head;
  place.state = SlotState::kInRing;
  ++slots_in_ring_;
  window_.post(1);
  ring_doorbell(head);
  hook_();
  return true;
}

/// The free-running index of an entry whose low 31 bits the card names.
[[gnu::always_inline]] inline uint32_t BarrierQueue::entry_of(uint32_t index) const {
  const uint32_t oldest = window_.oldest();
  return oldest + Index::entry.get(index - oldest);
}

/// Whether a completion can be true. @param index from the card, any value.
bool BarrierQueue::is_ours(uint32_t index) const {
  const uint32_t slot = index ^ Index::slot.mask();
  return Index::slot.get(index) == 0
             ? window_.has(entry_of(index))
             : slot < slots_.size() && slots_[slot].state == SlotState::kRunning;
}

/// End the run of the slot whose epoch was posted as this entry. @return the slot, or
/// kBarrierNoSlot.
uint8_t BarrierQueue::slot_of_entry(uint32_t entry) {
  for (uint32_t slot = 0; slot < slot_count_; ++slot) {
    Slot& place = slots_[slot];
    if (place.state == SlotState::kInRing && place.entry == entry) {
      place.state = SlotState::kLoaded;
      --slots_in_ring_;
      return static_cast<uint8_t>(slot);
    }
  }
  return kBarrierNoSlot;
}

/// End the outstanding barrier that a completion names, and fill in cookie, epoch and slot of
/// `out`.
/// @param index from the card, any value. @return false: it names none of ours; nothing has
/// changed.
[[gnu::always_inline]] inline bool BarrierQueue::claim(uint32_t index, BarrierDone* out) {
  const uint32_t slot = index ^ Index::slot.mask();
  if (slot < slots_.size()) {
    Slot& place = slots_[slot];
    if (place.state != SlotState::kRunning) [[unlikely]] {
      return false;
    }
    place.state = SlotState::kLoaded;
    --slots_running_;
    out->cookie = place.cookie;
    out->epoch = place.epoch;
    out->slot = static_cast<uint8_t>(slot);
    return true;
  }
  const uint32_t entry = entry_of(index);
  if (Index::slot.get(index) != 0 || !window_.complete(entry)) [[unlikely]] {
    return false;
  }
  const uint32_t at = entry & window_.mask();
  out->cookie = window_.cookies()[at];
  out->epoch = window_.sizes()[at];
  out->slot = slots_in_ring_ == 0 ? kBarrierNoSlot : slot_of_entry(entry);
  return true;
}

/// Take the next completion, which is torn, wrong, or reports a failure. @return how many barriers
/// are in `out`, 0 or 1.
[[gnu::noinline]] uint32_t BarrierQueue::reap_slow(BarrierDone* out) {
  const Cpl cpl =
      load_whole<kFrom>(cursor_.at<Cpl>(), [this](const Cpl& c) { return is_ours(c.index); });
  cursor_.consume<Cpl>();
  if (!claim(cpl.index, out)) {
    stats_.bad_completions.add(1);
    return 0;
  }
  const uint32_t round = Where::round.get(cpl.where);
  out->status = static_cast<Status>(cpl.status & kCodeMask);
  out->resent = static_cast<uint16_t>(Where::resent.get(cpl.where));
  out->retries = static_cast<uint8_t>(End::retries.get(cpl.status));
  out->round = 0;
  out->peer = 0;
  if (out->status == Status::kOk) {
    stats_.messages.add(1);
    return 1;
  }
  stats_.failed.add(1);
  if (round < regs::kBarrierRoundsMax) {
    out->round = static_cast<uint8_t>(round);
    out->peer = static_cast<uint8_t>(Where::peer.get(cpl.where));
  } else {  // no descriptor has such a round: the barrier has ended, but the place is not known
    stats_.bad_completions.add(1);
    out->status = Status::kFormat;
  }
  return 1;
}

uint16_t BarrierQueue::reap(BarrierDone* out, uint16_t n) {
  if (!cursor_.ready<Cpl>()) {
    if (n == 0) {
      return 0;
    }
    hook_();
    if (!cursor_.ready<Cpl>()) {
      return 0;
    }
  }
  uint32_t given = 0;
  for (uint32_t looked = 0; looked < n && window_.used() + slots_running_ != 0; ++looked) {
    if (!cursor_.ready<Cpl>()) {
      break;
    }
    const Cpl cpl = load_completion(cursor_.at<Cpl>());
    BarrierDone* const done = &out[given];
    if ((cpl.status & kCodeMask) != 0 || cpl.where == kUnwritten || !claim(cpl.index, done))
        [[unlikely]] {
      given += reap_slow(done);
      continue;
    }
    done->status = Status::kOk;
    done->resent = static_cast<uint16_t>(Where::resent.get(cpl.where));
    done->retries = static_cast<uint8_t>(End::retries.get(cpl.status));
    done->round = 0;
    done->peer = 0;
    cursor_.consume<Cpl>();
    stats_.messages.add(1);
    ++given;
  }
  return static_cast<uint16_t>(given);
}

uint16_t BarrierQueue::outstanding() const {
  return static_cast<uint16_t>(std::min(window_.outstanding() + slots_running_, 0xFFFFu));
}

void BarrierQueue::clear_go() {
  for (uint32_t slot = 0; slot < slot_count_; ++slot) {
    bar_.write32(go_at_ + slot * kGoStride, 0);
    slots_[slot].word = 0;
  }
}

int BarrierQueue::restart() {
  if (outstanding() != 0 || ring_.running()) {
    return -EBUSY;
  }
  clear_go();  // the ring is stopped, so these writes start nothing
  return PostingQueue::restart();
}

}  // namespace rio::pmd
