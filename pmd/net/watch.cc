// Events of a port while others poll it: its link, its peers, and resets of its card. In EAL's
// interrupt thread.
#include <rte_alarm.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "pmd/net/port.hpp"

namespace rio::pmd {
namespace {

constexpr uint64_t kPeriodUs = 100'000;
constexpr uint32_t kLooksBetweenCalls = 10;
constexpr uint32_t kLooksBetweenWakings = 100;
constexpr uint32_t kStuckLooks = 10;  // as long as nothing else takes that ends
constexpr uint32_t kInsideTimeoutMs = 2000;
constexpr uint32_t kStopTimeoutMs = 2000;

}  // namespace

void NetPort::watch() {
  if (rte_eal_alarm_set(kPeriodUs, &NetPort::on_alarm, this) != 0) {
    base::log_warning(
        "%s: EAL gives no alarm: changes of the link, peers that come back and resets of the card "
        "go unnoticed",
        name_.c_str());
  }
}

void NetPort::stop_watching() {
  rte_eal_alarm_cancel(&NetPort::on_alarm, this);
}

/// The holder of the lock may be waiting for us to end: then not now.
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
      base::log_warning("%s: the card was reset, or stopped a ring: the port is opened again",
                        name_.c_str());
    }
    // A card that does not come back is not asked all the time: each try may take a while.
    const bool now = first || ++looks_ % kLooksBetweenCalls == 0;
    if (now && card_->reset() != 0 && !std::exchange(failed_, true)) {
      base::log_error(
          "%s: the card does not come back: it is tried again until the port is stopped",
          name_.c_str());
      rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_RECOVERY_FAILED, nullptr);
    }
  }
  if (!closed_) {
    if (++looks_ % kLooksBetweenCalls == 0) {
      call_absent();
    }
    rx_->listen();
    tx_[0]->tell_if_idle();
    for (uint16_t i = 0; i < dev_->data->nb_tx_queues; ++i) {
      if (tx_[i]->is_stuck(kStuckLooks)) {
        give_up(*tx_[i]);
      }
    }
  }
  (void)update_link();
}

/// A card without buffers answers RETRY, and other peers wait meanwhile.
void NetPort::give_up(NetTx& queue) {
  if (!queue.take_away(kInsideTimeoutMs)) {
    return;
  }
  // A ring that does not work any more is found at the next look.
  if (queue.give_up(kStopTimeoutMs) == 0) {
    base::log_warning(
        "%s: a peer took nothing for %u ms: what was under way was dropped; poll its port, or have "
        "the card give up sooner with retry_limit=",
        name_.c_str(), static_cast<uint32_t>(kStuckLooks * kPeriodUs / 1000));
  }
  queue.give_back();
}

/// Those that are to be there, and those that were, and did not say that they leave.
void NetPort::call_absent() {
  const uint32_t own = dest_id();
  const bool wake = looks_ % kLooksBetweenWakings == 0;
  const auto call = [this, own, wake](uint32_t id) {
    if (id != own && !peers_->joined.has(id) && (wake || !peers_->asleep.has(id))) {
      peers_->owe_greeting(id);
    }
    return true;
  };
  for (const uint32_t id : args_.invited) {
    (void)call(id);
  }
  peers_->known.for_each(call);
}

/// Whether a ring does not work any more.
bool NetPort::is_dead() {
  if (closed_ || card_->card() == nullptr) {
    return true;
  }
  for (const auto& pair : pairs_) {
    if (pair == nullptr) {
      continue;
    }
    regs::RingError error{};
    uint32_t entry = 0;
    constexpr auto kRunning = static_cast<int>(regs::RingState::kRunning);
    if (pair->tx().ring_state(&error, &entry) != kRunning ||
        (pair == pairs_[0] && pair->shared().ring_state(&error, &entry) != kRunning)) {
      return true;
    }
  }
  return false;
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

/// All of them or none.
bool NetPort::take_away() {
  if (!rx_->take_away(kInsideTimeoutMs)) {
    return false;
  }
  for (uint16_t i = 0; i < dev_->data->nb_tx_queues; ++i) {
    if (!tx_[i]->take_away(kInsideTimeoutMs)) {
      while (i != 0) {
        tx_[--i]->give_back();
      }
      rx_->give_back();
      return false;
    }
  }
  return true;
}

int NetPort::hold() {
  if (!started_ || held_) {
    return 0;
  }
  if (!take_away()) {
    base::log_error("%s: a thread has been in a burst for %u ms: end it, and try again",
                    name_.c_str(), kInsideTimeoutMs);
    return -EBUSY;
  }
  held_ = true;
  return 0;
}

/// A port that could not be opened again keeps its queues shut: bursts do nothing.
void NetPort::let_go() {
  if (!std::exchange(held_, false)) {
    return;
  }
  give_back();
}

void NetPort::give_back() {
  rx_->give_back();
  for (uint16_t i = 0; i < dev_->data->nb_tx_queues; ++i) {
    tx_[i]->give_back();
  }
}

void NetPort::before_reset() {
  if (!started_ || closed_) {
    return;
  }
  recovering_ = true;
  rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_ERR_RECOVERING, nullptr);
  if (!started_) {
    return;  // who was told has stopped it
  }
  close();
  closed_ = true;
}

int NetPort::after_reset() {
  if (!closed_ || link_down_) {
    return 0;
  }
  if (const int rc = open(); rc != 0) {
    close();
    return rc;
  }
  closed_ = false;
  failed_ = false;
  invite();
  if (std::exchange(recovering_, false)) {
    rte_eth_dev_callback_process(dev_, RTE_ETH_EVENT_RECOVERY_SUCCESS, nullptr);
    base::log_warning("%s: the port works again", name_.c_str());
  }
  return 0;
}

}  // namespace rio::pmd
