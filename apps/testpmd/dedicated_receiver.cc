#include "apps/testpmd/dedicated_receiver.hpp"

#include <cstring>

namespace rio::testpmd {

DedicatedReceiver::~DedicatedReceiver() {
  if (queue_ != nullptr && lane_.to->pair().close_dedicated(lane_.queue) == -ETIMEDOUT) {
    leave_memory();
  }
}

int DedicatedReceiver::start(std::string* error) {
  const auto add = [this](uint32_t slot, const pmd::mem::PlanMessage& message, uint64_t iova) {
    entries_.push_back({.iova = iova, .cookie = slot, .size_bytes = message.wire_bytes});
  };
  const auto plan = [](const auto& range, const auto& rules, pmd::mem::Plan* out) {
    return pmd::mem::plan_receive(range, rules, out);
  };
  if (const int rc = allocate("receive", "for", plan, add, error); rc != 0) {
    return rc;
  }
  lane_.cut = slots_.back().plan.cut;
  for (Slot& slot : slots_) {
    slot.left = messages_each_;
  }
  unposted_ = static_cast<uint32_t>(entries_.size());
  return open(error);
}

int DedicatedReceiver::open(std::string* error) {
  const int rc = lane_.to->pair().open_dedicated(lane_.queue, lane_.source, lane_.mbox, &queue_);
  if (rc != 0) {
    queue_ = nullptr;
    *error = "port " + std::to_string(lane_.to->index()) + " cannot open dedicated queue " +
             std::to_string(lane_.queue) + ": " + std::strerror(-rc);
    return rc;
  }
  if (messages_each_ > queue_->free_count()) {  // it could never be granted
    *error = "--size " + std::to_string(size_bytes_) + ": a transfer is " +
             std::to_string(messages_each_) + " messages, and the dedicated queues of " +
             lane_.to->name() + " have " + std::to_string(queue_->free_count()) +
             " entries; give a smaller size, or larger rings (--vdev …,dedicated_ring=512)";
    return -ENOBUFS;
  }
  return 0;
}

/// Post what is free once it is half of all, with one BAR write, or two where the slots begin
/// again.
void DedicatedReceiver::post() noexcept {
  if (2 * unposted_ < entries_.size() && partial_ == 0) {
    return;
  }
  while (unposted_ > 0) {
    const uint32_t n = std::min(unposted_, static_cast<uint32_t>(entries_.size()) - at_);
    const uint32_t posted = queue_->post(&entries_[at_], static_cast<uint16_t>(n));
    at_ += posted;
    at_ = at_ == entries_.size() ? 0 : at_;
    unposted_ -= posted;
    for (partial_ += posted; partial_ >= messages_each_; partial_ -= messages_each_) {
      ++granted_;
    }
    lane_.granted.store(granted_, std::memory_order_release);
    if (posted < n) {
      return;  // the ring is full
    }
  }
}

uint32_t DedicatedReceiver::reap() noexcept {
  constexpr uint32_t kReap = 64;
  pmd::EntryDone done[kReap];
  const uint32_t n = queue_->reap(done, kReap);
  for (uint32_t i = 0; i < n; ++i) {
    if (done[i].status == pmd::Status::kOk) [[likely]] {
      --slots_[done[i].cookie].left;
    } else {
      owner_.stats.count_status(done[i].status);  // its sender is told, and breaks the lane
    }
  }
  return n;
}

void DedicatedReceiver::finish(uint32_t index) noexcept {
  bounce_messages(index, [this](uint32_t bounce, const pmd::mem::PlanMessage& message) {
    bounce_->copy_out(bounce, message.va, message.len_bytes);
  });
  owner_.stats.rx_messages.add(messages_each_);
  owner_.stats.rx_bytes.add(size_bytes_);
  if (!verifier_.verifies()) {
    return;
  }
  Tag tag;
  uint32_t offset = 0;
  const Verdict verdict =
      check_message(bytes(index), size_bytes_, size_bytes_, verifier_.seed(), seen_, &tag, &offset);
  if (verdict == Verdict::kGood && (size_bytes_ < kTagBytes || tag.flow == lane_.flow)) {
    verifier_.got_number(lane_.flow, tag.sequence, size_bytes_, true);
  } else {
    verifier_.note_error(lane_.flow, "wrong byte", seen_, offset);
  }
  std::memset(bytes(index), 0xEE, size_bytes_);  // so that nothing old passes
}

/// Take transfers that are complete and confirmed, in order.
void DedicatedReceiver::look() noexcept {
  const uint64_t confirmed = lane_.confirmed.load(std::memory_order_acquire);
  while (seen_ < confirmed && seen_ < granted_) {
    const uint32_t index = index_of(seen_);
    if (slots_[index].left != 0) {
      return;
    }
    finish(index);
    slots_[index].left = messages_each_;
    unposted_ += messages_each_;
    ++seen_;
  }
}

/// The lane is dry: begin anew behind what was started. Control path.
void DedicatedReceiver::recover() noexcept {
  look();
  std::string ignored;
  const std::lock_guard guard(lane_.to->queues_lock);
  if (lane_.to->pair().close_dedicated(lane_.queue) != 0) {
    return;  // tried again next turn
  }
  queue_ = nullptr;
  if (open(&ignored) != 0) {
    return;
  }
  granted_ = seen_ = lane_.resume_at.load(std::memory_order_relaxed);
  at_ = index_of(seen_) * messages_each_;
  unposted_ = static_cast<uint32_t>(entries_.size());
  partial_ = 0;
  for (Slot& slot : slots_) {
    slot.left = messages_each_;
  }
  lane_.confirmed.store(seen_, std::memory_order_relaxed);
  lane_.granted.store(granted_, std::memory_order_relaxed);
  lane_.state.store(DedicatedPath::State::kRunning, std::memory_order_release);
}

uint32_t DedicatedReceiver::turn(bool may_post) noexcept {
  if (queue_ == nullptr) [[unlikely]] {
    std::string ignored;
    const std::lock_guard guard(lane_.to->queues_lock);
    if (open(&ignored) != 0) {
      return 0;
    }
  }
  if (may_post) {
    post();
  }
  const uint32_t n = reap();
  look();
  if (lane_.state.load(std::memory_order_acquire) == DedicatedPath::State::kDry) [[unlikely]] {
    recover();
  }
  return n;
}

}  // namespace rio::testpmd
