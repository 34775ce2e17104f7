#include "apps/testpmd/dedicated_sender.hpp"

#include <rte_cycles.h>

#include <algorithm>
#include <cstring>

namespace rio::testpmd {

DedicatedSender::DedicatedSender(const RunSetup& setup, Lane& lane, Stream& owner)
    : lane_(lane),
      queue_(lane.from->pair(lane.from_pair).tx()),
      verifier_(setup.verifier),
      owner_(owner),
      size_bytes_(setup.size_bytes),
      burst_(setup.options.burst),
      left_(setup.options.count == 0 ? UINT64_MAX : setup.options.count) {
  buffers_.offset_bytes = setup.options.offset_bytes;
  buffers_.stride_bytes = lane_stride(size_bytes_, buffers_.offset_bytes);
}

DedicatedSender::~DedicatedSender() {
  if (buffers_.memory.va != nullptr) {
    lane_.from->card().bus().dma_free(buffers_.memory);
  }
}

int DedicatedSender::plan_slot(uint32_t index, uint32_t cookie, std::string* error) {
  Slot& slot = slots_[index];
  const pmd::Caps& caps = lane_.from->card().caps();
  const pmd::mem::AlignRules rules = pmd::mem::align_rules(
      caps.tx_addr_align, caps.dedicated_addr_align, caps.dedicated_size_align,
      caps.quirk_last_at_256 || caps.quirk_last_full_256);
  const pmd::IovaRun run = buffers_.run();
  const pmd::mem::Range range{
      .va = buffers_.at(index), .len_bytes = size_bytes_, .runs = {&run, 1}};
  const int rc = pmd::mem::plan_send(range, lane_.cut, rules, {}, &slot.plan);
  if (rc != 0) {
    *error = "no alignment plan to send " + std::to_string(size_bytes_) + " bytes at offset " +
             std::to_string(buffers_.offset_bytes) + ": " + std::strerror(-rc);
    return rc;
  }
  // Messages must meet their entries in order: by the card if it offers that, else by the flag.
  const bool ordered = caps.order_depth >= caps.letters;
  for (const pmd::mem::PlanMessage& message : slot.plan.messages) {
    uint32_t bounce = pmd::mem::BouncePool::kNone;
    if (message.placement == pmd::mem::Placement::kBounced) {
      if (!bounce_) {
        const auto bounced = static_cast<uint32_t>(std::count_if(
            slot.plan.messages.begin(), slot.plan.messages.end(),
            [](const auto& m) { return m.placement == pmd::mem::Placement::kBounced; }));
        if (pmd::mem::BouncePool::create(lane_.from->card().bus(), bounced * kLaneSlots,
                                         &bounce_) != 0) {
          *error = "no memory to bounce; give EAL more (-m 512)";
          return -ENOMEM;
        }
      }
      bounce = bounce_->get();
      if (bounce == pmd::mem::BouncePool::kNone) {
        *error = "too few bounce buffers";
        return -ENOMEM;
      }
    }
    slot.bounces.push_back(bounce);
    slot.messages.push_back(
        {.iova = bounce == pmd::mem::BouncePool::kNone ? message.iova : bounce_->iova(bounce),
         .cookie = uint64_t{cookie} * kLaneSlots + index,
         .dest_id = lane_.to->dest_id(),
         .length_bytes = message.wire_bytes,
         .mbox = lane_.mbox,
         .flags = ordered ? uint8_t{0} : pmd::TxFlags::kOrder});
  }
  return 0;
}

int DedicatedSender::allocate(uint32_t cookie, std::string* error) {
  const int rc = lane_.from->card().bus().dma_alloc(uint64_t{buffers_.stride_bytes} * kLaneSlots,
                                                    4096, &buffers_.memory);
  if (rc != 0) {
    *error = "no memory to send " + std::to_string(kLaneSlots) + " transfers of " +
             std::to_string(size_bytes_) + " bytes; give EAL more (-m 512)";
    return rc;
  }
  for (uint32_t i = 0; i < kLaneSlots; ++i) {
    const int planned = plan_slot(i, cookie, error);
    if (planned != 0) {
      return planned;
    }
  }
  return 0;
}

int DedicatedSender::create(const RunSetup& setup, Lane& lane, uint32_t cookie, Stream& owner,
                            std::unique_ptr<DedicatedSender>* out, std::string* error) {
  std::unique_ptr<DedicatedSender> sender(new DedicatedSender(setup, lane, owner));
  const int rc = sender->allocate(cookie, error);
  if (rc == 0) {
    *out = std::move(sender);
  }
  return rc;
}

/// Write the transfer's bytes, and copy those that are bounced.
void DedicatedSender::begin(Slot& slot, uint32_t index) noexcept {
  slot.left = static_cast<uint32_t>(slot.messages.size());
  slot.start_tsc = rte_rdtsc();
  if (verifier_.verifies()) {
    fill_message(buffers_.at(index), size_bytes_, verifier_.seed(),
                 {.sequence = verifier_.take_number(lane_.flow),
                  .stamp = slot.start_tsc,
                  .flow = lane_.flow});
  }
  for (size_t i = 0; i < slot.bounces.size(); ++i) {
    if (slot.bounces[i] != pmd::mem::BouncePool::kNone) {
      const pmd::mem::PlanMessage& message = slot.plan.messages[i];
      bounce_->copy_in(slot.bounces[i], message.va, message.len_bytes, message.wire_bytes);
    }
  }
  owner_.stats.bytes_placed.add(slot.plan.bytes_placed);
  owner_.stats.bytes_copied.add(slot.plan.bytes_copied);
}

uint32_t DedicatedSender::turn(bool may_send) noexcept {
  if (lane_.state.load(std::memory_order_acquire) != Lane::State::kRunning) [[unlikely]] {
    mend();
    return 0;
  }
  if (!begun_) {
    if (!may_send || left_ == 0 || next_ - confirmed_ >= kLaneSlots ||
        next_ >= lane_.granted.load(std::memory_order_acquire)) {
      return 0;
    }
    const auto index = static_cast<uint32_t>(next_ % kLaneSlots);
    begin(slots_[index], index);
    begun_ = true;
  }
  const Slot& slot = slots_[next_ % kLaneSlots];
  const auto all = static_cast<uint32_t>(slot.messages.size());
  const uint32_t n = std::min(burst_, all - at_);
  const uint32_t sent = queue_.burst(&slot.messages[at_], static_cast<uint16_t>(n));
  at_ += sent;
  in_flight_ += sent;
  owner_.stats.tx_messages.add(sent);
  if (at_ == all) {
    at_ = 0;
    begun_ = false;
    ++next_;
    left_ -= left_ == UINT64_MAX ? 0 : 1;
  }
  return sent;
}

void DedicatedSender::confirm() noexcept {
  while (confirmed_ < next_ && slots_[confirmed_ % kLaneSlots].left == 0) {
    owner_.latency.add(rte_rdtsc() - slots_[confirmed_ % kLaneSlots].start_tsc);
    ++confirmed_;
  }
  lane_.confirmed.store(confirmed_, std::memory_order_release);
}

void DedicatedSender::done(uint32_t slot, const pmd::TxDone& done) noexcept {
  --in_flight_;
  owner_.stats.retries.add(done.retries);
  if (done.status != pmd::Status::kOk) [[unlikely]] {
    owner_.stats.count_status(done.status);
    lane_.state.store(Lane::State::kBroken, std::memory_order_release);
    return;
  }
  if (--slots_[slot].left == 0 &&
      lane_.state.load(std::memory_order_relaxed) == Lane::State::kRunning) {
    confirm();
  }
}

/// The lane is broken: once nothing is in flight, give up what was begun and hand over.
void DedicatedSender::mend() noexcept {
  if (lane_.state.load(std::memory_order_relaxed) != Lane::State::kBroken || in_flight_ != 0) {
    return;
  }
  confirm();
  const uint64_t begun = next_ + (begun_ ? 1 : 0);
  for (uint64_t transfer = confirmed_; transfer < begun; ++transfer) {
    if (verifier_.verifies()) {
      verifier_.failed(lane_.flow, pmd::Status::kResponseTimeout);
    }
  }
  if (begun_) {
    left_ -= left_ == UINT64_MAX ? 0 : 1;
  }
  next_ = begun;
  confirmed_ = begun;
  at_ = 0;
  begun_ = false;
  lane_.resume_at.store(begun, std::memory_order_relaxed);
  lane_.state.store(Lane::State::kDry, std::memory_order_release);
}

}  // namespace rio::testpmd
