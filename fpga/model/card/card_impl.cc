#include "fpga/model/card/card_impl.hpp"

#include <algorithm>

namespace rio::model {
namespace {

constexpr uint32_t kScanEvery = 16;        // steps between scans of the control words (fast mode)
constexpr uint32_t kKicksPerStep = 128;    // messages sent by kicks between full steps
constexpr uint32_t kLooksPerScan = 512;    // looks for messages between scans
constexpr uint32_t kHousekeepEvery = 256;  // steps and looks between updates of timers and counters

}  // namespace

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
  if (gone || core.requests_wait()) {  // gone: it vanished meanwhile
    leave(self);
    return nullptr;
  }
  if (engines.responder.pending()) {
    engines.responder.flush();  // the neighbour's earlier messages are answered before later ones
  }
  return &core;
}

void Card::Impl::leave(bool self) {
  if (!self) {
    CardLock::unlock(entered);
  }
}

void Card::Impl::take_found(const Inbound& in, uint64_t word, CardLock::Held held) {
  if (take_notice(in, word)) {
    CardLock::unlock(held);
    return;
  }
  // Messages in quick succession are a stream, which is taken in runs. A single message is taken
  // without touching the next one's cache line, which may still be in another core.
  const bool alone = looks_in_vain >= kLooksApart;
  comes_at_once = looks_in_vain == kLooksApart;
  looks_in_vain = 0;
  if (!alone) {
    looks -= std::min(looks, kLooksPerStream);  // others are served although it goes on
  }
  // The host sends and receives in turn: it will probably reply.
  const bool is_exchange = alone && has_kicked;
  has_kicked = false;
  short_reaps = is_exchange ? kReapsPerExchange : 0;
  if (alone ? engines.rx_plain.take_single(in, word) ||
                  engines.rx_several.take_single(in, word, engines.rx_plain.aimed())
            : engines.take_stream(in)) {
    if (is_exchange && kicks != 0) {
      engines.fast_tx.prepare();  // the reply
    }
    CardLock::unlock(held);
  } else {
    step_after_looks(held);
  }
}

void Card::Impl::look_for_barrier(CardLock::Held held) {
  --looks;
  if (engines.responder.pending()) {
    engines.responder.flush();  // to a message that a look has taken
  }
  if (sends_wait()) {
    step_after_looks(held);
    return;
  }
  if (look_at_wire(held)) {
    return;
  }
  if (take_answers()) {
    engines.barriers.note_chores();
    allow_looks(!engines.barriers.waits() && !engines.tx.due() && !engines.transactions.due() &&
                !engines.dma.busy());
  }
  ++looks_in_vain;
  CardLock::unlock(held);
}

void Card::Impl::step_or_look_for_barrier(CardLock::Held held) {
  if (may_look_for_barrier()) {
    look_for_barrier(held);
  } else {
    step_after_looks(held);
  }
}

void Card::Impl::start_barrier(CardLock::Held held) {
  if ((may_look() || may_look_for_barrier()) && engines.barriers.start()) {
    allow_looks(!engines.barriers.waits());
  } else {
    engines.barriers.expect_start();
    enter_thread();
    step(true, true);
  }
  CardLock::unlock(held);
}

/// Take a barrier notification without a step. @param word as of take_found(). @return false: it is
/// none, or a step must take it.
inline bool Card::Impl::take_notice(const Inbound& in, uint64_t word) {
  const auto type = static_cast<FrameType>(word >> 32 & 0xFF);
  if ((type != FrameType::kDoorbell && type != FrameType::kPledge) ||
      (core.chores & kBarrierRingChore) == 0 || !engines.take_notice(in)) {
    return false;
  }
  allow_looks(!engines.barriers.waits());
  return true;
}

void Card::Impl::look_after_answer(CardLock::Held held) {
  engines.responder.flush();
  if (comes_at_once && !acks_put_off && !sends_wait()) {
    acks_put_off = true;
    --looks;
    if (look_at_wire(held)) {
      return;  // in an exchange the partner's message is there before its answer
    }
    ++looks;
  }
  acks_put_off = false;
  // The peer has answered this side's messages before it polled again. Their answers are taken
  // while nothing else is to be done: a full step would find many of them, each in a cache line of
  // its own, when the next message may already be there.
  count_kicks();
  for (const Inbound& in : core.wire->inbound()) {
    engines.take_acks(in);
  }
  look_allowed = !engines.tx.due();
  if (look_allowed) {
    look(held);
  } else {
    step_after_looks(held);
  }
}

void Card::Impl::reap(CardLock::Held held) {
  if (short_reaps == 0 || !may_look() || sends_wait()) {
    enter_thread();
    step(true, true);
    CardLock::unlock(held);
    return;
  }
  --short_reaps;
  --looks;
  count_kicks();
  static_cast<void>(take_answers());
  if (!look_allowed || !look_at_wire(held)) {
    CardLock::unlock(held);
  }
}

void Card::Impl::step_after_looks(CardLock::Held held) {
  enter_thread();
  if ((look_allowed || barrier_look_allowed) && looks == 0) {
    scan_in = 0;
  }
  step(false, true);
  CardLock::unlock(held);
}

void Card::Impl::step_to_receive_shared() {
  const CardLock::Held held = lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return;
  }
  if (may_look()) {
    look(held);
  } else {
    step_or_look_for_barrier(held);
  }
}

/// Whether a ring of a pair has entries that a step must fetch.
inline bool Card::Impl::has_posts(const Pair& pair) {
  return pair.rings[kTxRing].waits() || pair.rings[kDmaRing].waits() ||
         pair.rings[kMaintRing].waits();
}

bool Card::Impl::other_pairs_have_posts() const {
  return std::any_of(core.pairs.begin() + 1, core.pairs.end(), has_posts);
}

bool Card::Impl::other_sends_wait(const Pair* but) const {
  return std::any_of(core.pairs.begin(), core.pairs.end(), [but](const Pair& pair) {
    return &pair != but && pair.rings[kTxRing].waits();
  });
}

/// Whether look() may replace the next steps: the card has nothing else to do.
bool Card::Impl::looks_allowed() {
  const bool idle =
      !gone && !core.exact && !core.wire->pumps() && core.link_up && !has_posts(core.pairs[0]) &&
      !(has_more_pairs && other_pairs_have_posts()) && !engines.dma.busy() && !engines.tx.due() &&
      !engines.transactions.due() &&
      (core.chores <= kBarrierRingChore || (core.chores < kStopChore && !engines.barriers.waits()));
  const auto inbound = core.wire->inbound();
  return idle &&
         std::none_of(inbound.begin(), inbound.end(),
                      [](const Inbound& in) { return in.requests->holds(); }) &&
         engines.rx_plain.aim();
}

void Card::Impl::end_kick(FastTx::Kick kicked, CardLock::Held held) {
  FastTx& fast = engines.fast_tx;
  if (kicked == FastTx::Kick::kNot) {
    kicked = fast.kick_several();
  }
  if (kicked == FastTx::Kick::kNot && fast.find_room()) {
    kicked = fast.kick();
  }
  if (kicked == FastTx::Kick::kNot) {
    if (kick_several()) {
      CardLock::unlock(held);
    } else {
      step_instead(held);
    }
    return;
  }
  --kicks;
  if (kicked == FastTx::Kick::kSentToSleeper) {
    fast.wake();
  }
  CardLock::unlock(held);
}

/// Send posted messages of several segments without a step. A call counts as a kick, whatever it
/// sends. @return false: a step must do what is left.
bool Card::Impl::kick_several() {
  FastTx& fast = engines.fast_tx;
  Pair& pair = fast.pair();
  Ring& ring = pair.rings[kTxRing];
  if (has_more_pairs && (!ring.waits() || other_sends_wait(&pair))) {
    return false;  // the host has posted for another pair
  }
  --kicks;
  --kicks_counted;
  if (awaits_letter && ring.head == awaiting_head && !take_answers()) {
    return true;
  }
  const uint32_t count = core.poll_tail(ring);
  awaits_letter = count != 0 && fast.waits_for_letter(pair, ring) &&
                  (!take_answers() || fast.waits_for_letter(pair, ring));
  if (!awaits_letter && count != 0) {
    fast.send_several(pair, ring, count);
    awaits_letter = ring.posted() != 0 && fast.waits_for_letter(pair, ring);
  }
  awaiting_head = ring.head;
  return awaits_letter || (count != 0 && ring.posted() == 0);
}

/// @return whether there were any.
bool Card::Impl::take_answers() {
  if (engines.responder.pending()) {
    engines.responder.flush();  // to a message that a look has taken
  }
  bool answered = false;
  for (Inbound& in : core.wire->inbound()) {
    if (in.responses->peek() != nullptr) {
      engines.take_responses(in, true);
      answered = true;
    }
  }
  if (answered && (engines.tx.due() || engines.transactions.due() || engines.dma.busy())) {
    look_allowed = barrier_look_allowed = false;
  }
  return answered;
}

void Card::Impl::step_instead(CardLock::Held held) {
  enter_thread();
  if (kicks_counted != 0) {  // kicks were allowed: scan again once they are used up
    scan_in = std::min(scan_in, kicks);
  }
  step(true, ++sends_unpulled % kSendsUnpulled == 0);
  CardLock::unlock(held);
}

void Card::Impl::step_to_send_shared() {
  const CardLock::Held held = lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return;
  }
  if (may_kick()) {
    expect_single();
    end_kick(engines.fast_tx.kick(), held);
  } else {
    step_instead(held);
  }
}

/// How many messages kicks may send before the next full step. They serve the pair that has sent
/// last.
uint32_t Card::Impl::kicks_allowed() {
  Pair& pair = engines.fast_tx.pair();
  const Ring& ring = pair.rings[kTxRing];
  const bool plain = !gone && !core.exact && !core.wire->pumps() && core.link_up &&
                     ring.running() && !ring.held && !core.wire->may_enter_neighbour(core.thread);
  return plain && engines.fast_tx.aim(pair) ? std::min(kKicksPerStep, core.flights_left(pair)) : 0;
}

void Card::Impl::count_kicks() {
  engines.fast_tx.count_kicks(engines.fast_tx.pair(), kicks_counted - kicks);
  kicks_counted = kicks;
}

void Card::Impl::end_short_ways() {
  count_kicks();
  kicks = kicks_counted = 0;
  look_allowed = barrier_look_allowed = false;
}

void Card::Impl::step(bool answers, bool pulls) {
  count_kicks();
  if (gone) {
    return;
  }
  if (engines.responder.pending()) [[unlikely]] {
    engines.responder.flush();  // to a message that a look has taken
  }
  if (core.host.begin_step()) [[unlikely]] {
    scan_in = 0;  // memory may have gone: scan before any ring is used
    core.wire->end_leases();
    core.wire->on_unmapped();
  }
  bool house_is_due = false;
  if (core.exact || scan_in-- == 0) [[unlikely]] {
    house_is_due = check_host(&answers);
  }
  // Send posted messages first: they need not wait for a cache line that the other side has just
  // written.
  const bool has_accesses = engines.dma.busy();
  const bool posts = send_posted(&answers);
  // While the host posts one access after the other, it does not look for those that are done. So
  // reads wait, since one system call for many takes less time.
  posts_unpulled = !posts ? 0 : has_accesses ? posts_unpulled + 1 : 1;
  const bool reads = posts_unpulled <= 1 || posts_unpulled % kSendsUnpulled == 0;
  if (take_frames(answers, pulls, reads) && !core.exact &&
      engines.fast_tx.pair().rings[kTxRing].waits()) [[unlikely]] {
    engines.fast_tx.run(engines.fast_tx.pair());  // with the letters that the answers have freed
  }
  // Check time-outs after arrivals: frames may have waited while the card was not stepped.
  if (house_is_due) [[unlikely]] {
    upkeep.housekeep();
  }
  finish_work(reads);
  kicks = kicks_counted = scan_in == 0 ? 0 : kicks_allowed();
  awaits_letter = false;
  allow_looks(looks_allowed());
}

/// Check the host's control words and the clock. @return whether timers are due as well.
bool Card::Impl::check_host(bool* answers) {
  *answers = true;
  for (HostPort& host : core.vf_hosts) {
    static_cast<void>(host.begin_step());  // the control words are looked at below in any case
  }
  const uint32_t since = kScanEvery + kLooksPerScan - looks;
  scan_in = kScanEvery;
  looks = kLooksPerScan;
  upkeep.update_clock();
  looked_ns.store(core.now_ns, std::memory_order_relaxed);
  control.check_ring_memory();
  control.scan();
  control.interrupts();
  upkeep.draw_faults();
  const bool house_is_due = core.exact || housekeep_in <= since;
  housekeep_in = house_is_due ? kHousekeepEvery : housekeep_in - since;
  if (house_is_due) {
    upkeep.poll_link();  // must come before anything is sent
  }
  if (core.config.push_slots_log2 != 0) [[unlikely]] {
    look_at_slots();
  }
  return house_is_due;
}

/// Send entries that were posted through slots. While a ring with slots runs, each step looks at
/// them, and nothing replaces steps.
void Card::Impl::look_at_slots() {
  for (Pair& pair : core.pairs) {
    const Ring& ring = pair.rings[kTxRing];
    if (ring.slots_at != 0 && ring.running()) {
      engines.tx.run_slots(pair);
      scan_in = looks = 0;
    }
  }
}

/// @return whether the host has posted accesses of remote memory.
inline bool Card::Impl::send_posted(bool* answers) {
  bool posts = false;
  for (Pair& pair : core.pairs) {
    if (!pair.live) {
      continue;
    }
    if (pair.rings[kTxRing].waits()) {
      if (core.exact) {
        engines.tx.run(pair);
      } else {
        engines.fast_tx.run(pair);
      }
      *answers = *answers || pair.rings[kTxRing].waits();
    }
    Ring& accesses = pair.rings[kDmaRing];
    if (accesses.waits()) {
      const uint32_t tail = accesses.tail;
      engines.dma.run(accesses);
      posts = posts || accesses.tail != tail;
    }
    if (pair.number == 0 && pair.rings[kMaintRing].waits()) {
      engines.maint.run(pair.rings[kMaintRing]);
    }
  }
  return posts;
}

/// @param reads whether to pull what long reads ask for. @return whether there were answers.
inline bool Card::Impl::take_frames(bool answers, bool pulls, bool reads) {
  bool answered = false;
  if (core.wire->pumps()) {
    core.wire->pump(core.now_ns);
    upkeep.take_changes();
  }
  if (pulls) {
    engines.begin_pulls();
  }
  for (Inbound& in : core.wire->inbound()) {
    // The partner pulls what it reads while this card does: so it has its answers first.
    if (reads && engines.dma.busy() && !core.exact && core.link_up &&
        in.requests->peek() != nullptr && !upkeep.receiver_is_slow()) {
      engines.take_requests(in, in.requests->peek(), false);
    }
    if (answers && in.responses->peek() != nullptr) {
      engines.take_responses(in, reads);
      answered = true;
    }
    const InFrame* request = upkeep.receiver_is_slow() ? nullptr : in.requests->peek();
    if (request != nullptr || in.requests->holds()) {
      if (!core.link_up) [[unlikely]] {
        upkeep.poll_link();  // the neighbour has seen the link come up before this card did
      }
      engines.take_requests(in, request, pulls);
    }
  }
  return answered;
}

void Card::Impl::do_chores() {
  if (control.stopping()) {
    control.finish_stops();
  }
  if ((core.chores & (kBarrierRingChore | kBarrierChore)) != 0) {
    engines.barriers.work();
  }
}

/// @param reads as of take_frames().
inline void Card::Impl::finish_work(bool reads) {
  if (engines.tx.due()) {
    engines.tx.send_due();
  }
  if (engines.transactions.due()) {
    engines.transactions.send_due();
  }
  if (engines.dma.busy()) {
    engines.dma_pull.progress(reads);
  }
  if (engines.responder.pending()) {
    engines.responder.flush();
  }
  if (core.chores != 0) [[unlikely]] {
    do_chores();
  }
  if (core.exact) [[unlikely]] {
    core.end_gathering();
  }
}

}  // namespace rio::model
