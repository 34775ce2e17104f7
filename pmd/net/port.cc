#include "pmd/net/port.hpp"

#include <rte_alarm.h>
#include <rte_malloc.h>
#include <rte_random.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/log.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kLooksBetweenWakings = 100;  // by the watch, of sleeping peers

/// Log2 of the number of entries, rounded up.
[[nodiscard]] uint8_t log2_of(uint32_t entries) {
  return static_cast<uint8_t>(std::countr_zero(std::bit_ceil(entries)));
}

/// All ports of this process, under control_lock(). Never destroyed, since EAL closes ports after
/// static objects are gone.
std::vector<NetPort*>& all_ports() {
  static auto* ports = new std::vector<NetPort*>;
  return *ports;
}

}  // namespace

NetPort::NetPort(std::string name, std::shared_ptr<EalCard> card, const NetPortArgs& args,
                 rte_eth_dev* dev)
    : CardUser(std::move(name), std::move(card)),
      args_(args),
      dev_(dev),
      shared_(new (dev->data->dev_private) NetShared{}),
      epoch_(static_cast<uint16_t>(rte_rand())) {
  all_ports().push_back(this);
}

NetPort::~NetPort() {
  std::erase(all_ports(), this);
  stop();
  dev_->intr_handle = nullptr;
}

int NetPort::create(const std::string& name, std::shared_ptr<EalCard> card, const NetPortArgs& args,
                    rte_eth_dev* dev) {
  std::unique_ptr<NetPort> port(new NetPort(name, std::move(card), args, dev));
  if (const int rc = port->card_->claim_one(args.qp, *port, &port->qp_); rc != 0) {
    return rc;
  }
  if (port->dest_id() >= kNetDestIds) {
    base::log_error("%s: destID %u has no Ethernet address: 0 to %u have", name.c_str(),
                    port->dest_id(), kNetDestIds - 1);
    return -EINVAL;
  }
  port->peers_ = make_shared_object<Peers>(port->card_->bus());
  if (port->peers_ == nullptr) {
    base::log_error("%s: no memory for the table of peers: give EAL more", name.c_str());
    return -ENOMEM;
  }
  dev->data->mac_addrs =
      static_cast<rte_ether_addr*>(rte_zmalloc(name.c_str(), sizeof(rte_ether_addr), 0));
  if (dev->data->mac_addrs == nullptr) {
    base::log_error("%s: no memory for its address: give EAL more", name.c_str());
    return -ENOMEM;
  }
  *dev->data->mac_addrs = address_of(port->dest_id());
  dev->data->dev_flags |=
      RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS | RTE_ETH_DEV_INTR_LSC | RTE_ETH_DEV_INTR_RMV;
  const Caps& caps = port->card_->card()->caps();
  NetShared& shared = *port->shared_;
  shared.peers = port->peers_.get();
  shared.others_poll = port->card_->bus().poll_hook(port->qp_).fn == nullptr;
  shared.ring_log2_min = static_cast<uint16_t>(caps.ring_log2_min);
  shared.ring_log2_max = static_cast<uint16_t>(std::min(caps.ring_log2_max, 15u));
  shared.tx_queues_max =
      static_cast<uint16_t>(std::min({port->card_->queue_pairs() - port->qp_,
                                      uint32_t{kTxQueuesMax}, kNetDestIds - port->dest_id()}));
  shared.port = port.release();
  return 0;
}

uint32_t NetPort::dest_id() {
  return card_->dest_id(qp_);
}

/// Checks that mbufs hold a frame of the MTU.
int NetPort::check_room(uint32_t room_bytes, bool scatter, uint16_t mtu) const {
  if (scatter || room_bytes >= mtu + uint32_t{RTE_ETHER_HDR_LEN}) {
    return 0;
  }
  base::log_error(
      "%s: mbufs of %u bytes are too small for an MTU of %u: use larger ones, or the offload "
      "'scatter'",
      name_.c_str(), room_bytes, mtu);
  return -EINVAL;
}

int NetPort::set_up_rx(uint16_t queue, uint16_t entries, rte_mempool* pool, bool scatter,
                       bool deferred) {
  const uint32_t room_bytes = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
  if (const int rc = check_room(room_bytes, scatter, dev_->data->mtu); rc != 0) {
    return rc;
  }
  release_rx(queue);
  if (queue == 0) {  // the port's receive counts start from 0 again
    forget_rx();
  }
  rx_queues_[queue] = make_shared_object<NetRxQueue>(card_->bus());
  if (rx_queues_[queue] == nullptr) {
    return -ENOMEM;
  }
  NetRxQueue& made = *rx_queues_[queue];
  made.number = queue;
  made.pool = pool;
  made.scatter = scatter;
  made.deferred = deferred;
  made.room_bytes = room_bytes;
  made.entries = entries;
  made.rearm = uint64_t{RTE_PKTMBUF_HEADROOM} | uint64_t{1} << 16 | uint64_t{1} << 32 |
               uint64_t{dev_->data->port_id} << 48;
  dev_->data->rx_queues[queue] = &made;
  return 0;
}

/// Frees the receiver. No queue points to it any more.
void NetPort::forget_rx() {
  shared_->rx = nullptr;
  for (const auto& queue : rx_queues_) {
    if (queue != nullptr) {
      queue->rx = nullptr;
    }
  }
  rx_.reset();
}

/// Makes the ring through which other queues hand frames over. Made late: queues stay when a port
/// is configured anew, with more queues or fewer.
int NetPort::make_ring(NetRxQueue& queue) {
  if (queue.ring != nullptr || dev_->data->nb_rx_queues == 1) {
    return 0;
  }
  char ring[RTE_RING_NAMESIZE];
  std::snprintf(ring, sizeof(ring), "net_rio_%u_rx%u", dev_->data->port_id, queue.number);
  queue.ring = rte_ring_create(ring, std::max(1024u, std::bit_ceil(queue.entries)), SOCKET_ID_ANY,
                               RING_F_SC_DEQ | RING_F_SP_ENQ | RING_F_EXACT_SZ);
  if (queue.ring == nullptr) {
    base::log_error("%s: no memory for the ring of receive queue %u: give EAL more", name_.c_str(),
                    queue.number);
    return -ENOMEM;
  }
  return 0;
}

int NetPort::set_up_tx(uint16_t queue, uint16_t entries, bool fast_free, bool deferred) {
  int rc = card_->require_card(name_);
  rc = rc != 0 ? rc : card_->claim(qp_ + queue, *this);
  if (rc != 0) {
    return rc;
  }
  const NetTxConfig config = {.ring_log2 = log2_of(entries),
                              .mbox = args_.mbox,
                              .fast_free = fast_free,
                              .deferred = deferred};
  rc = NetTx::create(card_->bus(), card_->card()->caps(), *peers_, config, &tx_[queue]);
  if (rc != 0) {
    base::log_error("%s: no memory for transmit queue %u: use fewer descriptors, or give EAL more",
                    name_.c_str(), queue);
    return rc;
  }
  dev_->data->tx_queues[queue] = tx_[queue].get();
  return 0;
}

void NetPort::release_tx(uint16_t queue) {
  tx_[queue].reset();
  if (queue != 0) {
    card_->release(qp_ + queue, *this);
  }
}

int NetPort::open_pair(uint16_t queue) {
  QueuePairConfig config;
  config.tx_log2 = tx_[queue]->config().ring_log2;
  config.push = card_->args().queues.push;
  config.rings = ring_bit(regs::Ring::kTx);
  if (queue == 0) {
    config.shared_log2 = log2_of(rx_queues_[0]->entries);
    config.doorbell_log2 = card_->args().queues.doorbell_log2;
    config.rings |= ring_bit(regs::Ring::kShared) | ring_bit(regs::Ring::kDoorbell);
    if (const int rc = irq_.prepare(card_->bus(), card_->card()->caps(), qp_, *dev_, &config);
        rc != 0) {
      return rc;
    }
  }
  return card_->card()->open_queue_pair(qp_ + queue, config, &pairs_[queue]);
}

int NetPort::open_rx() {
  const NetRxConfig config = {.ring_log2 = log2_of(rx_queues_[0]->entries),
                              .mbox = args_.mbox,
                              .priv_bytes = rte_pktmbuf_priv_size(rx_queues_[0]->pool),
                              .storm_frames_per_s = args_.storm_frames_per_s,
                              .handed_bytes_min = args_.handover ? kHandedBytesMin : UINT32_MAX - 1,
                              .works_alone = shared_->others_poll};
  if (rx_ == nullptr || rx_->config() != config) {
    forget_rx();
    const int rc = NetRx::create(card_->bus(), card_->card()->caps(), *peers_, config, &rx_);
    if (rc != 0) {
      base::log_error(
          "%s: no memory for the receiver: use fewer receive descriptors, or give EAL more",
          name_.c_str());
      return rc;
    }
    shared_->rx = rx_.get();
  }
  std::array<NetRxQueue*, kRxQueuesMax> queues{};
  for (uint16_t i = 0; i < dev_->data->nb_rx_queues; ++i) {
    queues[i] = rx_queues_[i].get();
    queues[i]->rx = rx_.get();
  }
  return rx_->start(pairs_[0]->shared(), pairs_[0]->doorbells(), frame_bytes_max(), queues.data(),
                    dev_->data->nb_rx_queues, shared_->rss_conf, *tx_[0]);
}

/// Opens the rings, and starts the receiver and the transmit queues on them; all or none.
int NetPort::open() {
  const int rc = open_all();
  closed_ = rc != 0;
  if (closed_) {
    close();
  }
  return rc;
}

int NetPort::open_all() {
  const uint16_t count = dev_->data->nb_tx_queues;
  ++epoch_;
  peers_->own.store(dest_id(), std::memory_order_relaxed);
  introduce_all();
  if (set_address(*dev_->data->mac_addrs) != 0) {
    *dev_->data->mac_addrs = address_of(dest_id());  // the card may have another destID now
  }
  for (uint16_t i = 0; i < count; ++i) {
    if (const int rc = open_pair(i); rc != 0) {
      return rc;
    }
    tx_[i]->start(pairs_[i]->tx(), epoch_, frame_bytes_max(), i == 0, count - 1u);
  }
  const int rc = open_rx();
  for (uint16_t i = 0; i < count && rc == 0; ++i) {
    tx_[i]->listen_to(*rx_);
  }
  irq_.wake();  // a thread that has slept since before a reset has to arm anew
  return rc;
}

int NetPort::check_queues() {
  const rte_eth_dev_data& data = *dev_->data;
  const auto none = [](const auto& queue) { return queue == nullptr; };
  if (data.nb_rx_queues == 0 || data.nb_tx_queues == 0 ||
      std::any_of(rx_queues_.begin(), rx_queues_.begin() + data.nb_rx_queues, none) ||
      std::any_of(tx_.begin(), tx_.begin() + data.nb_tx_queues, none)) {
    base::log_error(
        "%s: set up all queues, %u for receiving and %u for sending, at least one of each",
        name_.c_str(), data.nb_rx_queues, data.nb_tx_queues);
    return -EINVAL;
  }
  for (uint16_t i = 0; i < data.nb_rx_queues; ++i) {
    NetRxQueue& queue = *rx_queues_[i];  // may have been set up earlier, with another MTU
    int rc = check_room(queue.room_bytes, queue.scatter, data.mtu);
    rc = rc != 0 ? rc : make_ring(queue);
    if (rc != 0) {
      return rc;
    }
  }
  return 0;
}

int NetPort::start() {
  int rc = card_->require_card(name_);
  rc = rc != 0 ? rc : check_queues();
  rc = rc != 0 ? rc : open();
  if (rc != 0) {
    return rc;
  }
  for (uint16_t i = 0; i < dev_->data->nb_rx_queues; ++i) {
    rx_queues_[i]->stopped = rx_queues_[i]->deferred;
    dev_->data->rx_queue_state[i] = state_of(!rx_queues_[i]->deferred);
  }
  for (uint16_t i = 0; i < dev_->data->nb_tx_queues; ++i) {
    tx_[i]->set_paused(tx_[i]->config().deferred);
    dev_->data->tx_queue_state[i] = state_of(!tx_[i]->config().deferred);
  }
  started_ = true;
  link_down_ = false;
  recovering_ = false;
  failed_ = false;
  call_peers(true);
  watch();
  return 0;
}

/// Calls peers that were invited, or were there and did not say that they leave: the absent ones,
/// and sleeping ones rarely. @param opened the port was just opened: call all, since programs send
/// from their first burst on, and since peers have not noticed a reset.
void NetPort::call_peers(bool opened) {
  const uint32_t own = dest_id();
  const bool wake = looks_ % kLooksBetweenWakings == 0;
  const auto call = [&](uint32_t id) {
    if (id != own && opened) {
      peers_->reachable.add(id);
    }
    if (id != own && (opened || (!peers_->joined.has(id) && (wake || !peers_->asleep.has(id))))) {
      peers_->owe_greeting(id);
    }
    return true;
  };
  for (const uint32_t id : args_.invited) {
    (void)call(id);
  }
  peers_->known.for_each(call);
  if (opened) {
    tx_[0]->tell();  // during a reset the watch does it soon after
  }
}

void NetPort::close() {
  bool settled = true;
  for (const auto& pair : pairs_) {
    const int rc = pair == nullptr ? 0 : pair->stop();  // the log gives the cause
    settled &= rc == 0 || rc == -ENODEV;
  }
  for (uint16_t i = 0; i < kTxQueuesMax; ++i) {
    if (tx_[i] != nullptr) {
      tx_[i]->stop(settled);
    }
  }
  if (rx_ != nullptr) {
    rx_->stop(settled);
  }
  pairs_ = {};
  peers_->forget();
}

void NetPort::stop() {
  if (!started_) {
    return;
  }
  started_ = false;
  rte_eal_alarm_cancel(&NetPort::on_alarm, this);
  // ethdev keeps out threads of this process, but no others.
  const bool away = !held_ && take_away();
  if (!std::exchange(closed_, false)) {
    tx_[0]->leave();
    close();
  }
  peers_->known.clear();
  if (away) {
    give_back();
  }
  for (const auto& queue : rx_queues_) {
    if (queue != nullptr) {
      queue->drain();
    }
  }
  std::fill_n(dev_->data->rx_queue_state, dev_->data->nb_rx_queues, state_of(false));
  std::fill_n(dev_->data->tx_queue_state, dev_->data->nb_tx_queues, state_of(false));
}

int NetPort::reset() {
  const std::string other = card_->other_owner(*this);
  if (other.empty() || card_->card() == nullptr || card_->is_gone()) {
    return card_->reset();
  }
  base::log_warning(
      "%s: reset alone: card %s keeps running, since %s; to reset the card with all its devices, "
      "ask telemetry for /net_rio/reset,%u",
      name_.c_str(), card_->name().c_str(), other.c_str(), dev_->data->port_id);
  return 0;
}

int NetPort::wake_on_rx() {
  if (!irq_.is_on()) {
    return -ENOTSUP;
  }
  const bool mine = rx_->turn().take_soon();
  const bool look_again = !mine || rx_->has_more();
  // A closed port wakes the thread when it is opened again.
  const int rc = look_again || closed_ ? 0 : irq_.arm(*pairs_[0], name_);
  if (mine) {
    rx_->turn().give();
  }
  if (look_again) {
    irq_.wake();
  }
  return rc;
}

int NetPort::set_mtu(uint16_t mtu) {
  for (const auto& queue : rx_queues_) {
    const int rc = queue == nullptr ? 0 : check_room(queue->room_bytes, queue->scatter, mtu);
    if (rc != 0) {
      return rc;
    }
  }
  if (started_ && rx_ != nullptr) {
    rx_->set_frame_bytes_max(mtu + kFrameBytesOverMtu);
    for (const auto& one : tx_) {
      if (one != nullptr) {
        one->set_frame_bytes_max(mtu + kFrameBytesOverMtu);
      }
    }
  }
  return 0;
}

/// Announces all ports of this process as each other's mates, to peers that have joined and to
/// those that join later.
void NetPort::introduce_all() {
  for (NetPort* const port : all_ports()) {
    const uint32_t own = port->peers_ != nullptr ? port->dest_id() : kNoNetDestId;
    if (own >= kNetDestIds) {
      continue;
    }
    port->peers_->mates.add(own, own);
    for (NetPort* const mate : all_ports()) {
      if (const uint32_t id = mate->dest_id(); id < kNetDestIds) {
        port->peers_->mates.add(own, id);
      }
    }
    port->peers_->joined.for_each([port](uint32_t dest_id) {
      port->peers_->owe(port->peers_->owed_mates, dest_id);
      return true;
    });
  }
}

int NetPort::set_address(const rte_ether_addr& address) {
  uint8_t bytes[sizeof(Mac)] = {};
  std::copy_n(address.addr_bytes, RTE_ETHER_ADDR_LEN, bytes);
  const uint32_t wanted = dest_id_of(load_mac(bytes));
  const bool is_ours =
      wanted != kNoNetDestId && std::ranges::any_of(all_ports(), [wanted](NetPort* port) {
        return port->dest_id() == wanted;
      });
  return is_ours ? 0 : -ENOTSUP;
}

int NetPort::set_link(bool up) {
  if (!started_ || link_down_ == !up) {
    return 0;
  }
  int rc = card_->require_card(name_);
  rc = rc != 0 ? rc : hold();
  if (rc != 0) {
    return rc;
  }
  rc = up ? open() : 0;
  if (!up && !std::exchange(closed_, true)) {
    tx_[0]->leave();
    close();
  }
  link_down_ = !up;
  let_go();
  if (up && rc == 0) {
    call_peers(true);
  }
  (void)update_link();
  return rc;
}

}  // namespace rio::pmd
