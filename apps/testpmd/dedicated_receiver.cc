#include "apps/testpmd/dedicated_receiver.hpp"

#include <algorithm>
#include <cstring>

namespace rio::testpmd {
namespace {

constexpr uint32_t kReap = 64;

pmd::mem::AlignRules rules_of(const pmd::Caps& caps) {
  return pmd::mem::align_rules(caps.tx_addr_align, caps.dedicated_addr_align,
                               caps.dedicated_size_align,
                               caps.quirk_last_at_256 || caps.quirk_last_full_256);
}

}  // namespace

DedicatedReceiver::DedicatedReceiver(const RunSetup& setup, DedicatedPath& lane, Stream& owner)
    : lane_(lane), verifier_(setup.verifier), owner_(owner), size_bytes_(setup.size_bytes) {
  buffers_.offset_bytes = setup.options.offset_bytes;
  buffers_.stride_bytes = lane_stride(size_bytes_, buffers_.offset_bytes);
  lane.slots = lane_slots(buffers_.stride_bytes);
  slots_.resize(lane.slots);
}

DedicatedReceiver::~DedicatedReceiver() {
  const bool stopped =
      queue_ == nullptr || lane_.to->pair().close_dedicated(lane_.queue) != -ETIMEDOUT;
  if (stopped && buffers_.memory.va != nullptr) {  // else the card may still write there
    lane_.to->card().bus().dma_free(buffers_.memory);
  } else if (!stopped) {
    (void)bounce_.release();
  }
}

int DedicatedReceiver::plan_slot(uint32_t index, std::string* error) {
  Slot& slot = slots_[index];
  const pmd::mem::AlignRules rules = rules_of(lane_.to->card().caps());
  const pmd::IovaRun run = buffers_.run();
  const pmd::mem::Range range{
      .va = buffers_.at(index), .len_bytes = size_bytes_, .runs = {&run, 1}};
  const int rc = pmd::mem::plan_receive(range, rules, &slot.plan);
  if (rc != 0) {
    *error = "no alignment plan for " + std::to_string(size_bytes_) + " bytes at offset " +
             std::to_string(buffers_.offset_bytes) + ": " + std::strerror(-rc);
    return rc;
  }
  lane_.cut = slot.plan.cut;
  for (size_t i = 0; i < slot.plan.messages.size(); ++i) {
    const pmd::mem::PlanMessage& message = slot.plan.messages[i];
    uint32_t bounce = pmd::mem::BouncePool::kNone;
    if (message.placement == pmd::mem::Placement::kBounced) {
      if (!bounce_) {  // all slots have the same plan but for the addresses
        const auto bounced = static_cast<uint32_t>(std::count_if(
            slot.plan.messages.begin(), slot.plan.messages.end(),
            [](const auto& m) { return m.placement == pmd::mem::Placement::kBounced; }));
        if (pmd::mem::BouncePool::create(lane_.to->card().bus(), bounced * lane_.slots, &bounce_) !=
            0) {
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
    entries_.push_back(
        {.iova = bounce == pmd::mem::BouncePool::kNone ? message.iova : bounce_->iova(bounce),
         .cookie = index,
         .size_bytes = message.wire_bytes});
  }
  messages_each_ = static_cast<uint32_t>(slot.plan.messages.size());
  slot.left = messages_each_;
  unposted_ += messages_each_;
  return 0;
}

int DedicatedReceiver::allocate(std::string* error) {
  const int rc = lane_.to->card().bus().dma_alloc(uint64_t{buffers_.stride_bytes} * lane_.slots,
                                                  4096, &buffers_.memory);
  if (rc != 0) {
    *error = "no memory to receive " + std::to_string(lane_.slots) + " transfers of " +
             std::to_string(size_bytes_) + " bytes; give EAL more (-m 512)";
    return rc;
  }
  for (uint32_t i = 0; i < lane_.slots; ++i) {
    const int planned = plan_slot(i, error);
    if (planned != 0) {
      return planned;
    }
  }
  return 0;
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

int DedicatedReceiver::create(const RunSetup& setup, DedicatedPath& lane, Stream& owner,
                              std::unique_ptr<DedicatedReceiver>* out, std::string* error) {
  std::unique_ptr<DedicatedReceiver> receiver(new DedicatedReceiver(setup, lane, owner));
  int rc = receiver->allocate(error);
  if (rc == 0) {
    rc = receiver->open(error);
  }
  if (rc == 0) {
    *out = std::move(receiver);
  }
  return rc;
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
  const Slot& slot = slots_[index];
  const auto& messages = slot.plan.messages;
  for (uint32_t i = 0; i < messages_each_; ++i) {
    const uint32_t bounce = bounces_[index * messages_each_ + i];
    if (bounce != pmd::mem::BouncePool::kNone) {
      bounce_->copy_out(bounce, messages[i].va, messages[i].len_bytes);
    }
  }
  owner_.stats.bytes_placed.add(slot.plan.bytes_placed);
  owner_.stats.bytes_copied.add(slot.plan.bytes_copied);
  owner_.stats.rx_messages.add(messages.size());
  owner_.stats.rx_bytes.add(size_bytes_);
  if (!verifier_.verifies()) {
    return;
  }
  Tag tag;
  uint32_t offset = 0;
  const Verdict verdict = check_message(buffers_.at(index), size_bytes_, size_bytes_,
                                        verifier_.seed(), seen_, &tag, &offset);
  if (verdict == Verdict::kGood && (size_bytes_ < kTagBytes || tag.flow == lane_.flow)) {
    verifier_.got_number(lane_.flow, tag.sequence, size_bytes_, true);
  } else {
    verifier_.note_error(lane_.flow, "wrong byte", seen_, offset);
  }
  std::memset(buffers_.at(index), 0xEE, size_bytes_);  // so that nothing old passes
}

/// Take transfers that are complete and confirmed, in order.
void DedicatedReceiver::look() noexcept {
  const uint64_t confirmed = lane_.confirmed.load(std::memory_order_acquire);
  while (seen_ < confirmed && seen_ < granted_) {
    const auto index = static_cast<uint32_t>(seen_ & (lane_.slots - 1));
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
  at_ = static_cast<uint32_t>(seen_ & (lane_.slots - 1)) * messages_each_;
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
