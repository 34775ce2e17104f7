// What a card looks at now and then: clock, link, timers, faults.
#include "fpga/model/card/card_impl.hpp"

namespace rio::model {
namespace {

constexpr uint32_t kBusyLooks = 128;  // steps that any ring of frames is emptied in

}  // namespace

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

void Card::Impl::look_at_link() {
  const bool up = core.wire->link_up() && !forced_down && down_steps == 0 &&
                  regs::port::Control::enable.get(core.bar.load(regs::port::control())) != 0;
  if (up != core.link_up) {
    set_link(up);
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

Activity Card::Impl::activity() {
  Activity now;
  if (gone) {
    return now;
  }
  now.done = core.bar.load(regs::id::gen_ack()) + core.counts.rx_packets;
  now.posted = dma.busy();
  now.under_way = requests_wait() || responder.pending() || control.stopping() ||
                  transactions.due() || tx.due() || core.host.writes_wait() ||
                  control.interrupt_waits();
  for (const Pair& pair : core.pairs) {
    if (!pair.live) {
      continue;
    }
    now.posted = now.posted || pair.tx_outstanding > 0;
    for (uint32_t r = 0; r < regs::kRingsPerQp; ++r) {
      const Ring& ring = pair.rings[r];
      now.done += uint64_t{ring.head} + ring.cidx;
      const bool submits = r == kTxRing || r == kDmaRing || r == kMaintRing;
      now.posted = now.posted || (submits && Core::waits(pair, r));
    }
  }
  now.under_way = now.under_way || now.posted;
  return now;
}

}  // namespace rio::model
