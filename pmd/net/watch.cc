// Events of a port while other threads poll it: its link, its peers, and resets of its card. Runs
// in EAL's interrupt thread.
#include <rte_alarm.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "pmd/net/port.hpp"

namespace rio::pmd {
namespace {

constexpr uint64_t kPeriodUs = 100'000;
constexpr uint32_t kLooksBetweenCalls = 10;
constexpr uint32_t kStuckLooks = 10;  // with no progress in between
// With a card that lets other messages pass, a peer that merely gets no CPU has more time.
constexpr uint32_t kStuckLooksPassed = 100;
constexpr uint32_t kInsideTimeoutMs = 2000;

}  // namespace

void NetPort::watch() {
  if (rte_eal_alarm_set(kPeriodUs, &NetPort::on_alarm, this) != 0) {
    base::log_warning(
        "%s: EAL gives no alarm: changes of the link, peers that come back and resets of the card "
        "go unnoticed",
        name_.c_str());
  }
}

/// The lock's holder may be waiting for this alarm to end: try again later.
void NetPort::on_alarm(void* self) {
  auto* const port = static_cast<NetPort*>(self);
  const std::unique_lock guard(control_lock(), std::try_to_lock);
  if (guard.owns_lock()) {
    if (!port->started_) {
      return;
    }
    port->look();
    if (!port->started_) {
      return;
    }
  }
  port->watch();
}

void NetPort::look() {
  if (!link_down_ && is_dead()) {
    const bool first = !std::exchange(recovering_, true);
    if (first) {
      base::log_warning("%s: the card was reset, or stopped a ring: opening the port again",
                        name_.c_str());
    }
    // Ask a card that does not come back only now and then: each try may take a while.
    const bool now = first || ++looks_ % kLooksBetweenCalls == 0;
    if (now && card_->reset() != 0 && !std::exchange(failed_, true)) {
      base::log_error("%s: the card does not come back: retrying until the port is stopped",
                      name_.c_str());
      rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_RECOVERY_FAILED, nullptr);
      if (card_->is_gone()) {
        rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_INTR_RMV, nullptr);
      }
    }
  }
  if (!closed_) {
    if (++looks_ % kLooksBetweenCalls == 0) {
      call_peers(false);
    }
    rx_->listen();
    tx_[0]->tell_if_idle();
    const uint32_t looks = card_->card()->caps().pass_over != 0 ? kStuckLooksPassed : kStuckLooks;
    for (uint16_t i = 0; i < dev_->data->nb_tx_queues; ++i) {
      if (tx_[i]->is_stuck(looks)) {
        give_up(*tx_[i], looks);
      }
    }
  }
  (void)update_link();
}

/// A peer's card without buffers answers RETRY, and messages to other peers wait behind.
void NetPort::give_up(NetTx& queue, uint32_t looks) {
  if (!queue.turn().take_for_good(kInsideTimeoutMs)) {
    return;
  }
  // The next check finds a ring that no longer works.
  if (queue.give_up() == 0) {
    base::log_warning(
        "%s: a peer took nothing for %u ms: what was under way was dropped; poll its port, or have "
        "the card give up sooner with retry_limit=",
        name_.c_str(), static_cast<uint32_t>(looks * kPeriodUs / 1000));
  }
  queue.turn().give();
}

/// Whether a ring no longer works.
bool NetPort::is_dead() {
  if (closed_ || card_->card() == nullptr) {
    return true;
  }
  const auto runs = [](auto& queue) {
    return queue.ring_state(nullptr, nullptr) == static_cast<int>(regs::RingState::kRunning);
  };
  return !runs(pairs_[0]->shared()) || std::ranges::any_of(pairs_, [&runs](const auto& pair) {
    return pair != nullptr && !runs(pair->tx());
  });
}

int NetPort::update_link() {
  rte_eth_link link{};
  link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
  link.link_autoneg = RTE_ETH_LINK_AUTONEG;
  if (card_->card() != nullptr) {
    card_->let_work();
    const LinkState state = card_->card()->link();
    link.link_status = state.up && started_ && !closed_ ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
    link.link_speed = state.lanes * state.lane_mbaud;
  }
  const bool was_up = dev_->data->dev_link.link_status == RTE_ETH_LINK_UP;
  const int rc = rte_eth_linkstatus_set(dev_, &link);
  if (was_up != (link.link_status == RTE_ETH_LINK_UP)) {
    rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_INTR_LSC, nullptr);
  }
  return rc;
}

std::vector<Turn*> NetPort::turns() {
  std::vector<Turn*> all = {&rx_->turn()};
  for (uint16_t i = 0; i < dev_->data->nb_tx_queues; ++i) {
    all.push_back(&tx_[i]->turn());
  }
  return all;
}

/// Keeps threads out of all queues, or of none.
bool NetPort::take_away() {
  const std::vector<Turn*> all = turns();
  const auto stays = std::find_if_not(
      all.begin(), all.end(), [](Turn* turn) { return turn->take_for_good(kInsideTimeoutMs); });
  if (stays != all.end()) {
    std::for_each(all.begin(), stays, [](Turn* turn) { turn->give(); });
  }
  return stays == all.end();
}

int NetPort::hold() {
  if (!started_ || held_) {
    return 0;
  }
  if (!take_away()) {
    base::log_error("%s: a thread has been in a burst for %u ms: end the burst, and try again",
                    name_.c_str(), kInsideTimeoutMs);
    return -EBUSY;
  }
  held_ = true;
  return 0;
}

/// A port that could not be opened again keeps its queues closed: bursts do nothing.
void NetPort::let_go() {
  if (std::exchange(held_, false)) {
    give_back();
  }
}

void NetPort::give_back() {
  for (Turn* const turn : turns()) {
    turn->give();
  }
}

void NetPort::before_reset() {
  if (!started_ || closed_) {
    return;
  }
  recovering_ = true;
  rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_ERR_RECOVERING, nullptr);
  if (!started_) {
    return;  // the application stopped it in the callback
  }
  close();
  closed_ = true;
}

int NetPort::after_reset() {
  if (!started_ || !closed_ || link_down_) {
    return 0;
  }
  if (const int rc = open(); rc != 0) {
    return rc;
  }
  failed_ = false;
  call_peers(true);
  if (std::exchange(recovering_, false)) {
    rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_RECOVERY_SUCCESS, nullptr);
    base::log_warning("%s: the port works again", name_.c_str());
  }
  return 0;
}

}  // namespace rio::pmd
