#include "apps/testpmd/dedicated_sender.hpp"

#include <rte_cycles.h>

#include <algorithm>
#include <cstring>

namespace rio::testpmd {
namespace {

/// Transfers of lane `index` out of `lanes`, so that all together are --count.
uint64_t share_of(uint64_t count, uint32_t lanes, uint32_t index) {
  return count == 0 ? UINT64_MAX : count / lanes + (index < count % lanes ? 1 : 0);
}

}  // namespace

DedicatedSender::DedicatedSender(const RunSetup& setup, DedicatedPath& lane, uint32_t lanes_of_port,
                                 uint32_t index, Stream& owner)
    : lane_(lane),
      queue_(lane.from->pair(lane.from_pair).tx()),
      verifier_(setup.verifier),
      owner_(owner),
      size_bytes_(setup.size_bytes),
      burst_(setup.options.burst),
      left_(share_of(setup.options.count, lanes_of_port, index)) {
  buffers_.offset_bytes = setup.options.offset_bytes;
  buffers_.stride_bytes = lane_stride(size_bytes_, buffers_.offset_bytes);
  slots_.resize(lane.slots);
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
        if (pmd::mem::BouncePool::create(lane_.from->card().bus(), bounced * lane_.slots,
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
    bounces_.push_back(bounce);
    messages_.push_back(
        {.iova = bounce == pmd::mem::BouncePool::kNone ? message.iova : bounce_->iova(bounce),
         .cookie = uint64_t{cookie} * kCookieSlots + index,
         .dest_id = lane_.to->dest_id(),
         .length_bytes = message.wire_bytes,
         .mbox = lane_.mbox,
         .flags = ordered ? uint8_t{0} : pmd::TxFlags::kOrder});
  }
  messages_each_ = static_cast<uint32_t>(slot.plan.messages.size());
  return 0;
}

int DedicatedSender::allocate(uint32_t cookie, std::string* error) {
  const int rc = lane_.from->card().bus().dma_alloc(uint64_t{buffers_.stride_bytes} * lane_.slots,
                                                    4096, &buffers_.memory);
  if (rc != 0) {
    *error = "no memory to send " + std::to_string(lane_.slots) + " transfers of " +
             std::to_string(size_bytes_) + " bytes; give EAL more (-m 512)";
    return rc;
  }
  for (uint32_t i = 0; i < lane_.slots; ++i) {
    const int planned = plan_slot(i, cookie, error);
    if (planned != 0) {
      return planned;
    }
  }
  return 0;
}

int DedicatedSender::create(const RunSetup& setup, DedicatedPath& lane, uint32_t lanes_of_port,
                            uint32_t index, Stream& owner, std::unique_ptr<DedicatedSender>* out,
                            std::string* error) {
  std::unique_ptr<DedicatedSender> sender(
      new DedicatedSender(setup, lane, lanes_of_port, index, owner));
  const int rc = sender->allocate(index, error);
  if (rc == 0) {
    *out = std::move(sender);
  }
  return rc;
}

/// Write the transfer's bytes, and copy those that are bounced.
void DedicatedSender::begin(uint32_t index) noexcept {
  Slot& slot = slots_[index];
  slot.left = messages_each_;
  slot.start_tsc = rte_rdtsc();
  if (verifier_.verifies()) {
    fill_message(buffers_.at(index), size_bytes_, verifier_.seed(),
                 {.sequence = verifier_.take_number(lane_.flow),
                  .stamp = slot.start_tsc,
                  .flow = lane_.flow});
  }
  for (uint32_t i = 0; i < messages_each_; ++i) {
    const uint32_t bounce = bounces_[index * messages_each_ + i];
    if (bounce != pmd::mem::BouncePool::kNone) {
      const pmd::mem::PlanMessage& message = slot.plan.messages[i];
      bounce_->copy_in(bounce, message.va, message.len_bytes, message.wire_bytes);
    }
  }
  owner_.stats.bytes_placed.add(slot.plan.bytes_placed);
  owner_.stats.bytes_copied.add(slot.plan.bytes_copied);
  ++begun_;
  unsent_ += messages_each_;
  left_ -= left_ == UINT64_MAX ? 0 : 1;
}

uint32_t DedicatedSender::turn(bool may_send) noexcept {
  if (lane_.state.load(std::memory_order_acquire) != DedicatedPath::State::kRunning) [[unlikely]] {
    if (!pause_.pausing()) {
      mend();
    }
    return 0;
  }
  const uint64_t granted = lane_.granted.load(std::memory_order_acquire);
  // Half of the slots at a time, so that a doorbell is for several messages; whatever there is when
  // nothing is on its way.
  const uint64_t room = std::min(granted - begun_, lane_.slots - (begun_ - confirmed_));
  if (may_send && (room >= lane_.slots / 2 || in_flight_ == 0)) {
    for (uint64_t i = 0; i < room && left_ > 0 && unsent_ < burst_; ++i) {
      begin(static_cast<uint32_t>(begun_ & (lane_.slots - 1)));
    }
  }
  const uint32_t n = std::min({burst_, unsent_, static_cast<uint32_t>(messages_.size()) - at_});
  if (n == 0) {
    return 0;
  }
  const uint32_t sent = queue_.burst(&messages_[at_], static_cast<uint16_t>(n));
  at_ += sent;
  at_ = at_ == messages_.size() ? 0 : at_;
  unsent_ -= sent;
  in_flight_ += sent;
  owner_.stats.tx_messages.add(sent);
  return sent;
}

void DedicatedSender::confirm() noexcept {
  while (confirmed_ < begun_) {
    const Slot& slot = slots_[confirmed_ & (lane_.slots - 1)];
    if (slot.left != 0) {
      break;
    }
    owner_.latency.add(rte_rdtsc() - slot.start_tsc);
    ++confirmed_;
  }
  lane_.confirmed.store(confirmed_, std::memory_order_release);
}

void DedicatedSender::done(uint32_t slot, const pmd::TxDone& done) noexcept {
  --in_flight_;
  owner_.stats.retries.add(done.retries);
  if (done.status != pmd::Status::kOk) [[unlikely]] {
    owner_.stats.count_status(done.status);
    pause_.note(done.status);
    lane_.state.store(DedicatedPath::State::kBroken, std::memory_order_release);
    return;
  }
  if (--slots_[slot].left == 0 &&
      lane_.state.load(std::memory_order_relaxed) == DedicatedPath::State::kRunning) {
    confirm();
  }
}

/// The lane is broken: once nothing is in flight, give up what was begun and hand over.
void DedicatedSender::mend() noexcept {
  if (lane_.state.load(std::memory_order_relaxed) != DedicatedPath::State::kBroken ||
      in_flight_ != 0) {
    return;
  }
  confirm();
  for (uint64_t transfer = confirmed_; transfer < begun_; ++transfer) {
    if (verifier_.verifies()) {
      verifier_.failed(lane_.flow, pmd::Status::kResponseTimeout);
    }
  }
  confirmed_ = begun_;
  at_ = static_cast<uint32_t>(begun_ & (lane_.slots - 1)) * messages_each_;
  unsent_ = 0;
  lane_.resume_at.store(begun_, std::memory_order_relaxed);
  lane_.state.store(DedicatedPath::State::kDry, std::memory_order_release);
}

}  // namespace rio::testpmd
