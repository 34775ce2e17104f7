#include "lib/barrier/card_barriers.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"

namespace rio::barrier {
namespace {

using Control = regs::barrier_desc::Control;

constexpr uint32_t kKindBits = 2;

[[nodiscard]] constexpr uint32_t with_op(uint32_t control, regs::BarrierOp op) {
  return (control & ~Control::op.mask()) | Control::op.put(static_cast<uint32_t>(op));
}

}  // namespace

int CardBarriers::open(Endpoint& endpoint, uint64_t rest_ns, std::unique_ptr<CardBarriers>* out) {
  if (!endpoint.queues().has_barrier_engine()) {
    out->reset();
    return 0;
  }
  if (const int rc = endpoint.open_barriers(); rc != 0) {
    return rc;
  }
  out->reset(new CardBarriers(
      endpoint.barriers(), std::min(endpoint.caps().barrier_slots, regs::kBarrierSlots), rest_ns));
  return 0;
}

bool CardBarriers::load(uint32_t id, const regs::BarrierDesc& desc, uint64_t now_ns, User& user) {
  if (!ids_.take(id, now_ns)) {
    return false;
  }
  Place& place = places_[id];
  place = {};
  place.user = &user;
  place.desc = desc;
  place.epoch = desc.epoch;
  ask(id, Kind::kLoad);
  place.desc.control = with_op(desc.control, regs::BarrierOp::kRun);
  const auto slot = static_cast<uint32_t>(std::countr_one(slots_taken_));
  const uint64_t cookie = uint64_t{id} << kKindBits | static_cast<uint64_t>(Kind::kRun);
  if (slot < slots_ && queue_.load(slot, place.desc, cookie) == 0) {
    place.slot = static_cast<uint8_t>(slot);
    slots_taken_ |= 1u << slot;
  }
  return true;
}

void CardBarriers::arrive(uint32_t id, uint32_t epoch) {
  Place& place = places_[id];
  place.epoch = epoch;
  place.has_run = true;
  if (place.slot != kNoSlot && queue_.go(place.slot, epoch)) [[likely]] {
    place.pending[static_cast<size_t>(Kind::kRun)] = true;
    return;
  }
  ask(id, Kind::kRun);
}

void CardBarriers::cancel(uint32_t id) {
  const Place& place = places_[id];
  if (place.pending[static_cast<size_t>(Kind::kRun)] &&
      !place.pending[static_cast<size_t>(Kind::kCancel)]) {
    ask(id, Kind::kCancel);
  }
}

void CardBarriers::release(uint32_t id) {
  places_[id].user = nullptr;
  free_if_quiet(id);
}

void CardBarriers::ask(uint32_t id, Kind kind) {
  places_[id].pending[static_cast<size_t>(kind)] = true;
  if (!waiting_.empty() || !post(id, kind)) {
    waiting_.push_back({id, kind});  // behind those that wait, so that a run precedes its cancel
  }
}

bool CardBarriers::post(uint32_t id, Kind kind) {
  const Place& place = places_[id];
  if (kind == Kind::kRun && place.slot != kNoSlot) {
    return queue_.go(place.slot, place.epoch);
  }
  static constexpr std::array<regs::BarrierOp, 3> kOps = {
      regs::BarrierOp::kLoad, regs::BarrierOp::kRun, regs::BarrierOp::kCancel};
  regs::BarrierDesc desc = place.desc;
  desc.control = with_op(desc.control, kOps[static_cast<size_t>(kind)]);
  const pmd::BarrierRequest request{&desc, uint64_t{id} << kKindBits | static_cast<uint64_t>(kind),
                                    place.epoch};
  return queue_.post(&request, 1) == 1;
}

void CardBarriers::work() {
  constexpr uint16_t kAtOnce = 8;
  pmd::BarrierDone done[kAtOnce];
  const uint16_t count = queue_.reap(done, kAtOnce);
  for (uint16_t i = 0; i < count; ++i) {
    take(done[i]);
  }
  size_t posted = 0;
  while (posted < waiting_.size() && post(waiting_[posted].id, waiting_[posted].kind)) {
    ++posted;
  }
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<ptrdiff_t>(posted));
}

void CardBarriers::take(const pmd::BarrierDone& done) {
  const auto id = static_cast<uint32_t>(done.cookie >> kKindBits);
  const auto kind = static_cast<Kind>(done.cookie & ((1u << kKindBits) - 1));
  Place& place = places_[id];
  place.pending[static_cast<size_t>(kind)] = false;
  if (place.user == nullptr) {
    free_if_quiet(id);
  } else if (kind == Kind::kRun) {
    place.user->on_end(done.status, 2 * done.round + done.peer);
  } else if (kind == Kind::kLoad) {
    place.user->on_loaded(done.status == pmd::Status::kOk ? 0 : -EIO);
  }
}

void CardBarriers::free_if_quiet(uint32_t id) {
  Place& place = places_[id];
  if (std::ranges::find(place.pending, true) != place.pending.end()) {
    return;
  }
  if (place.slot != kNoSlot) {
    slots_taken_ &= ~(1u << place.slot);
  }
  ids_.give_back(id, base::now_ns(), place.has_run);
}

}  // namespace rio::barrier
