#include "lib/barrier/card_barriers.hpp"

#include <algorithm>

#include "base/clock.hpp"

namespace rio::barrier {
namespace {

/// After this many response time-outs no late notification of a barrier is on its way.
constexpr uint32_t kRest = 2;

}  // namespace

std::unique_ptr<CardBarriers> CardBarriers::open(msg::MessagePort& port) {
  Endpoint& endpoint = port.endpoint();
  if (!endpoint.queues().has_barrier_engine() || endpoint.open_barriers() != 0) {
    return nullptr;
  }
  return std::unique_ptr<CardBarriers>(new CardBarriers(port));
}

CardBarriers::CardBarriers(msg::MessagePort& port)
    : endpoint_(port.endpoint()),
      has_rails_(port.rails().count() > 1),
      queue_(&endpoint_.barriers()),
      timeout_ns_(port.config().response_timeout_ns()),
      resends_(port.config().barrier_resends()),
      rounds_(endpoint_.caps().barrier_rounds),
      slots_(std::min(endpoint_.caps().barrier_slots, regs::kBarrierSlots)) {}

CardBarriers::~CardBarriers() {
  static_cast<void>(endpoint_.close_barriers());
}

bool CardBarriers::post(uint32_t id, regs::BarrierOp op, Kind kind, uint32_t epoch) {
  using Control = regs::barrier_desc::Control;
  Group& group = groups_[id];
  regs::BarrierDesc desc = group.desc;
  desc.control |= Control::op.put(static_cast<uint32_t>(op));
  const pmd::BarrierRequest request{&desc, cookie(id, kind), epoch};
  const bool is_posted = queue_->post(&request, 1) == 1;
  if (is_posted) {
    count_start(group);
  }
  return is_posted;
}

bool CardBarriers::load(uint32_t id, const regs::BarrierDesc& desc, Part& part, uint64_t now_ns) {
  if (!ids_.take(id, now_ns)) {
    return false;
  }
  Group& group = groups_[id];
  group = {.part = &part, .desc = desc, .use = group.use + 1, .is_free = false};
  if (!post(id, regs::BarrierOp::kLoad, Kind::kLoad, kFirstEpoch)) {
    group.is_free = true;
    ids_.give_back(id, now_ns);
    return false;
  }
  return true;
}

void CardBarriers::prepare(uint32_t id) {
  Group& group = groups_[id];
  for (uint32_t slot = 0; slot < slots_ && group.slot == kNoSlot; ++slot) {
    if (!slot_taken_[slot] && queue_->load(slot, group.desc, cookie(id, Kind::kRun)) == 0) {
      slot_taken_[slot] = true;
      group.slot = slot;
    }
  }
}

bool CardBarriers::arrive(uint32_t id, uint32_t epoch) {
  Group& group = groups_[id];
  bool is_posted = false;
  if (group.slot != kNoSlot) {
    is_posted = queue_->go(group.slot, epoch);
    if (is_posted) {
      count_start(group);
    }
  } else {
    is_posted = post(id, regs::BarrierOp::kRun, Kind::kRun, epoch);
  }
  group.has_run = group.has_run || is_posted;
  return is_posted;
}

void CardBarriers::cancel(uint32_t id, uint32_t epoch) {
  // If the ring is full, the peers still hear of the failure by a message.
  static_cast<void>(post(id, regs::BarrierOp::kCancel, Kind::kCancel, epoch));
}

void CardBarriers::give_back(uint32_t id, bool has_failed) {
  Group& group = groups_[id];
  group.part = nullptr;
  group.is_given_back = true;
  group.has_failed = has_failed;
  retire(id);
}

/// Free slot and number of a group that has given them back, once none of its descriptors is on the
/// card.
void CardBarriers::retire(uint32_t id) {
  Group& group = groups_[id];
  if (!group.is_given_back || group.outstanding != 0 || group.is_free) {
    return;
  }
  group.is_free = true;
  if (group.slot != kNoSlot) {
    slot_taken_[group.slot] = false;
    group.slot = kNoSlot;
  }
  const uint32_t timeouts = group.has_failed ? resends_ + kRest : group.has_run ? kRest : 0;
  ids_.give_back(id, base::now_ns() + timeouts * timeout_ns_);
}

void CardBarriers::reap() {
  if (!queue_->is_ready() && !has_rails_) {
    return;
  }
  constexpr uint16_t kBurst = 8;
  pmd::BarrierDone done[kBurst];
  for (uint16_t n = kBurst; n == kBurst;) {
    n = queue_->reap(done, kBurst);
    for (uint16_t i = 0; i < n; ++i) {
      take(done[i]);
    }
  }
}

void CardBarriers::take(const pmd::BarrierDone& done) {
  const auto id = static_cast<uint32_t>(done.cookie & 0xFF);
  const auto kind = static_cast<Kind>(done.cookie >> 8 & 0xFF);
  if (id >= kIds || done.cookie != cookie(id, kind)) {
    return;  // only a broken card writes such words
  }
  Group& group = groups_[id];
  if (group.outstanding != 0) {
    --group.outstanding;
    --outstanding_;
  }
  if (group.part != nullptr && kind == Kind::kLoad) {
    group.part->on_loaded(done.status == pmd::Status::kOk);
  } else if (group.part != nullptr && kind == Kind::kRun) {
    group.part->on_ended(done);
  }
  retire(id);
}

}  // namespace rio::barrier
