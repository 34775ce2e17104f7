#include "pmd/net/port.hpp"

#include <cerrno>
#include <chrono>
#include <utility>

#include "pmd/bus/log.hpp"

namespace rio::pmd {

NetPort::NetPort(std::string name, std::shared_ptr<EalCard> card, std::vector<uint32_t> invited)
    : name_(std::move(name)),
      card_(std::move(card)),
      invited_(std::move(invited)),
      peers_(std::make_unique<Peers>()) {
  card_->enter(*this);
}

NetPort::~NetPort() {
  stop();
  card_->leave(*this);
}

int NetPort::create(const std::string& name, std::shared_ptr<EalCard> card, int qp,
                    std::vector<uint32_t> invited, std::unique_ptr<NetPort>* out) {
  std::unique_ptr<NetPort> port(new NetPort(name, std::move(card), std::move(invited)));
  if (const int rc = port->card_->claim_one(qp, *port, &port->qp_); rc != 0) {
    return rc;
  }
  if (port->dest_id() >= kNetDestIds) {
    log_error("%s: destID %u has no Ethernet address: 0 to %u have", name.c_str(), port->dest_id(),
              kNetDestIds - 1);
    return -EINVAL;
  }
  *out = std::move(port);
  return 0;
}

uint32_t NetPort::dest_id() {
  return card_->dest_id(qp_);
}

int NetPort::set_up_rx(const NetRxConfig& config, NetRx** out) {
  zero.clear();  // a new queue counts from 0
  const int rc = NetRx::create(
      card_->bus(), config, *peers_, [this](uint32_t dest_id) { tx_->join(dest_id); }, &rx_);
  *out = rx_.get();
  return rc;
}

int NetPort::set_up_tx(NetTx** out) {
  zero.clear();
  if (card_->card() == nullptr) {
    return -ENODEV;
  }
  const int rc = NetTx::create(card_->bus(), card_->card()->caps(), *peers_, &tx_);
  *out = tx_.get();
  return rc;
}

int NetPort::start() {
  if (card_->card() == nullptr || rx_ == nullptr || tx_ == nullptr) {
    log_error("%s: %s", name_.c_str(),
              card_->card() == nullptr ? "the last reset of the card failed: reset it again"
                                       : "set up one receive and one transmit queue");
    return card_->card() == nullptr ? -ENODEV : -EINVAL;
  }
  QueuePairConfig config;
  config.tx_log2 = card_->args().tx_log2;
  config.shared_log2 = card_->args().shared_log2;
  config.doorbell_log2 = card_->args().doorbell_log2;
  config.rings =
      ring_bit(regs::Ring::kTx) | ring_bit(regs::Ring::kShared) | ring_bit(regs::Ring::kDoorbell);
  if (const int rc = card_->card()->open_queue_pair(qp_, config, &pair_); rc != 0) {
    return rc;
  }
  tx_->start(*pair_);
  const int rc = rx_->start(*pair_);
  if (rc != 0) {
    stop();
    return rc;
  }
  for (const uint32_t dest_id : invited_) {
    if (dest_id != this->dest_id()) {
      peers_->reachable.add(dest_id);
      tx_->join(dest_id);
    }
  }
  return 0;
}

void NetPort::stop() {
  if (pair_ == nullptr) {
    return;
  }
  tx_->leave();
  (void)pair_->stop();  // the log says why not
  tx_->stop();
  rx_->stop();
  pair_.reset();
  peers_->joined.clear();
  peers_->reachable.clear();
}

rte_eth_link NetPort::link() {
  rte_eth_link link{};
  link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
  link.link_autoneg = RTE_ETH_LINK_AUTONEG;
  if (card_->card() == nullptr) {
    return link;
  }
  card_->let_work();
  const LinkState state = card_->card()->link();
  link.link_status = state.up && pair_ != nullptr ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
  link.link_speed = state.lanes * state.lane_mbaud;
  return link;
}

}  // namespace rio::pmd
