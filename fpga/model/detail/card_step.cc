// A step of the card, and the shorter ways into it.
#include <algorithm>

#include "fpga/model/detail/card_impl.hpp"
#include "fpga/model/detail/rx_single.hpp"
#include "fpga/model/detail/tx_single.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kScanEvery = 16;         // steps between looks at the control words (fast mode)
constexpr uint32_t kKicksPerStep = 128;     // messages sent in between without a look at anything
constexpr uint32_t kLooksPerScan = 128;     // looks for messages without a look at anything else
constexpr uint32_t kLooksApart = 2;         // in vain, between messages that are no stream
constexpr uint32_t kHousekeepEvery = 256;   // steps and looks between those at timers and counters
constexpr uint32_t kFramesPerStep = 64;     // so that one card cannot keep the thread
constexpr uint32_t kAnswersPerStep = 1024;  // a ring of foreign bytes may have no end

/// Whether a frame's source is of those that its sender may give.
[[nodiscard]] inline bool bears_its_name(const Inbound& in, const Frame& frame) {
  return frame.source - in.first_source <= in.more_sources;
}

}  // namespace

void Card::step() {
  Impl& card = *impl_;
  const CardLock::Held held = card.lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return;
  }
  card.enter_thread();
  card.step(true);
  CardLock::unlock(held);
}

void Card::step_to_receive() {
  Impl& card = *impl_;
  const CardLock::Held held = card.lock.try_lock(&thread_tag);
  if (held == nullptr) [[unlikely]] {
    return;
  }
  if (!card.may_look || card.looks == 0 || card.core.thread != &thread_tag ||
      !card.core.host.current() || !card.look()) [[unlikely]] {
    card.step_after_looks();
  }
  CardLock::unlock(held);
}

/// Look for a message, and at nothing else. @return false: step() has to take what is there.
inline bool Card::Impl::look() {
  --looks;
  if (Core::waits(core.pairs[0], kTxRing)) [[unlikely]] {
    return false;  // posted by another thread, whose hook has found this one inside
  }
  for (const Inbound& in : core.wire->inbound()) {
    const uint64_t word = load_frame_word(in.requests->next(), in.requests->tag());
    if (is_frame(static_cast<uint32_t>(word))) {
      // Where one soon follows another there are more to come, for step() to take, and to answer,
      // in one go. Else nobody looks at the next: it may still be in another core.
      const bool alone = looks_in_vain >= kLooksApart;
      looks_in_vain = 0;
      return alone && rx.take_single(in, word);
    }
  }
  ++looks_in_vain;
  return true;
}

void Card::Impl::step_after_looks() {
  enter_thread();
  if (may_look && looks == 0) {
    scan_in = 0;
  }
  step(false);
}

/// Whether a host that waits for messages may look for them without a step.
bool Card::Impl::looks_allowed() {
  const Pair& pair = core.pairs[0];
  const bool idle = !gone && !core.exact && !core.wire->pumps() && core.link_up &&
                    core.pairs.size() == 1 && !Core::waits(pair, kTxRing) &&
                    !Core::waits(pair, kDmaRing) && !Core::waits(pair, kMaintRing) && !dma.busy() &&
                    !tx.due() && !transactions.due() && !control.stopping();
  return idle && rx.aim();
}

void Card::step_to_send() noexcept {
  Impl& card = *impl_;
  // What is not the short way is called last, so that this function keeps no registers.
  const CardLock::Held held = card.lock.try_lock_preferred(&thread_tag);
  if (held == nullptr) [[unlikely]] {
    card.step_to_send_shared();
    return;
  }
  // Each countdown of a scan looks whether the next steps may be so short.
  if (!card.may_kick()) [[unlikely]] {
    card.step_instead(held);
    return;
  }
  const TxEngine::Kick kicked = card.tx.kick();
  if (kicked != TxEngine::Kick::kSent) [[unlikely]] {
    card.end_kick(kicked, held);
    return;
  }
  --card.kicks;
  CardLock::unlock(held);
}

inline bool Card::Impl::may_kick() const {
  return core.thread == &thread_tag && kicks != 0 && core.host.current();
}

/// What a kick has left to do. @param held is given back.
void Card::Impl::end_kick(TxEngine::Kick kicked, CardLock::Held held) {
  if (kicked == TxEngine::Kick::kNot && tx.find_room()) {
    kicked = tx.kick();
  }
  if (kicked == TxEngine::Kick::kNot) {
    step_instead(held);
    return;
  }
  --kicks;
  if (kicked == TxEngine::Kick::kSentToSleeper) {
    tx.wake();
  }
  CardLock::unlock(held);
}

void Card::Impl::step_instead(CardLock::Held held) {
  enter_thread();
  if (kicks_counted != 0) {  // kicks were allowed: look at the rest once they are used up
    scan_in = std::min(scan_in, kicks);
  }
  step(true);
  CardLock::unlock(held);
}

/// Of step_to_send(): by a thread that the lock does not lean to.
void Card::Impl::step_to_send_shared() {
  const CardLock::Held held = lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return;
  }
  if (may_kick()) {
    end_kick(tx.kick(), held);
  } else {
    step_instead(held);
  }
}

/// How many messages may be sent without looking at anything but the transmit ring.
uint32_t Card::Impl::kicks_allowed() {
  const Ring& ring = core.pairs[0].rings[kTxRing];
  const bool plain = !gone && !core.exact && !core.wire->pumps() && core.link_up &&
                     core.pairs.size() == 1 && ring.running() && !ring.held &&
                     !core.wire->may_enter_neighbour(core.thread);
  return plain && tx.aim(core.pairs[0]) ? kKicksPerStep : 0;
}

/// What kicks have sent is in the counts.
void Card::Impl::count_kicks() {
  tx.count(core.pairs[0], kicks_counted - kicks);
  kicks_counted = kicks;
}

/// The same, and there are no short ways until the next step.
void Card::Impl::end_short_ways() {
  count_kicks();
  kicks = kicks_counted = 0;
  may_look = false;
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
    const uint32_t since = kScanEvery + kLooksPerScan - looks;
    scan_in = kScanEvery;
    looks = kLooksPerScan;
    look_at_clock();
    control.check_ring_memory();
    control.scan();
    control.interrupts();
    draw_faults();
    house_is_due = core.exact || housekeep_in <= since;
    housekeep_in = house_is_due ? kHousekeepEvery : housekeep_in - since;
    if (house_is_due) {
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
  may_look = looks_allowed();
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
    if (const uint32_t taken = rx.express(*frame, reader.to_end(), reader.tag()); taken > 0) {
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

void Card::step_surely(uint32_t times) {
  const Impl::Hold hold(*impl_);
  impl_->enter_thread();
  for (; times > 0; --times) {
    impl_->step(true);
  }
}

}  // namespace rio::model
