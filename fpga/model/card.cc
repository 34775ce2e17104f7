#include "fpga/model/card.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>

#include "fpga/model/card_lock.hpp"
#include "fpga/model/detail/control.hpp"
#include "fpga/model/detail/tx_single.hpp"
#include "fpga/model/detail/whole.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kScanEvery = 16;         // steps between looks at the control words (fast mode)
constexpr uint32_t kKicksPerStep = 128;     // messages sent in between without a look at anything
constexpr uint32_t kHousekeepEvery = 256;   // steps between looks at timers and counters
constexpr uint32_t kFramesPerStep = 64;     // so that one card cannot keep the thread
constexpr uint32_t kAnswersPerStep = 1024;  // a ring of foreign bytes may have no end
constexpr uint32_t kBusyLooks = 128;        // steps that any ring of frames is emptied in

/// Whether a frame's source is of those that its sender may give.
[[nodiscard]] inline bool bears_its_name(const Inbound& in, const Frame& frame) {
  return frame.source - in.first_source <= in.more_sources;
}

/// Its address tells threads apart.
[[gnu::tls_model("initial-exec")]] thread_local char thread_tag;

}  // namespace

struct Card::Impl final : Neighbour {
  Impl(const Config& config, Ends ends)
      : core(config, ends.bar, bar_bytes(config.queue_pairs), ends.memory, std::move(ends.wire),
             ends.clock, ends.irqs),
        transactions(core),
        tx(core, transactions),
        responder(core),
        rx(core, responder),
        dma(core, transactions),
        target(core, responder),
        maint(core, transactions, responder),
        control(core, Engines{transactions, tx, rx, dma, target, maint}) {
    core.wire->attach(this);
  }
  ~Impl() override { core.wire->attach(nullptr); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Core* enter(bool self) override;
  void leave(bool self) override;

  void locked_step(bool answers);
  void enter_thread();
  [[nodiscard]] uint32_t kicks_allowed();
  [[gnu::noinline]] void step_instead();
  void count_kicks();
  void end_kicks();
  void step(bool answers);
  void look_at_clock();
  void look_at_link();
  void housekeep();
  [[nodiscard]] bool requests_wait();
  [[nodiscard]] Activity activity();
  void set_link(bool up);
  void draw_faults();
  void take_responses(Inbound& in);
  void take_requests(Inbound& in, const InFrame* frame);
  bool on_request(const InFrame& frame);
  void on_response(const InFrame& frame);
  void take_changes();
  void on_change(const PartnerChange& change);
  void expire(const std::vector<Transactions::Expired>& all);

  CardLock lock;
  CardLock::Held entered = nullptr;           // by a neighbour
  std::atomic<const char*> stepper{nullptr};  // thread_tag of the last thread in step()
  bool gone = false;
  bool forced_down = false;
  uint32_t scan_in = 0;
  uint32_t kicks = 0;  // may be sent until the next step
  uint32_t housekeep_in = 0;
  uint32_t busy_looks = 0;  // in a row with requests waiting
  uint32_t slow_steps = 0;
  uint32_t down_steps = 0;
  uint32_t stuck_steps = 0;
  Ring* stuck = nullptr;
  uint32_t heartbeat = 0;
  uint32_t kicks_counted = 0;  // `kicks` when they were counted last
  Core core;
  Transactions transactions;
  TxEngine tx;
  Responder responder;
  RxEngine rx;
  DmaEngine dma;
  TargetEngine target;
  MaintEngine maint;
  Control control;
};

size_t Card::bar_bytes(uint32_t queue_pairs) {
  return std::bit_ceil(static_cast<size_t>(queue_pairs + 1) * regs::kQpStrideBytes);
}

int Card::create(const Config& config, Ends ends, std::unique_ptr<Card>* out) {
  if (!valid(config) || ends.bar == nullptr || ends.memory == nullptr || ends.clock == nullptr ||
      ends.wire == nullptr) {
    return -EINVAL;
  }
  auto impl = std::make_unique<Impl>(config, std::move(ends));
  impl->core.now_ns = impl->core.clock->now_ns();
  impl->control.power_on();
  impl->set_link(impl->core.wire->link_up());
  out->reset(new Card(std::move(impl)));
  return 0;
}

Card::Card(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Card::~Card() = default;

Core* Card::Impl::enter(bool self) {
  if (stepper.load(std::memory_order_relaxed) != &thread_tag) {
    return nullptr;
  }
  if (!self) {
    const CardLock::Held held = lock.try_lock(&thread_tag);
    if (held == nullptr) {
      return nullptr;
    }
    entered = held;
  }
  if (gone) {  // meanwhile
    leave(self);
    return nullptr;
  }
  for (const Inbound& in : core.wire->inbound()) {
    if (in.requests->peek() != nullptr) {
      leave(self);
      return nullptr;
    }
  }
  return &core;
}

void Card::Impl::leave(bool self) {
  if (!self) {
    CardLock::unlock(entered);
  }
}

void Card::step() {
  impl_->locked_step(true);
}

void Card::step_to_receive() {
  impl_->locked_step(false);
}

void Card::step_to_send() {
  Impl& card = *impl_;
  const CardLock::Held held = card.lock.try_lock(&thread_tag);
  if (held == nullptr) [[unlikely]] {
    return;
  }
  // Each countdown of a scan looks whether the next steps may be so short.
  if (card.core.thread == &thread_tag && card.kicks != 0 && card.core.host.current() &&
      card.tx.kick()) [[likely]] {
    --card.kicks;
  } else {
    card.step_instead();
  }
  CardLock::unlock(held);
}

void Card::Impl::step_instead() {
  enter_thread();
  scan_in = std::min(scan_in, kicks);
  step(true);
}

/// How many messages may be sent without looking at anything but the transmit ring.
uint32_t Card::Impl::kicks_allowed() {
  const Ring& ring = core.pairs[0].rings[kTxRing];
  const bool plain = !gone && !core.exact && core.link_up && core.pairs.size() == 1 &&
                     ring.running() && !ring.held && !core.wire->may_enter_neighbour(core.thread);
  return plain && tx.aim(core.pairs[0]) ? kKicksPerStep : 0;
}

/// What kicks have sent is in the counts.
void Card::Impl::count_kicks() {
  tx.count(core.pairs[0], kicks_counted - kicks);
  kicks_counted = kicks;
}

/// The same, and there are no more until the next step.
void Card::Impl::end_kicks() {
  count_kicks();
  kicks = kicks_counted = 0;
}

inline void Card::Impl::locked_step(bool answers) {
  const CardLock::Held held = lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return;
  }
  enter_thread();
  step(answers);
  CardLock::unlock(held);
}

inline void Card::Impl::enter_thread() {
  if (core.thread != &thread_tag) [[unlikely]] {
    stepper.store(&thread_tag, std::memory_order_relaxed);
    core.thread = &thread_tag;
    core.wire->stepped_by(&thread_tag);
  }
}

void Card::Impl::step(bool answers) {
  count_kicks();
  if (gone) {
    return;
  }
  if (core.host.begin_step()) [[unlikely]] {
    scan_in = 0;  // memory has gone: no ring may be used before it was looked at
  }
  bool house_is_due = false;
  if (core.exact || scan_in-- == 0) [[unlikely]] {
    answers = true;
    scan_in = kScanEvery;
    look_at_clock();
    control.check_ring_memory();
    control.scan();
    control.interrupts();
    draw_faults();
    if (core.exact || housekeep_in-- == 0) {
      housekeep_in = kHousekeepEvery / kScanEvery;
      house_is_due = true;
      look_at_link();  // before anything is sent
    }
  }
  // First what the host has posted: it need not wait for a line that the other side has just
  // written.
  for (Pair& pair : core.pairs) {
    if (!pair.live) {
      continue;
    }
    if (Core::waits(pair, kTxRing)) {
      tx.run(pair);
      answers = answers || Core::waits(pair, kTxRing);
    }
    if (Core::waits(pair, kDmaRing)) {
      dma.run(pair);
    }
    if (pair.number == 0 && Core::waits(pair, kMaintRing)) {
      maint.run(pair);
    }
  }
  if (core.wire->pumps()) {
    core.wire->pump(core.now_ns);
    take_changes();
  }
  for (Inbound& in : core.wire->inbound()) {
    if (answers && in.responses->peek() != nullptr) {
      take_responses(in);
    }
    const InFrame* request = slow_steps == 0 ? in.requests->peek() : nullptr;
    if (request != nullptr) {
      take_requests(in, request);
    }
  }
  // Time-outs after what has arrived: a card that nobody let work has kept nobody waiting.
  if (house_is_due) [[unlikely]] {
    housekeep();
  }
  if (tx.due()) {
    tx.send_due();
  }
  if (transactions.due()) {
    transactions.send_due();
  }
  if (dma.busy()) {
    dma.progress();
  }
  if (responder.pending()) {
    responder.flush();
  }
  if (control.stopping()) [[unlikely]] {
    control.finish_stops();
  }
  kicks = kicks_counted = scan_in == 0 ? 0 : kicks_allowed();
}

void Card::Impl::look_at_clock() {
  const uint64_t before = core.now_ns;
  core.now_ns = core.clock->now_ns();
  // Between two looks what is sent bears the time of the first. If nobody let the card work for
  // long in between, that is far too early.
  if (!core.exact && core.now_ns - before > core.timers.response_ns / 8) {
    tx.sent_late(before);
    transactions.sent_late(before);
  }
}

bool Card::Impl::requests_wait() {
  for (Inbound& in : core.wire->inbound()) {
    if (in.requests->peek() != nullptr) {
      return true;
    }
  }
  return false;
}

Activity Card::Impl::activity() {
  Activity now;
  if (gone) {
    return now;
  }
  now.done = core.bar.load(regs::id::gen_ack()) + core.counts.rx_packets;
  now.under_way = requests_wait() || dma.busy() || responder.pending() || control.stopping() ||
                  transactions.due() || tx.due() || core.host.writes_wait() ||
                  control.interrupt_waits();
  for (const Pair& pair : core.pairs) {
    if (!pair.live) {
      continue;
    }
    now.under_way = now.under_way || pair.tx_outstanding > 0;
    for (uint32_t r = 0; r < regs::kRingsPerQp; ++r) {
      const Ring& ring = pair.rings[r];
      now.done += uint64_t{ring.head} + ring.cidx;
      const bool submits = r == kTxRing || r == kDmaRing || r == kMaintRing;
      now.under_way = now.under_way || (submits && Core::waits(pair, r));
    }
  }
  return now;
}

void Card::Impl::take_changes() {
  PartnerChange change{};
  while (core.wire->next_change(&change)) {
    on_change(change);
  }
}

void Card::Impl::on_change(const PartnerChange& change) {
  for (Pair& pair : core.pairs) {
    const auto it = pair.flows.find(change.dest_id);
    if (!change.here && it != pair.flows.end()) {
      tx.lose(pair, *it->second);
      expire(transactions.lose(pair, *it->second));
    }
    if (change.times != 0) {  // else nobody was ever there
      core.event(pair, regs::EventType::kPartner, change.dest_id, change.here ? 1 : 0,
                 {change.times, 0, 0, 0});
    }
  }
  if (!change.here) {
    rx.lose(change.dest_id);
  }
}

void Card::Impl::take_responses(Inbound& in) {
  FrameReader& reader = *in.responses;
  const InFrame* frame = reader.peek();
  for (uint32_t left = kAnswersPerStep; frame != nullptr && left > 0; --left) {
    if (bears_its_name(in, *frame)) [[likely]] {
      on_response(*frame);
    }
    reader.pop(frame);
    frame = reader.peek();
  }
  reader.release();
}

void Card::Impl::take_requests(Inbound& in, const InFrame* frame) {
  FrameReader& reader = *in.requests;
  uint32_t left = kFramesPerStep;
  responder.prepare();
  if (bears_its_name(in, *frame) &&
      rx.single(*frame)) {  // without a look at the next, which may still be in another core
    reader.pop(frame);
    frame = reader.peek();
  }
  while (frame != nullptr && left-- > 0) {
    if (!bears_its_name(in, *frame)) [[unlikely]] {
      reader.pop(frame);
      frame = reader.peek();
      continue;
    }
    if (rx.pulling() && rx.ends_runs(*frame)) [[unlikely]] {
      break;
    }
    if (frame->type == FrameType::kPull && core.link_up) [[unlikely]] {
      if (!rx.on_pull(in.puller, *frame)) {
        break;  // the host shall see what has come while the next is pulled
      }
      reader.pop(frame);
      frame = reader.peek();
      continue;
    }
    if (const uint32_t taken = rx.express(*frame, reader.to_end()); taken > 0) {
      reader.pop_bytes(taken);
      frame = reader.peek();
      continue;
    }
    if (!on_request(*frame)) {
      break;  // no room for an answer: it stays
    }
    reader.pop(frame);
    frame = reader.peek();
  }
  if (rx.pulling()) {
    rx.end_runs(in.puller);
  }
  // Answers before the room is given back: whoever sees that a request was taken has its answer.
  if (responder.pending()) {
    responder.flush();
  }
  reader.release();
}

bool Card::Impl::on_request(const InFrame& frame) {
  if (frame.type == FrameType::kMessage && core.link_up && whole(frame)) [[likely]] {
    return rx.on_message(frame);
  }
  if (!core.link_up || !whole(frame)) {
    return true;  // lost on the way
  }
  switch (frame.type) {
    case FrameType::kSegment:
      return rx.on_segment(frame);
    case FrameType::kDoorbell:
      return rx.on_doorbell(frame);
    case FrameType::kRequest:
      return target.on_request(frame);
    case FrameType::kMaintRequest:
      return maint.on_request(frame);
    case FrameType::kPortWrite:
      maint.on_port_write(frame);
      return true;
    default:
      return true;
  }
}

void Card::Impl::on_response(const InFrame& frame) {
  if (!whole(frame)) {
    return;
  }
  if (frame.type == FrameType::kAcks) [[likely]] {
    tx.on_acks(frame);
    return;
  }
  if (frame.type == FrameType::kPulled) {
    tx.on_pulled(frame);
    return;
  }
  Pair* pair = core.sender(frame.dest);
  Flow* flow = pair == nullptr ? nullptr : core.known_flow(*pair, frame.source);
  Transaction* transaction = flow == nullptr ? nullptr : transactions.answered(*flow, frame);
  if (transaction == nullptr) {
    return;
  }
  switch (transaction->kind) {
    case Transaction::kDoorbell:
      tx.on_doorbell_answer(*pair, *flow, *transaction, static_cast<Answer>(frame.op));
      break;
    case Transaction::kDma:
      dma.on_response(*pair, *flow, *transaction, frame);
      break;
    default:
      maint.on_response(*pair, *flow, *transaction, frame);
  }
}

void Card::Impl::expire(const std::vector<Transactions::Expired>& all) {
  for (const Transactions::Expired& late : all) {
    core.counts.tx_timeouts += late.status == regs::Status::kResponseTimeout ? 1 : 0;
    switch (late.transaction->kind) {
      case Transaction::kDoorbell:
        tx.on_doorbell_expired(*late.pair, *late.transaction, late.status);
        break;
      case Transaction::kDma:
        dma.on_expired(*late.transaction, late.status);
        break;
      default:
        maint.on_expired(*late.transaction, late.status);
    }
    transactions.expire(*late.flow, *late.transaction);
  }
}

void Card::Impl::look_at_link() {
  const bool up = core.wire->link_up() && !forced_down && down_steps == 0 &&
                  regs::port::Control::enable.get(core.bar.load(regs::port::control())) != 0;
  if (up != core.link_up) {
    set_link(up);
  }
}

void Card::Impl::housekeep() {
  core.bar.store(regs::id::heartbeat(), ++heartbeat);
  core.wire->look_at_partners(core.now_ns, core.timers.response_ns);
  tx.check_timers();
  // Segments that wait are no silence; but what waits now does not wait for ever.
  busy_looks = requests_wait() ? busy_looks + 1 : 0;
  if (busy_looks == 0 || busy_looks > kBusyLooks) {
    rx.check_timers();
  }
  expire(transactions.check_timers());
  control.tell_port();
}

void Card::Impl::set_link(bool up) {
  core.link_up = up;
  maint.csr().set_link(up);
  control.tell_port();
  for (Pair& pair : core.pairs) {
    core.event(pair, regs::EventType::kLink, 0, up ? 1 : 0, {0, 0, 0, 0});
  }
}

void Card::Impl::draw_faults() {
  slow_steps -= slow_steps > 0 ? 1 : 0;
  down_steps -= down_steps > 0 ? 1 : 0;
  if (stuck_steps > 0 && --stuck_steps == 0) {
    stuck->held = false;
  }
  if (!core.faults.enabled()) {
    return;
  }
  if (slow_steps == 0 && core.faults.draw(Fault::kSlowReceiver)) {
    slow_steps = 1 + core.faults.below(64);
  }
  // These two hurt more: a tenth as often.
  if (down_steps == 0 && core.faults.below(10) == 0 && core.faults.draw(Fault::kLinkDown)) {
    down_steps = 1 + core.faults.below(200);
  }
  if (stuck_steps == 0 && core.faults.below(10) == 0 && core.faults.draw(Fault::kStuckQueue)) {
    Pair& pair = core.pairs[core.faults.below(static_cast<uint32_t>(core.pairs.size()))];
    stuck = &pair.rings[core.faults.below(regs::kRingsPerQp)];
    stuck->held = stuck->running();
    stuck_steps = 1 + core.faults.below(200);
  }
}

void Card::step_surely(uint32_t times) {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  impl_->enter_thread();
  for (; times > 0; --times) {
    impl_->step(true);
  }
}

void Card::with_lock(void (*fn)(void* arg), void* arg) {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  fn(arg);
}

void Card::set_link(bool up) {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  impl_->forced_down = !up;
  impl_->scan_in = 0;
  impl_->housekeep_in = 0;
}

void Card::lose_state() {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  impl_->control.lose_state();
}

void Card::vanish() {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  impl_->gone = true;
  for (uint32_t offset = 0; offset < impl_->core.bar.len_bytes(); offset += 4) {
    impl_->core.bar.store(offset, regs::kAllOnes);
  }
}

void Card::hold_ring(uint32_t queue_pair, uint32_t ring, bool held) {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  if (queue_pair < impl_->core.pairs.size() && ring < regs::kRingsPerQp) {
    impl_->core.pairs[queue_pair].rings[ring].held = held;
  }
}

void Card::set_faults(const FaultConfig& faults) {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  impl_->core.faults = Faults(faults);
  impl_->core.exact =
      impl_->core.config.exact || impl_->core.config.pcie_seed != 0 || impl_->core.faults.enabled();
}

Activity Card::activity() {
  const CardLock::Held held = impl_->lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return {.done = 0, .under_way = true};
  }
  impl_->count_kicks();
  const Activity now = impl_->activity();
  CardLock::unlock(held);
  return now;
}

PortCounts Card::counters() {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  return impl_->core.counts;
}

uint64_t Card::faults_drawn(Fault fault) {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  return impl_->core.faults.drawn(fault);
}

uint64_t Card::refused_accesses() {
  const CardHold hold(impl_->lock);
  impl_->end_kicks();
  return impl_->core.host.refused();
}

}  // namespace rio::model
