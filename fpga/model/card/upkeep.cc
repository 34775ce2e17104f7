#include "fpga/model/card/upkeep.hpp"

#include <algorithm>

namespace rio::model {
namespace {

constexpr uint32_t kBusyLooks = 128;  // steps within which every ring of frames is emptied

}  // namespace

void Upkeep::update_clock() {
  const uint64_t before = core_.now_ns;
  core_.now_ns = core_.clock->now_ns();
  // Frames carry the time of the last clock update. If the card was not stepped for long since
  // then, that is much too early: correct it.
  if (!core_.exact && core_.now_ns - before > core_.timers.response_ns / 8) {
    const auto correct = [this, before]<class Sent>(Sent& sent) {
      if (sent.state == Sent::kFlying && sent.since_ns == before) {
        sent.since_ns = core_.now_ns - 1;  // differs from the stamp of frames sent from now on
      }
    };
    core_.each_flow([&](Flow& flow) {
      flow.each_message(correct);
      flow.each_transaction(correct);
    });
  }
}

void Upkeep::poll_link() {
  const bool up = core_.wire->link_up() && !forced_down_ && down_steps_ == 0 &&
                  regs::port::Control::enable.get(core_.bar.load(regs::port::control())) != 0;
  if (up != core_.link_up) {
    set_link(up);
  }
}

void Upkeep::housekeep() {
  control_.tell(regs::id::heartbeat(), ++heartbeat_);
  core_.wire->check_partners(core_.now_ns, core_.timers.response_ns);
  engines_.tx.check_timers();
  // While frames wait in a ring their senders are not silent. That excuse ends after kBusyLooks
  // steps.
  busy_looks_ = core_.requests_wait() ? busy_looks_ + 1 : 0;
  if (busy_looks_ == 0 || busy_looks_ > kBusyLooks) {
    engines_.rx.check_timers();
  }
  engines_.transactions.check_timers(ended_);
  core_.counts.rx_packets += static_cast<uint32_t>(core_.wire->leased_packets());
  control_.tell_port();
  engines_.rail.work();
}

void Upkeep::set_link(bool up) {
  core_.link_up = up;
  engines_.maint.csr().set_link(up);
  if (!up) {
    engines_.tx.link_down();
    core_.wire->end_leases();  // packets that ask are lost on the way
  }
  control_.tell_port();
  for (Pair& pair : core_.pairs) {
    core_.event(pair, regs::EventType::kLink, 0, up ? 1 : 0, {0, 0, 0, 0});
  }
}

void Upkeep::draw_faults() {
  slow_steps_ -= slow_steps_ > 0 ? 1 : 0;
  down_steps_ -= down_steps_ > 0 ? 1 : 0;
  if (stuck_steps_ > 0 && --stuck_steps_ == 0) {
    stuck_->held = false;
  }
  if (!core_.faults.enabled()) {
    return;
  }
  if (slow_steps_ == 0 && core_.faults.draw(Fault::kSlowReceiver)) {
    slow_steps_ = 1 + core_.faults.below(64);
  }
  // These two faults last longer, so they are drawn a tenth as often.
  if (down_steps_ == 0 && core_.faults.below(10) == 0 && core_.faults.draw(Fault::kLinkDown)) {
    down_steps_ = 1 + core_.faults.below(200);
  }
  if (stuck_steps_ == 0 && core_.faults.below(10) == 0 && core_.faults.draw(Fault::kStuckQueue)) {
    Pair& pair = core_.pairs[core_.faults.below(static_cast<uint32_t>(core_.pairs.size()))];
    stuck_ = &pair.rings[core_.faults.below(regs::kRingsPerQp)];
    stuck_->held = stuck_->running();
    stuck_steps_ = 1 + core_.faults.below(200);
  }
}

Activity Upkeep::activity() {
  Activity now;
  now.done = core_.bar.load(regs::id::gen_ack()) + core_.counts.rx_packets;
  now.posted = engines_.dma.busy() || engines_.barriers.has_posted();
  const bool writes_wait =
      std::any_of(core_.functions.begin(), core_.functions.end(),
                  [](const Function& function) { return function.host->writes_wait(); });
  now.under_way = core_.requests_wait() || engines_.responder.pending() || control_.stopping() ||
                  engines_.transactions.due() || engines_.tx.due() || writes_wait ||
                  engines_.barriers.needs_time() || control_.interrupt_waits();
  for (const Pair& pair : core_.pairs) {
    if (!pair.live) {
      continue;
    }
    const Ring& tx = pair.rings[kTxRing];
    now.posted = now.posted || tx.outstanding > 0 || engines_.tx.has_posted(tx) ||
                 pair.rings[kDmaRing].waits() || pair.rings[kMaintRing].waits();
    for (const Ring& ring : pair.rings) {
      now.done += uint64_t{ring.head} + ring.cidx;
    }
  }
  now.under_way = now.under_way || now.posted;
  now.barriers = (core_.chores & kBarrierChore) != 0 || engines_.barriers.has_posted();
  return now;
}

void Upkeep::take_changes() {
  PartnerChange change{};
  while (core_.wire->next_change(&change)) {
    on_change(change);
  }
}

void Upkeep::on_change(const PartnerChange& change) {
  for (Pair& pair : core_.pairs) {
    const auto it = pair.flows.find(change.dest_id);
    if (it != pair.flows.end()) {
      it->second->forget_partner();
    }
    if (!change.here && it != pair.flows.end()) {
      engines_.tx.lose(*it->second);
      engines_.transactions.lose(*it->second, ended_);
    }
    if (change.times != 0) {  // 0: there never was a partner
      core_.event(pair, regs::EventType::kPartner, change.dest_id, change.here ? 1 : 0,
                  {change.times, 0, 0, 0});
    }
  }
  if (!change.here) {
    engines_.rx.lose(change.dest_id);
  }
}

}  // namespace rio::model
