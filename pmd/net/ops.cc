#include "pmd/net/ops.hpp"

#include <algorithm>
#include <cerrno>
#include <mutex>

#include "pmd/bus/log.hpp"

namespace rio::pmd {
namespace {

/// Runs `work(NetPort&)` under the control lock. @return what it returned, or -ENODEV.
template <class Work>
int with_port(rte_eth_dev* dev, Work&& work) {
  const std::lock_guard guard(control_lock());
  NetPort* const port = port_of(dev);
  return port == nullptr ? -ENODEV : work(*port);
}

uint16_t rx_burst(void* queue, rte_mbuf** frames, uint16_t n) {
  return static_cast<NetRx*>(queue)->burst(frames, n);
}

uint16_t tx_burst(void* queue, rte_mbuf** frames, uint16_t n) {
  return static_cast<NetTx*>(queue)->burst(frames, n);
}

int configure(rte_eth_dev*) {
  return 0;
}

int start(rte_eth_dev* dev) {
  return with_port(dev, [dev](NetPort& port) {
    const int rc = port.start();
    if (rc == 0) {
      dev->rx_pkt_burst = rx_burst;
      dev->tx_pkt_burst = tx_burst;
      const rte_eth_link link = port.link();
      rte_eth_linkstatus_set(dev, &link);
    }
    return rc;
  });
}

int stop(rte_eth_dev* dev) {
  return with_port(dev, [dev](NetPort& port) {
    port.stop();
    const rte_eth_link link = port.link();
    rte_eth_linkstatus_set(dev, &link);
    return 0;
  });
}

int close(rte_eth_dev* dev) {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    return 0;
  }
  const std::lock_guard guard(control_lock());
  delete port_of(dev);
  port_of(dev) = nullptr;
  return 0;
}

int infos_get(rte_eth_dev* dev, rte_eth_dev_info* info) {
  return with_port(dev, [&](NetPort& port) {
    if (port.card().card() == nullptr) {
      return -ENODEV;
    }
    const Caps& caps = port.card().card()->caps();
    info->max_mac_addrs = 1;
    info->min_rx_bufsize = 64;
    info->max_rx_pktlen = kFrameBytesMax;
    info->min_mtu = RTE_ETHER_MIN_MTU;
    info->max_mtu = kFrameBytesMax - RTE_ETHER_HDR_LEN;
    info->max_rx_queues = 1;
    info->max_tx_queues = 1;
    info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
    info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    info->rx_desc_lim.nb_max = static_cast<uint16_t>(1u << std::min(caps.ring_log2_max, 15u));
    info->rx_desc_lim.nb_min = 1;
    info->rx_desc_lim.nb_align = 1;
    info->tx_desc_lim = info->rx_desc_lim;
    info->default_rxportconf = {.burst_size = 32, .ring_size = 512, .nb_queues = 1};
    info->default_txportconf = info->default_rxportconf;
    return 0;
  });
}

int rx_queue_setup(rte_eth_dev* dev, uint16_t queue, uint16_t, unsigned, const rte_eth_rxconf* conf,
                   rte_mempool* pool) {
  return with_port(dev, [&](NetPort& port) {
    const uint64_t offloads = conf->offloads | dev->data->dev_conf.rxmode.offloads;
    const bool scatter = (offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
    const uint32_t room = rte_pktmbuf_data_room_size(pool) - RTE_PKTMBUF_HEADROOM;
    if (!scatter && room < uint32_t{dev->data->mtu} + RTE_ETHER_HDR_LEN) {
      log_error(
          "%s: mbufs of %u bytes are too small for an MTU of %u: larger ones, or the offload "
          "'scatter'",
          port.name().c_str(), room, dev->data->mtu);
      return -EINVAL;
    }
    NetRx* made = nullptr;
    const int rc =
        port.set_up_rx({.port = dev->data->port_id, .pool = pool, .scatter = scatter}, &made);
    dev->data->rx_queues[queue] = made;
    return rc;
  });
}

int tx_queue_setup(rte_eth_dev* dev, uint16_t queue, uint16_t, unsigned, const rte_eth_txconf*) {
  return with_port(dev, [&](NetPort& port) {
    NetTx* made = nullptr;
    const int rc = port.set_up_tx(&made);
    dev->data->tx_queues[queue] = made;
    return rc;
  });
}

void rx_queue_release(rte_eth_dev* dev, uint16_t queue) {
  (void)with_port(dev, [&](NetPort& port) {
    port.release_rx();
    dev->data->rx_queues[queue] = nullptr;
    return 0;
  });
}

void tx_queue_release(rte_eth_dev* dev, uint16_t queue) {
  (void)with_port(dev, [&](NetPort& port) {
    port.release_tx();
    dev->data->tx_queues[queue] = nullptr;
    return 0;
  });
}

int link_update(rte_eth_dev* dev, int) {
  return with_port(dev, [dev](NetPort& port) {
    const rte_eth_link link = port.link();
    return rte_eth_linkstatus_set(dev, &link);
  });
}

/// Whatever reaches the card is for it: there is nothing to switch.
int always(rte_eth_dev*) {
  return 0;
}

int mtu_set(rte_eth_dev*, uint16_t) {
  return 0;  // ethdev has checked it
}

constexpr eth_dev_ops make_ops() {
  eth_dev_ops ops{};
  ops.dev_configure = configure;
  ops.dev_start = start;
  ops.dev_stop = stop;
  ops.dev_close = close;
  ops.dev_infos_get = infos_get;
  ops.rx_queue_setup = rx_queue_setup;
  ops.tx_queue_setup = tx_queue_setup;
  ops.rx_queue_release = rx_queue_release;
  ops.tx_queue_release = tx_queue_release;
  ops.link_update = link_update;
  ops.promiscuous_enable = always;
  ops.promiscuous_disable = always;
  ops.allmulticast_enable = always;
  ops.allmulticast_disable = always;
  ops.mtu_set = mtu_set;
  ops.stats_get = net_stats_get;
  ops.stats_reset = net_stats_reset;
  ops.xstats_get = net_xstats_get;
  ops.xstats_get_names = net_xstats_names;
  ops.xstats_reset = net_stats_reset;
  return ops;
}

}  // namespace

constinit const eth_dev_ops kNetOps = make_ops();

}  // namespace rio::pmd
