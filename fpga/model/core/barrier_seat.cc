#include "fpga/model/core/barrier_seat.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace rio::model {
namespace {

namespace words = regs::barrier;
using regs::Status;
using Index = regs::barrier_cpl::Index;
using Where = regs::barrier_cpl::Where;

/// Most barriers of a queue pair that run, or whose peers are being told. Further descriptors wait.
constexpr size_t kBarriersMost = 256;
constexpr uint32_t kLookEvery = 16;  // calls of work() between looks at unused slots and counters
/// Calls of work() for which time-outs wait for answers that the card has not looked at: more than
/// it takes to look at a full ring of them.
constexpr uint32_t kDeferMost = 4096;
constexpr uint32_t kAllSlots = (1u << regs::kBarrierSlots) - 1;
constexpr uint32_t kSlotWords = sizeof(regs::BarrierDesc) / sizeof(uint32_t);

/// @param answer of a peer: any value.
[[nodiscard]] barrier::Answer answer_of(Answer answer) {
  switch (answer) {
    case Answer::kDone:
      return barrier::Answer::kDone;
    case Answer::kRetry:
      return barrier::Answer::kRetry;
    default:
      return barrier::Answer::kError;
  }
}

/// `address` of a kPledge: its information, and above it the epoch, of which that has few bits.
[[nodiscard]] constexpr uint64_t pledge_address(const barrier::Request& request) {
  return request.notice.info() | uint64_t{request.epoch} << 32;
}
[[nodiscard]] uint32_t epoch_of(const InFrame& pledge) {
  return static_cast<uint32_t>(pledge.address >> 32);
}

}  // namespace

barrier::Timing BarrierRings::Seat::timing() const {
  return {.response_timeout_ns = core_.timers.response_ns,
          .retry_ns = core_.timers.retry_ns,
          .resend_limit = pair_.function->bar.load(words::resend_limit(pair_.slot)),
          .own_id = pair_.dest_id};
}

void BarrierRings::Seat::open() {
  const Bar& bar = pair_.function->bar;
  engine_.set_timing(timing());
  engine_.early().reserve(bar.load(words::early_reserve(pair_.slot)));
  for (uint32_t i = 0; i < go_.size(); ++i) {
    go_[i] = bar.load(words::go(pair_.slot, i));
  }
  used_slots_ = busy_slots_ = 0;
  open_ = posts_ = true;
}

void BarrierRings::Seat::close(bool is_told) {
  muted_ = !is_told;
  engine_.flush(now());
  engine_.early().reserve(0);
  muted_ = open_ = false;
  posts_ = posts_ && is_told;
}

void BarrierRings::Seat::stop() {
  if (open_) {
    close(true);
  }
  if (std::exchange(posts_, false)) {
    flush_posted();
  }
}

void BarrierRings::Seat::work() {
  if (open_ && !ring().running()) {
    close(true);  // the ring has stopped with an error, and waits for the host's stop
  }
  send_waiting();
  if (core_.now_ns >= engine_.due_ns() && !answers_first()) {
    engine_.advance(now());
  }
  const bool looks_at_all = turn_++ % kLookEvery == 0;
  if (open_) {
    fetch();
    look_at_slots(looks_at_all ? kAllSlots : used_slots_);
  }
  if (looks_at_all || !open_) {
    tell_counters(false);
  }
}

bool BarrierRings::Seat::start() {
  const uint32_t before = taken_;
  if (open_ && ring().running()) {
    fetch();
    look_at_slots(used_slots_);
  }
  return taken_ != before;  // the barrier may be over already
}

/// Whether a time-out has to wait for answers that have come. Not for ever: peers that flood the
/// card with answers must not stop all time-outs.
bool BarrierRings::Seat::answers_first() {
  deferred_ = owner_.answers_wait() && deferred_ < kDeferMost ? deferred_ + 1 : 0;
  return deferred_ != 0;
}

void BarrierRings::Seat::send(const barrier::Request& request) {
  const bool waits = std::ranges::any_of(
      waiting_, [&](const barrier::Request& each) { return each.tag == request.tag; });
  if (!waits && !owner_.send(pair_, request.dest_id, request.tag, request.notice.info())) {
    waiting_.push_back(request);
  }
}

bool BarrierRings::Seat::send_pledge(const barrier::Request& request) {
  return owner_.send_pledge(pair_, request.dest_id, pledge_address(request));
}

void BarrierRings::Seat::send_waiting() {
  std::erase_if(waiting_, [this](const barrier::Request& request) {
    return !engine_.is_open(request.tag) ||
           owner_.send(pair_, request.dest_id, request.tag, request.notice.info());
  });
}

void BarrierRings::Seat::end(const barrier::Ended& ended) {
  const bool is_slot = Index::slot.get(ended.index) != 0;
  if (is_slot) {
    busy_slots_ &= ~(1u << Index::entry.get(ended.index));
  }
  if (muted_) {
    return;
  }
  ring().outstanding -= is_slot ? 0 : 1;
  core_.complete_barrier(ring(), ended.cookie, ended.index,
                         Where::round.put(barrier::round_of(ended.where)) |
                             Where::peer.put(ended.where % 2) |
                             Where::resent.put(std::min(ended.resent, Where::resent.max())),
                         ended.status, ended.retries);
}

void BarrierRings::Seat::report_foreign(uint32_t source, const barrier::Notice& notice) {
  core_.event(pair_, regs::EventType::kBarrierForeign, source, notice.info(), {0, 0, 0, 0});
}

bool BarrierRings::Seat::is_silent(uint32_t dest_id, uint64_t since_ns) {
  const Flow* const flow = core_.known_flow(pair_, dest_id);
  return flow == nullptr || flow->way->gone || !flow->way->watched ||
         since_ns <= flow->way->answerable_ns || !open_;
}

barrier::Answer BarrierRings::Seat::receive(const InFrame& frame, bool pledges) {
  auto notice = barrier::Notice::of(static_cast<uint16_t>(frame.address));
  notice.pledges = pledges && !notice.is_cancel();
  return engine_.receive(barrier::BarrierEngine::kUnknownNs, frame.source, notice);
}

void BarrierRings::Seat::pledge_answered(const InFrame& frame) {
  const barrier::Answer answer = answer_of(static_cast<Answer>(frame.op));
  engine_.pledge_answered(
      answer == barrier::Answer::kRetry ? now() : barrier::BarrierEngine::kUnknownNs, frame.source,
      barrier::Notice::of(static_cast<uint16_t>(frame.address)), epoch_of(frame), answer);
}

bool BarrierRings::Seat::has_room() {
  return engine_.barriers() < kBarriersMost || engine_.give_up_refused();
}

void BarrierRings::Seat::fetch() {
  Ring& ring = this->ring();
  if (!ring.waits()) {
    return;
  }
  for (uint32_t count = core_.poll_tail(ring); count > 0 && has_room(); --count) {
    ring.count_fetch(sizeof(regs::BarrierDesc));
    const auto desc = ring.fetch<regs::BarrierDesc>(ring.head);
    const uint32_t index = Index::entry.put(Index::entry.get(ring.head));
    ++ring.head;
    ++ring.outstanding;
    ++taken_;
    engine_.post(barrier::BarrierEngine::kUnknownNs, desc, index);
  }
}

bool BarrierRings::Seat::has_go(uint32_t slot) const {
  return pair_.function->bar.load(words::go(pair_.slot, slot)) != go_[slot];
}

/// Copy the descriptor of a slot whose GO has changed.
regs::BarrierDesc BarrierRings::Seat::take_slot(uint32_t slot) {
  const Bar& bar = pair_.function->bar;
  go_[slot] = bar.load(words::go(pair_.slot, slot));
  // Two words at once, and only those that are used: GO waits for the copy.
  const auto* const from =
      reinterpret_cast<const uint64_t*>(bar.word(words::slot(pair_.slot, slot * kSlotWords)));
  std::array<uint64_t, kSlotWords / 2> copy{};
  const auto take = [&](size_t at_bytes, size_t len_bytes) {
    for (size_t i = at_bytes / 8; i < (at_bytes + len_bytes) / 8; ++i) {
      copy[i] = __atomic_load_n(from + i, __ATOMIC_RELAXED);  // the acquire load of GO comes before
    }
  };
  take(0, offsetof(regs::BarrierDesc, peers));
  take(offsetof(regs::BarrierDesc, send), 2 * sizeof(uint64_t));
  static_assert(offsetof(regs::BarrierDesc, await) == offsetof(regs::BarrierDesc, send) + 8);
  const uint32_t rounds = regs::barrier_desc::Control::rounds.get(static_cast<uint32_t>(copy[0]));
  take(offsetof(regs::BarrierDesc, peers),
       std::min(rounds, regs::kBarrierRoundsMax) * sizeof(uint64_t));
  auto desc = std::bit_cast<regs::BarrierDesc>(copy);
  desc.epoch = go_[slot];
  return desc;
}

/// Take the descriptors of slots whose GO has changed. @param slots to look at, one bit each.
void BarrierRings::Seat::look_at_slots(uint32_t slots) {
  if (ring().held || (core_.host.posting() && core_.host.rng().below(3) == 0)) {
    return;  // an injected fault, or the emulated PCIe delays the write
  }
  for (uint32_t look = slots & ~busy_slots_; look != 0; look &= look - 1) {
    const auto slot = static_cast<uint32_t>(std::countr_zero(look));
    if (has_go(slot) && has_room()) {
      used_slots_ |= 1u << slot;
      busy_slots_ |= 1u << slot;
      ++taken_;
      engine_.post(barrier::BarrierEngine::kUnknownNs, take_slot(slot),
                   Index::slot.put(1) | Index::entry.put(slot));
    }
  }
}

void BarrierRings::Seat::flush_posted() {
  Ring& ring = this->ring();
  for (; ring.posted() > 0; ++ring.head) {
    core_.complete_barrier(ring, ring.fetch<regs::BarrierDesc>(ring.head).cookie,
                           Index::entry.get(ring.head), 0, Status::kFlushed, 0);
  }
  for (uint32_t slot = 0; slot < regs::kBarrierSlots; ++slot) {
    if (has_go(slot)) {
      core_.complete_barrier(ring, take_slot(slot).cookie,
                             Index::slot.put(1) | Index::entry.put(slot), 0, Status::kFlushed, 0);
    }
  }
}

bool BarrierRings::Seat::has_posted() const {
  if (!open_ || engine_.barriers() >= kBarriersMost) {
    return false;
  }
  bool has = ring().waits();
  for (uint32_t slot = 0; slot < regs::kBarrierSlots && !has; ++slot) {
    has = (busy_slots_ >> slot & 1) == 0 && has_go(slot);
  }
  return has;
}

void BarrierRings::Seat::tell_counters(bool all) {
  static_assert(words::cancelled(0) == words::sent(0) + 4 * (Counts{}.size() - 1));
  const Counts now = counts_of(engine_);
  for (uint32_t i = 0; i < now.size(); ++i) {
    const uint32_t count = now[i] - before_[i];
    if (all || told_[i] != count) {
      pair_.function->bar.store(words::sent(pair_.slot) + 4 * i, count);
    }
    told_[i] = count;
  }
}

void BarrierRings::Seat::clear_counters() {
  before_ = counts_of(engine_);
  tell_counters(true);
}

}  // namespace rio::model
