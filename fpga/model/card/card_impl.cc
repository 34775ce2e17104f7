#include "fpga/model/card/card_impl.hpp"

#include <algorithm>

namespace rio::model {
namespace {

constexpr uint32_t kScanEvery = 16;        // steps between scans of the control words (fast mode)
constexpr uint32_t kKicksPerStep = 128;    // messages sent by kicks between full steps
constexpr uint32_t kLooksPerScan = 128;    // looks for messages between scans
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
  return &core;
}

void Card::Impl::leave(bool self) {
  if (!self) {
    CardLock::unlock(entered);
  }
}

void Card::Impl::step_after_looks() {
  enter_thread();
  if (look_allowed && looks == 0) {
    scan_in = 0;
  }
  step(false);
}

/// Whether look() may replace the next steps: the card has nothing else to do.
bool Card::Impl::looks_allowed() {
  const Pair& pair = core.pairs[0];
  const bool idle = !gone && !core.exact && !core.wire->pumps() && core.link_up &&
                    core.pairs.size() == 1 && !pair.rings[kTxRing].waits() &&
                    !pair.rings[kDmaRing].waits() && !pair.rings[kMaintRing].waits() &&
                    !engines.dma.busy() && !engines.tx.due() && !engines.transactions.due() &&
                    core.chores <= kBarrierRingChore;
  return idle && engines.rx_plain.aim();
}

void Card::Impl::end_kick(FastTx::Kick kicked, CardLock::Held held) {
  FastTx& fast = engines.fast_tx;
  if (kicked == FastTx::Kick::kNot && fast.find_room()) {
    kicked = fast.kick();
  }
  if (kicked == FastTx::Kick::kNot) {
    step_instead(held);
    return;
  }
  --kicks;
  if (kicked == FastTx::Kick::kSentToSleeper) {
    fast.wake();
  }
  CardLock::unlock(held);
}

void Card::Impl::step_instead(CardLock::Held held) {
  enter_thread();
  if (kicks_counted != 0) {  // kicks were allowed: scan again once they are used up
    scan_in = std::min(scan_in, kicks);
  }
  step(true);
  CardLock::unlock(held);
}

void Card::Impl::step_to_send_shared() {
  const CardLock::Held held = lock.try_lock(&thread_tag);
  if (held == nullptr) {
    return;
  }
  if (may_kick()) {
    end_kick(engines.fast_tx.kick(), held);
  } else {
    step_instead(held);
  }
}

/// How many messages kicks may send before the next full step.
uint32_t Card::Impl::kicks_allowed() {
  const Ring& ring = core.pairs[0].rings[kTxRing];
  const bool plain = !gone && !core.exact && !core.wire->pumps() && core.link_up &&
                     core.pairs.size() == 1 && ring.running() && !ring.held &&
                     !core.wire->may_enter_neighbour(core.thread);
  return plain && engines.fast_tx.aim(core.pairs[0])
             ? std::min(kKicksPerStep, core.flights_left(core.pairs[0]))
             : 0;
}

void Card::Impl::count_kicks() {
  engines.fast_tx.count_kicks(core.pairs[0], kicks_counted - kicks);
  kicks_counted = kicks;
}

void Card::Impl::end_short_ways() {
  count_kicks();
  kicks = kicks_counted = 0;
  look_allowed = false;
}

void Card::Impl::step(bool answers) {
  count_kicks();
  if (gone) {
    return;
  }
  if (core.host.begin_step()) [[unlikely]] {
    scan_in = 0;  // memory may have gone: scan before any ring is used
  }
  bool house_is_due = false;
  if (core.exact || scan_in-- == 0) [[unlikely]] {
    house_is_due = check_host(&answers);
  }
  // Send posted messages first: they need not wait for a cache line that the other side has just
  // written.
  send_posted(&answers);
  take_frames(answers);
  // Check time-outs after arrivals: frames may have waited while the card was not stepped.
  if (house_is_due) [[unlikely]] {
    upkeep.housekeep();
  }
  finish_work();
  kicks = kicks_counted = scan_in == 0 ? 0 : kicks_allowed();
  look_allowed = looks_allowed();
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

inline void Card::Impl::send_posted(bool* answers) {
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
    if (pair.rings[kDmaRing].waits()) {
      engines.dma.run(pair.rings[kDmaRing]);
    }
    if (pair.number == 0 && pair.rings[kMaintRing].waits()) {
      engines.maint.run(pair.rings[kMaintRing]);
    }
  }
}

inline void Card::Impl::take_frames(bool answers) {
  if (core.wire->pumps()) {
    core.wire->pump(core.now_ns);
    upkeep.take_changes();
  }
  for (Inbound& in : core.wire->inbound()) {
    if (answers && in.responses->peek() != nullptr) {
      engines.take_responses(in);
    }
    const InFrame* request = upkeep.receiver_is_slow() ? nullptr : in.requests->peek();
    if (request != nullptr) {
      if (!core.link_up) [[unlikely]] {
        upkeep.poll_link();  // the neighbour has seen the link come up before this card did
      }
      engines.take_requests(in, request);
    }
  }
}

void Card::Impl::do_chores() {
  if (control.stopping()) {
    control.finish_stops();
  }
  if ((core.chores & (kBarrierRingChore | kBarrierChore)) != 0) {
    engines.barriers.work();
  }
}

inline void Card::Impl::finish_work() {
  if (engines.tx.due()) {
    engines.tx.send_due();
  }
  if (engines.transactions.due()) {
    engines.transactions.send_due();
  }
  if (engines.dma.busy()) {
    engines.dma.progress();
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
