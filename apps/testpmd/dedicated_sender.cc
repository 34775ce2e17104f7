#include "apps/testpmd/dedicated_path.hpp"

namespace rio::testpmd {
namespace {

/// Transfers of path `index` out of `paths`, so that all together are --count.
uint64_t share_of(uint64_t count, uint32_t paths, uint32_t index) {
  return count == 0 ? UINT64_MAX : count / paths + (index < count % paths ? 1 : 0);
}

}  // namespace

DedicatedSender::DedicatedSender(const RunSetup& setup, const std::shared_ptr<DedicatedPath>& path,
                                 uint32_t paths_of_port, uint32_t index, Stream& owner)
    : DedicatedEnd(setup, path, path->from, owner),
      queue_(path->from.pair(path->from_pair).tx()),
      index_(index),
      burst_(setup.options.burst),
      left_(share_of(setup.options.count, paths_of_port, index)) {}

int DedicatedSender::start(std::string* error) {
  // Messages must meet their entries in order: by the card if it offers that, else by the flag.
  const pmd::Caps& caps = path_.from.card().caps();
  const uint8_t flags = caps.order_depth >= caps.letters ? uint8_t{0} : pmd::TxFlags::kOrder;
  const auto add = [&](uint32_t slot, const pmd::mem::PlanMessage& message, uint64_t iova) {
    messages_.push_back({.iova = iova,
                         .cookie = uint64_t{index_} * kCookieSlots + slot,
                         .dest_id = path_.to.dest_id(),
                         .length_bytes = message.wire_bytes,
                         .mbox = path_.mbox,
                         .flags = flags});
  };
  const auto plan = [this](const auto& range, const auto& rules, pmd::mem::Plan* out) {
    return pmd::mem::plan_send(range, path_.cut, rules, {}, out);
  };
  return allocate("send", plan, add, error);
}

/// Write the transfer's bytes, and copy those that are bounced.
void DedicatedSender::begin(uint32_t index) noexcept {
  Slot& slot = slots_[index];
  slot.left = messages_each_;
  slot.start_tsc = rte_rdtsc();
  if (verifier_.verifies()) {
    verifier_.write(bytes(index), path_.flow, slot.start_tsc);
  }
  bounce_messages(index, [this](uint32_t bounce, const pmd::mem::PlanMessage& message) {
    bounce_->copy_in(bounce, message.va, message.len_bytes, message.wire_bytes);
  });
  ++begun_;
  unsent_ += messages_each_;
  left_ -= left_ == UINT64_MAX ? 0 : 1;
}

uint32_t DedicatedSender::turn(bool may_send) noexcept {
  if (path_.state.load(std::memory_order_acquire) != DedicatedPath::State::kRunning) [[unlikely]] {
    if (!pause_.pausing()) {
      mend();
    }
    return 0;
  }
  const uint64_t granted = path_.granted.load(std::memory_order_acquire);
  // Half of the slots at a time, so that a doorbell is for several messages; whatever there is when
  // nothing is on its way.
  const uint64_t room = std::min(granted - begun_, path_.slots - (begun_ - confirmed_));
  if (may_send && (room >= path_.slots / 2 || in_flight_ == 0)) {
    for (uint64_t i = 0; i < room && left_ > 0 && unsent_ < burst_; ++i) {
      begin(index_of(begun_));
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
    const Slot& slot = slots_[index_of(confirmed_)];
    if (slot.left != 0) {
      break;
    }
    owner_.latency.add(rte_rdtsc() - slot.start_tsc);
    ++confirmed_;
  }
  path_.confirmed.store(confirmed_, std::memory_order_release);
}

void DedicatedSender::done(uint32_t slot, const pmd::TxDone& done) noexcept {
  --in_flight_;
  owner_.stats.retries.add(done.retries);
  if (done.status != pmd::Status::kOk) [[unlikely]] {
    owner_.stats.count_status(done.status);
    pause_.note(done.status);
    path_.state.store(DedicatedPath::State::kBroken, std::memory_order_release);
    return;
  }
  if (--slots_[slot].left == 0 &&
      path_.state.load(std::memory_order_relaxed) == DedicatedPath::State::kRunning) {
    confirm();
  }
}

/// The path is broken: once nothing is in flight, give up what was begun and hand over.
void DedicatedSender::mend() noexcept {
  if (path_.state.load(std::memory_order_relaxed) != DedicatedPath::State::kBroken ||
      in_flight_ != 0) {
    return;
  }
  confirm();
  for (uint64_t transfer = confirmed_; verifier_.verifies() && transfer < begun_; ++transfer) {
    verifier_.failed(path_.flow, pmd::Status::kResponseTimeout);
  }
  confirmed_ = begun_;
  at_ = index_of(begun_) * messages_each_;
  unsent_ = 0;
  path_.resume_at.store(begun_, std::memory_order_relaxed);
  path_.state.store(DedicatedPath::State::kDry, std::memory_order_release);
}

}  // namespace rio::testpmd
