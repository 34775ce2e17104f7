#include "fpga/model/core/barrier_rings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "fpga/model/barrier/engine.hpp"

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

using Counts = std::array<uint32_t, sizeof(barrier::Counters) / sizeof(uint32_t)>;
static_assert(words::cancelled(0) == words::sent(0) + 4 * (Counts{}.size() - 1));

[[nodiscard]] Counts counts_of(const barrier::BarrierEngine& engine) {
  return std::bit_cast<Counts>(engine.counters());
}

}  // namespace

/// The engine of a queue pair, with its ring and its slots.
class BarrierRings::Seat final : public barrier::Ends {
 public:
  Seat(BarrierRings& owner, Pair& pair)
      : owner_(owner),
        core_(owner.core_),
        pair_(pair),
        engine_(timing(), *this, owner.room_),
        before_(counts_of(engine_)) {}

  void open();
  /// End all barriers. @param is_told whether their completions are written.
  void close(bool is_told);
  void work();
  [[nodiscard]] Answer receive(const InFrame& frame);
  void answered(uint32_t tag, barrier::Answer answer) { engine_.answered(now(), tag, answer); }
  /// The ring is being stopped: end all barriers, and complete the descriptors that are posted and
  /// not fetched.
  void stop();
  /// Show the counters since the last reset in the pair's BAR.
  void tell_counters(bool all);
  void clear_counters();

  [[nodiscard]] bool is_open() const { return open_; }
  [[nodiscard]] bool is_busy() const { return engine_.barriers() != 0; }
  [[nodiscard]] bool needs_time() const { return engine_.needs_time(); }
  [[nodiscard]] bool has_posted() const;

  void send(const barrier::Request& request) override;
  void end(const barrier::Ended& ended) override;
  void report_foreign(uint32_t source, const barrier::Notice& notice) override;
  [[nodiscard]] bool is_silent(uint32_t dest_id, uint64_t since_ns) override;

 private:
  /// The card's clock. Core::now_ns may be older; a time-out that began with it would end too
  /// early.
  [[nodiscard]] uint64_t now() const { return core_.clock->now_ns(); }
  [[nodiscard]] Ring& ring() const { return pair_.rings[kBarrierRing]; }
  [[nodiscard]] barrier::Timing timing() const;
  [[nodiscard]] bool answers_first();
  void send_waiting();
  void flush_posted();
  [[nodiscard]] bool has_room();
  void fetch();
  void look_at_slots(uint32_t slots);
  [[nodiscard]] bool has_go(uint32_t slot) const;
  [[nodiscard]] regs::BarrierDesc take_slot(uint32_t slot);

  BarrierRings& owner_;
  Core& core_;
  Pair& pair_;
  barrier::BarrierEngine engine_;
  Counts before_;      // counters at the last reset
  Counts told_{};      // counters as the BAR shows them
  bool open_ = false;  // the ring runs
  /// From the start of the ring to its stop, also after an error: what is posted waits for the
  /// stop.
  bool posts_ = false;
  bool muted_ = false;  // no completions are written
  uint32_t turn_ = 0;
  uint32_t deferred_ = 0;    // calls in a row in which time-outs have waited for answers
  uint32_t used_slots_ = 0;  // slots used since the start, one bit each
  uint32_t busy_slots_ = 0;  // slots whose last descriptor has not completed
  std::array<uint32_t, regs::kBarrierSlots> go_{};
  std::vector<barrier::Request> waiting_;  // for room, a transaction or the link
};

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

Answer BarrierRings::Seat::receive(const InFrame& frame) {
  const auto notice = barrier::Notice::of(static_cast<uint16_t>(frame.address));
  switch (engine_.receive(now(), frame.source, notice)) {
    case barrier::Answer::kDone:
      return Answer::kDone;
    case barrier::Answer::kRetry:
      return Answer::kRetry;
    default:
      return Answer::kError;
  }
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
    engine_.post(now(), desc, index);
  }
}

bool BarrierRings::Seat::has_go(uint32_t slot) const {
  return pair_.function->bar.load(words::go(pair_.slot, slot)) != go_[slot];
}

/// Copy the descriptor of a slot whose GO has changed.
regs::BarrierDesc BarrierRings::Seat::take_slot(uint32_t slot) {
  const Bar& bar = pair_.function->bar;
  go_[slot] = bar.load(words::go(pair_.slot, slot));
  std::array<uint32_t, kSlotWords> copy;
  for (uint32_t i = 0; i < kSlotWords; ++i) {
    copy[i] = bar.load(words::slot(pair_.slot, slot * kSlotWords + i));
  }
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
      engine_.post(now(), take_slot(slot), Index::slot.put(1) | Index::entry.put(slot));
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

BarrierRings::BarrierRings(Core& core, Transactions& transactions, Responder& responder)
    : core_(core), transactions_(transactions), responder_(responder), seats_(core.pairs.size()) {}
BarrierRings::~BarrierRings() = default;

BarrierRings::Seat& BarrierRings::seat(const Pair& pair) {
  return *seats_[pair.number];
}

void BarrierRings::open(Ring& ring) {
  std::unique_ptr<Seat>& seat = seats_[ring.pair->number];
  if (seat == nullptr) {
    seat = std::make_unique<Seat>(*this, *ring.pair);
  }
  seat->open();
  core_.chores |= kBarrierRingChore;
  set_running(true);
}

void BarrierRings::set_running(bool has_ring) {
  if (has_ring != has_ring_) {
    has_ring_ = has_ring;
    core_.wire->set_unpolled_work(has_ring);
  }
}

void BarrierRings::begin_stop(Ring& ring) {
  if (std::unique_ptr<Seat>& seat = seats_[ring.pair->number]; seat != nullptr) {
    seat->stop();
    core_.chores |= kBarrierChore;
  }
}

void BarrierRings::forget(Pair& pair) {
  if (seats_[pair.number] != nullptr) {
    seat(pair).close(false);
    seat(pair).clear_counters();
    core_.chores |= kBarrierChore;
  }
}

Pair* BarrierRings::receiver(const InFrame& doorbell) {
  const Owner* const owner = core_.owner(doorbell.dest);
  return owner == nullptr || owner->pair_of_doorbells == kNoPair
             ? nullptr
             : &core_.pairs[owner->pair_of_doorbells];
}

bool BarrierRings::is_for_ring(const InFrame& doorbell) {
  const Pair* const pair = receiver(doorbell);
  return pair != nullptr && pair->rings[kBarrierRing].running();
}

bool BarrierRings::on_notice(const InFrame& frame) {
  Frame* response = responder_.begin(frame, FrameType::kResponse, 0);
  if (response == nullptr) {
    return false;
  }
  ++core_.counts.rx_packets;
  const Answer answer = take(frame);
  core_.count_answer(answer);
  response->op = static_cast<uint8_t>(answer);
  responder_.send(response);
  return true;
}

Answer BarrierRings::take(const InFrame& frame) {
  if (core_.faults.draw(Fault::kError)) {
    return Answer::kError;
  }
  if (core_.faults.draw(Fault::kRetry)) {
    return Answer::kRetry;
  }
  return seat(*receiver(frame)).receive(frame);
}

void BarrierRings::on_end(const Flow& flow, const Transaction& transaction, Status status) {
  Seat& seat = this->seat(flow.pair);
  switch (status) {
    case Status::kOk:
      seat.answered(transaction.owner, barrier::Answer::kDone);
      break;
    case Status::kRetryExpired:
      seat.answered(transaction.owner, barrier::Answer::kRetry);
      break;
    case Status::kErrorResponse:
      seat.answered(transaction.owner, barrier::Answer::kError);
      break;
    default:
      break;  // the engine has time-outs of its own
  }
}

bool BarrierRings::send(Pair& pair, uint32_t dest_id, uint32_t tag, uint16_t info) {
  Flow* const flow = core_.link_up ? core_.flow(pair, dest_id) : nullptr;
  return flow != nullptr && !flow->way->gone &&
         transactions_.start_now(*flow, {.ring = kBarrierRing, .owner = tag, .address = info});
}

bool BarrierRings::answers_wait() const {
  return std::ranges::any_of(core_.wire->inbound(),
                             [](Inbound& in) { return in.responses->peek() != nullptr; });
}

void BarrierRings::work() {
  uint32_t chores = core_.chores & kStopChore;
  for (const std::unique_ptr<Seat>& seat : seats_) {
    if (seat == nullptr || !(seat->is_open() || seat->is_busy())) {
      continue;
    }
    seat->work();
    chores |= uint32_t{seat->is_open()} * kBarrierRingChore;
    chores |= uint32_t{seat->is_busy()} * kBarrierChore;
  }
  core_.chores = static_cast<uint8_t>(chores);
  set_running((chores & kBarrierRingChore) != 0);
}

bool BarrierRings::has_posted() const {
  return std::ranges::any_of(
      seats_, [](const auto& seat) { return seat != nullptr && seat->has_posted(); });
}

bool BarrierRings::needs_time() const {
  return std::ranges::any_of(
      seats_, [](const auto& seat) { return seat != nullptr && seat->needs_time(); });
}

}  // namespace rio::model
