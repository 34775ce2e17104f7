#include <cstring>

#include "apps/testpmd/dedicated_path.hpp"
#include "apps/testpmd/text.hpp"

namespace rio::testpmd {

DedicatedReceiver::~DedicatedReceiver() {
  if (queue_ != nullptr && path_.to.pair().close_dedicated(path_.queue) == -ETIMEDOUT) {
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
  if (allocate("receive", plan, add, error) != 0) {
    return -EINVAL;
  }
  path_.cut = slots_.back().plan.cut;
  for (Slot& slot : slots_) {
    slot.left = messages_each_;
  }
  unposted_ = static_cast<uint32_t>(entries_.size());
  return open(error);
}

int DedicatedReceiver::open(std::string* error) {
  const int rc = path_.to.pair().open_dedicated(path_.queue, path_.source, path_.mbox, &queue_);
  if (rc != 0) {
    queue_ = nullptr;
    return fail(error, "port %u cannot open dedicated queue %u: %s", path_.to.index, path_.queue,
                std::strerror(-rc));
  }
  if (messages_each_ > queue_->free_count()) {  // it could never be granted
    return fail(error,
                "--size %u: a transfer is %u messages, and the dedicated queues of %s have %u "
                "entries; give a smaller size, or larger rings (--vdev …,dedicated_ring=512)",
                size_bytes_, messages_each_, path_.to.name.c_str(), queue_->free_count());
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
    path_.granted.store(granted_, std::memory_order_release);
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
      owner_.stats.count_status(done[i].status);  // its sender is told, and breaks the path
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
  if (verdict == Verdict::kGood && (size_bytes_ < kTagBytes || tag.flow == path_.flow)) {
    verifier_.got_number(path_.flow, tag.sequence, size_bytes_);
  } else {
    verifier_.note_error(path_.flow, "wrong byte", seen_, offset);
  }
  std::memset(bytes(index), 0xEE, size_bytes_);  // so that nothing old passes
}

/// Take transfers that are complete and confirmed, in order.
void DedicatedReceiver::look() noexcept {
  const uint64_t confirmed = path_.confirmed.load(std::memory_order_acquire);
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

/// The path is dry: begin anew behind what was started. Control path.
void DedicatedReceiver::recover() noexcept {
  look();
  std::string ignored;
  const std::lock_guard guard(path_.to.queues_lock);
  if (path_.to.pair().close_dedicated(path_.queue) != 0) {
    return;  // tried again next turn
  }
  queue_ = nullptr;
  if (open(&ignored) != 0) {
    return;
  }
  granted_ = seen_ = path_.resume_at.load(std::memory_order_relaxed);
  at_ = index_of(seen_) * messages_each_;
  unposted_ = static_cast<uint32_t>(entries_.size());
  partial_ = 0;
  for (Slot& slot : slots_) {
    slot.left = messages_each_;
  }
  path_.confirmed.store(seen_, std::memory_order_relaxed);
  path_.granted.store(granted_, std::memory_order_relaxed);
  path_.state.store(DedicatedPath::State::kRunning, std::memory_order_release);
}

uint32_t DedicatedReceiver::turn(bool may_post) noexcept {
  if (queue_ == nullptr) [[unlikely]] {
    std::string ignored;
    const std::lock_guard guard(path_.to.queues_lock);
    if (open(&ignored) != 0) {
      return 0;
    }
  }
  if (may_post) {
    post();
  }
  const uint32_t n = reap();
  look();
  if (path_.state.load(std::memory_order_acquire) == DedicatedPath::State::kDry) [[unlikely]] {
    recover();
  }
  return n;
}

}  // namespace rio::testpmd
