#include "fpga/model/barrier/engine.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/random.hpp"
#include "fpga/model/barrier/engine_state.hpp"

namespace rio::model::barrier {
namespace {

constexpr uint32_t kRetryShiftMax = 6;     // a retry waits at most 64 times as long as the first
constexpr uint32_t kLooksPerTimeout = 16;  // at a peer that does not run
constexpr uint64_t kUnplannedNs = 0;       // a time that the next advance() plans
constexpr uint32_t kStaleEpochs = 3;       // epochs whose late copies are answered DONE and dropped

}  // namespace

BarrierEngine::BarrierEngine(const Timing& timing, Ends& ends, EarlyRoom& room)
    : timing_(timing), ends_(ends), early_(room) {}
BarrierEngine::~BarrierEngine() = default;

inline BarrierEngine::Group& BarrierEngine::group_of(uint32_t number) {
  if (number >= groups_.size()) [[unlikely]] {
    add_groups(number + 1);
  }
  return groups_[number];
}

[[gnu::noinline]] void BarrierEngine::add_groups(uint32_t count) {
  groups_.resize(count);
}

BarrierEngine::Barrier* BarrierEngine::active(uint32_t group) {
  for (const auto& barrier : barriers_) {
    if (barrier->group == group && barrier->is_active()) {
      return barrier.get();
    }
  }
  return nullptr;
}

/// The barrier that a request belongs to; null: the request needs no answer.
BarrierEngine::Barrier* BarrierEngine::find(uint32_t tag) const {
  const Place place = place_of(tag);
  for (const auto& barrier : barriers_) {
    if (barrier->serial << kPlaceBits == tag - place && place < kPlaces &&
        (barrier->sent & ~barrier->done & bit(place)) != 0) {
      return barrier.get();
    }
  }
  return nullptr;
}

BarrierEngine::Barrier& BarrierEngine::add(const regs::BarrierDesc& desc, const Plan& plan,
                                           uint32_t index) {
  auto barrier = spare_ != nullptr ? std::exchange(spare_, nullptr) : std::make_unique<Barrier>();
  barrier->plan = plan;
  static_cast<BarrierProgress&>(*barrier) = {};
  barrier->group = desc.group;
  barrier->epoch = desc.epoch;
  barrier->cookie = desc.cookie;
  barrier->index = index;
  barrier->serial = ++serial_;
  barriers_.push_back(std::move(barrier));
  return *barriers_.back();
}

void BarrierEngine::post(uint64_t now_ns, const regs::BarrierDesc& desc, uint32_t index) {
  const auto op = static_cast<regs::BarrierOp>(regs::barrier_desc::Control::op.get(desc.control));
  const auto answer = [&](regs::Status status) {
    ends_.end({.cookie = desc.cookie, .index = index, .status = status});
  };
  const Plan* const known =
      desc.group < groups_.size() ? groups_[desc.group].loaded.same_as(desc) : nullptr;
  Plan read;
  if (known == nullptr && !Plan::of(desc, &read)) {
    answer(regs::Status::kBadDescriptor);
    return;
  }
  const Plan& plan = known != nullptr ? *known : read;
  Barrier* const running = active(desc.group);
  switch (op) {
    case regs::BarrierOp::kRun:
      if (running != nullptr) {
        answer(regs::Status::kBadDescriptor);  // one epoch of a group at a time
      } else {
        join(now_ns, add(desc, plan, index));
      }
      break;
    case regs::BarrierOp::kLoad:
      if (running != nullptr) {
        answer(regs::Status::kBadDescriptor);
      } else {
        load(desc, plan);
        answer(regs::Status::kOk);
      }
      break;
    case regs::BarrierOp::kCancel:
      if (running != nullptr && running->epoch == desc.epoch) {
        fail(now_ns, *running, regs::Status::kFlushed, 0);
      } else if (running == nullptr) {
        tell_peers(now_ns, add(desc, plan, index));
        end_unseen(desc.group, desc.epoch);
      }
      answer(regs::Status::kOk);
      break;
    default:
      answer(regs::Status::kBadDescriptor);
  }
  sweep();
}

/// Carries out a load: the next barrier of the group has the descriptor's epoch, and an earlier
/// group of this number is forgotten.
void BarrierEngine::load(const regs::BarrierDesc& desc, const Plan& plan) {
  Group& group = group_of(desc.group);
  group.loaded.load(plan);
  group.passed = false;
  end_unseen(desc.group, desc.epoch - 1);
}

void BarrierEngine::join(uint64_t now_ns, Barrier& barrier) {
  Place cancelled_by = kPlaces;
  // The loaded plan may differ from the posted one: a notification counts only where the posted
  // one awaits it.
  const auto arrive = [&](uint32_t source, uint32_t round, bool pledges) {
    const Place place = barrier.plan.expected(source, round);
    if (place == kPlaces) {
      count_foreign(source, {barrier.group, barrier.epoch & Notice::kEpochMask, round});
    } else if (round == regs::kBarrierRoundCancel) {
      cancelled_by = place;
    } else {
      barrier.got |= bit(place);
      barrier.pledged_to |= pledges ? bit(place) : 0;
    }
  };
  group_of(barrier.group).loaded.take(barrier.epoch, arrive);
  early_.take(barrier.group, barrier.epoch,
              [&](uint32_t source, uint32_t round) { arrive(source, round, false); });
  if (cancelled_by != kPlaces) {
    ++counters_.cancelled;
    fail(now_ns, barrier, regs::Status::kPeerFailed, cancelled_by);
    return;
  }
  proceed(now_ns, barrier);
}

void BarrierEngine::count_foreign(uint32_t source, const Notice& notice) {
  ++counters_.foreign;
  ends_.report_foreign(source, notice);
}

Answer BarrierEngine::receive(uint64_t now_ns, uint32_t source, const Notice& notice) {
  ++counters_.received;
  Barrier* const barrier = active(notice.group);
  Answer answer = Answer::kError;
  if (barrier != nullptr && (barrier->epoch & Notice::kEpochMask) == notice.epoch) {
    answer = receive_current(now_ns, *barrier, source, notice);
  } else {
    answer = receive_other(barrier, source, notice);
  }
  if (answer == Answer::kError) {
    count_foreign(source, notice);
  }
  sweep();
  return answer;
}

Answer BarrierEngine::receive_current(uint64_t now_ns, Barrier& barrier, uint32_t source,
                                      const Notice& notice) {
  const Place place = barrier.plan.expected(source, notice.round);
  if (place == kPlaces) {
    return Answer::kError;
  }
  if (notice.is_cancel()) {
    ++counters_.cancelled;
    fail(now_ns, barrier, regs::Status::kPeerFailed, place);
    return Answer::kDone;
  }
  // Between pledges no answer is sent: each is the other's answer.
  const bool is_answered = notice.pledges && (barrier.pledged & bit(place)) != 0;
  if (is_answered) {
    barrier.done |= bit(place);
  }
  barrier.pledged_to |= notice.pledges ? bit(place) : 0;
  if (is_answered || (barrier.got & bit(place)) == 0) {
    barrier.got |= bit(place);
    proceed(now_ns, barrier);
  }
  return is_answered ? Answer::kNone : Answer::kDone;
}

/// Takes a notification of another epoch than the active barrier's: an earlier or a later one.
Answer BarrierEngine::receive_other(const Barrier* current, uint32_t source, const Notice& notice) {
  Group& group = group_of(notice.group);
  if (group.ran && ((group.last - notice.epoch) & Notice::kEpochMask) < kStaleEpochs) {
    ++counters_.stale;
    return Answer::kDone;
  }
  const bool is_known = current != nullptr || group.ran;
  const uint32_t next = (current != nullptr ? current->epoch : group.last) + 1;
  if (is_known && (next & Notice::kEpochMask) != notice.epoch) {
    return Answer::kError;  // no member can be two epochs ahead
  }
  if (group.loaded.is_loaded()) {
    if (!group.loaded.keep(next, source, notice)) {
      return Answer::kError;
    }
  } else if (!early_.store(source, notice)) {
    ++counters_.nacks_given;
    return Answer::kRetry;
  }
  ++counters_.early;
  return Answer::kDone;
}

/// Sends the rounds whose turn it is, and ends the barrier if nothing is missing.
void BarrierEngine::proceed(uint64_t now_ns, Barrier& barrier) {
  const uint64_t missing = barrier.plan.await & ~barrier.got;
  // All rounds up to and including the first one in which something is missing.
  const uint32_t rounds = missing == 0
                              ? barrier.plan.rounds
                              : round_of(static_cast<Place>(std::countr_zero(missing))) + 1;
  for_each_place(barrier.plan.send & below(rounds) & ~barrier.sent, [&](Place place) {
    ++counters_.sent;
    send(now_ns, barrier, place);
  });
  if (missing != 0 || barrier.done != barrier.plan.send || barrier.sent != barrier.plan.send) {
    return;
  }
  if (barrier.resent != 0 && barrier.state == Barrier::State::kRunning) {
    // While this barrier is held, no member gets further than the next epoch, so no late copy can
    // be taken for a notification of a later barrier.
    barrier.state = Barrier::State::kHolding;
    barrier.hold_ns = plan_look(now_ns, 2 * timing_.response_timeout_ns);
  } else if (barrier.resent == 0) {
    finish(barrier);
  }
}

void BarrierEngine::finish(Barrier& barrier) {
  tell(barrier, regs::Status::kOk, 0);
  Group& group = group_of(barrier.group);
  group.passed = group.loaded.is_loaded();
  barrier.state = Barrier::State::kRetired;
}

void BarrierEngine::send(uint64_t now_ns, Barrier& barrier, Place place) {
  const bool cancels = barrier.state == Barrier::State::kCancelling;
  const bool pledges = may_pledge(barrier, place);
  barrier.sent |= bit(place);
  barrier.retrying &= ~bit(place);
  barrier.due_ns[place] = plan_look(now_ns, timing_.response_timeout_ns);
  Request request = {.dest_id = barrier.plan.peers[place],
                     .prio = barrier.plan.prio,
                     .notice = {barrier.group, barrier.epoch & Notice::kEpochMask,
                                cancels ? regs::kBarrierRoundCancel : round_of(place), pledges},
                     .tag = barrier.serial << kPlaceBits | place,
                     .epoch = barrier.epoch};
  if (pledges && ends_.send_pledge(request)) {
    barrier.pledged |= bit(place);
    barrier.done |= barrier.pledged_to & bit(place);
    return;
  }
  request.notice.pledges = false;
  ends_.send(request);
}

/// Whether a notification may be a pledge: the peer awaits none that is not sent, no copy of it is
/// on its way, and this engine refuses none of the peer's for this barrier.
bool BarrierEngine::may_pledge(const Barrier& barrier, Place place) {
  const Group& group = group_of(barrier.group);
  return (barrier.plan.await & ~barrier.sent & bit(place)) != 0 && group.passed &&
         group.last + 1 == barrier.epoch && barrier.state == Barrier::State::kRunning &&
         group.loaded.awaits(place, barrier.plan.peers[place]);
}

void BarrierEngine::answered(uint64_t now_ns, uint32_t tag, Answer answer) {
  Barrier* const found = find(tag);
  if (found == nullptr) {
    return;
  }
  take_answer(now_ns, *found, place_of(tag), answer);
  sweep();
}

void BarrierEngine::pledge_answered(uint64_t now_ns, uint32_t source, const Notice& notice,
                                    uint32_t epoch, Answer answer) {
  Barrier* const barrier = active(notice.group);
  const Place place = barrier != nullptr && barrier->epoch == epoch
                          ? barrier->plan.awaited(source, notice.round)
                          : kPlaces;
  if (place != kPlaces && (barrier->pledged & ~barrier->done & bit(place)) != 0) {
    take_answer(now_ns, *barrier, place, answer);
    sweep();
  }
}

void BarrierEngine::take_answer(uint64_t now_ns, Barrier& barrier, Place place, Answer answer) {
  if (answer == Answer::kRetry) {
    barrier.pledged &= ~bit(place);
    retry(now_ns, barrier, place);
  } else if (answer == Answer::kError && barrier.is_active()) {
    fail(now_ns, barrier, regs::Status::kErrorResponse, place);
  } else {
    settle(now_ns, barrier, place);
  }
}

/// Notes that a request needs no further answer.
void BarrierEngine::settle(uint64_t now_ns, Barrier& barrier, Place place) {
  barrier.done |= bit(place);
  barrier.retrying &= ~bit(place);
  if (barrier.is_active()) {
    proceed(now_ns, barrier);
  } else if (barrier.done == barrier.sent) {
    barrier.state = Barrier::State::kRetired;
  }
}

void BarrierEngine::retry(uint64_t now_ns, Barrier& barrier, Place place) {
  ++counters_.nacks_taken;
  ++barrier.retries;
  const uint64_t delay_ns = timing_.retry_ns << barrier.delays[place];
  barrier.delays[place] =
      static_cast<uint8_t>(std::min<uint32_t>(barrier.delays[place] + 1u, kRetryShiftMax));
  // Up to a fourth more, by destID: members whose requests collided once do not collide again.
  const uint64_t spread = base::mix64(uint64_t{timing_.own_id} << 32 | barrier.retries) >> 48;
  barrier.due_ns[place] = now_ns + delay_ns + (delay_ns * spread >> 18);
  barrier.retrying |= bit(place);
  look_at(barrier.due_ns[place]);
}

void BarrierEngine::advance(uint64_t now_ns) {
  if (now_ns < due_ns_) {
    return;
  }
  due_ns_ = ~uint64_t{0};
  for (size_t i = 0; i < barriers_.size(); ++i) {
    advance_one(now_ns, *barriers_[i]);
  }
  sweep();
}

void BarrierEngine::advance_one(uint64_t now_ns, Barrier& barrier) {
  if (barrier.state == Barrier::State::kHolding) {
    if (barrier.hold_ns == kUnplannedNs) {
      barrier.hold_ns = plan_look(now_ns, 2 * timing_.response_timeout_ns);
    } else if (barrier.hold_ns <= now_ns) {
      finish(barrier);
    } else {
      look_at(barrier.hold_ns);
    }
    return;
  }
  const auto before = barrier.state;
  for_each_place(barrier.sent & ~barrier.done, [&](Place place) {
    if (barrier.state != before) {
      return;  // the barrier has failed at an earlier place
    }
    if (barrier.due_ns[place] == kUnplannedNs) {
      barrier.due_ns[place] = plan_look(now_ns, timing_.response_timeout_ns);
    } else if (barrier.due_ns[place] > now_ns) {
      look_at(barrier.due_ns[place]);
    } else if ((barrier.retrying & bit(place)) != 0) {
      send(now_ns, barrier, place);
    } else {
      time_out(now_ns, barrier, place);
    }
  });
}

void BarrierEngine::time_out(uint64_t now_ns, Barrier& barrier, Place place) {
  const uint64_t sent_ns = barrier.due_ns[place] - timing_.response_timeout_ns;
  if (!ends_.is_silent(barrier.plan.peers[place], sent_ns)) {
    look_at(now_ns + timing_.response_timeout_ns / kLooksPerTimeout + 1);
    return;
  }
  if (barrier.resends[place] < std::min(timing_.resend_limit, 255u)) {
    ++barrier.resends[place];
    ++barrier.resent;
    ++counters_.resent;
    send(now_ns, barrier, place);
  } else if (barrier.is_active()) {
    fail(now_ns, barrier, regs::Status::kResponseTimeout, place);
  } else {
    settle(now_ns, barrier, place);  // a peer that is silent cannot be told
  }
}

void BarrierEngine::fail(uint64_t now_ns, Barrier& barrier, regs::Status status, Place where) {
  tell(barrier, status, where);
  tell_peers(now_ns, barrier);
}

/// Sends a cancellation to each peer. From here on the barrier is not active.
void BarrierEngine::tell_peers(uint64_t now_ns, Barrier& barrier) {
  barrier.state = Barrier::State::kCancelling;
  barrier.serial = ++serial_;  // answers to its notifications are ignored from here on
  barrier.sent = barrier.done = barrier.retrying = barrier.pledged = 0;
  barrier.resends = {};
  barrier.delays = {};
  for_each_place(barrier.plan.distinct_peers(), [&](Place place) { send(now_ns, barrier, place); });
}

void BarrierEngine::tell(const Barrier& barrier, regs::Status status, Place where) {
  note_end(barrier.group, barrier.epoch);
  ends_.end({.cookie = barrier.cookie,
             .index = barrier.index,
             .status = status,
             .where = where,
             .resent = barrier.resent,
             .retries = barrier.retries});
}

void BarrierEngine::note_end(uint32_t number, uint32_t epoch) {
  Group& group = group_of(number);
  group.ran = true;
  group.passed = false;  // finish() may set it
  group.last = epoch;
}

/// An epoch counts as ended whose barrier did not run: drop what came for it, and for others.
void BarrierEngine::end_unseen(uint32_t group, uint32_t epoch) {
  note_end(group, epoch);
  early_.take(group, epoch, [](uint32_t /*source*/, uint32_t /*round*/) {});
}

void BarrierEngine::flush(uint64_t now_ns) {
  for (size_t i = 0; i < barriers_.size(); ++i) {
    if (barriers_[i]->is_active()) {
      fail(now_ns, *barriers_[i], regs::Status::kFlushed, 0);
    }
  }
  early_.clear();
  for (Group& group : groups_) {
    group = {};
  }
  sweep();
}

bool BarrierEngine::give_up_refused() {
  const auto is_refused = [](const std::unique_ptr<Barrier>& barrier) {
    bool is = barrier->state == Barrier::State::kCancelling;
    for_each_place(barrier->sent & ~barrier->done,
                   [&](Place place) { is &= barrier->delays[place] == kRetryShiftMax; });
    return is;
  };
  const auto found = std::ranges::find_if(barriers_, is_refused);
  return found != barriers_.end() && (barriers_.erase(found), true);
}

bool BarrierEngine::is_open(uint32_t tag) const {
  const Barrier* const barrier = find(tag);
  return barrier != nullptr && (barrier->retrying & bit(place_of(tag))) == 0;
}

bool BarrierEngine::needs_time() const {
  return std::any_of(barriers_.begin(), barriers_.end(), [](const auto& barrier) {
    return barrier->sent != barrier->done || barrier->state == Barrier::State::kHolding;
  });
}

void BarrierEngine::sweep() {
  for (size_t i = barriers_.size(); i-- > 0;) {
    if (barriers_[i]->state == Barrier::State::kRetired) {
      spare_ = std::move(barriers_[i]);
      barriers_.erase(barriers_.begin() + static_cast<ptrdiff_t>(i));
    }
  }
}

void BarrierEngine::look_at(uint64_t due_ns) {
  due_ns_ = std::min(due_ns_, due_ns);
}

/// Let advance() be called after a delay; at once, if the time is not known. @return when.
uint64_t BarrierEngine::plan_look(uint64_t now_ns, uint64_t delay_ns) {
  const uint64_t due_ns = now_ns == kUnknownNs ? kUnplannedNs : now_ns + delay_ns;
  look_at(due_ns);
  return due_ns;
}

}  // namespace rio::model::barrier
