#include "pmd/net/ops.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <mutex>

#include "base/log.hpp"

namespace rio::pmd {
namespace {

/// Runs `work(NetPort&)` under the control lock. @return what it returned, or -ENODEV.
template <class Work>
int with_port(rte_eth_dev* dev, Work&& work) {
  const std::lock_guard guard(control_lock());
  NetPort* const port = shared_of(dev).port;
  return port == nullptr ? -ENODEV : work(*port);
}

/// Sets the types of receive-side scaling, and the key if there is one.
int hash_update(rte_eth_dev* dev, const rte_eth_rss_conf& conf) {
  Rss& rss = shared_of(dev).rss_conf;
  const bool has_key = conf.rss_key != nullptr && conf.rss_key_len != 0;
  if (has_key && conf.rss_key_len != Rss::kKeyBytes) {
    base::log_error("%s: an RSS key has %u bytes, not %u", dev->data->name, Rss::kKeyBytes,
                    conf.rss_key_len);
    return -EINVAL;
  }
  if (has_key) {
    rss.set_key(conf.rss_key);
  }
  rss.types = conf.rss_hf & Rss::kTypes;
  return 0;
}

int hash_get(rte_eth_dev* dev, rte_eth_rss_conf* conf) {
  const Rss& rss = shared_of(dev).rss_conf;
  if (conf->rss_key != nullptr && conf->rss_key_len >= Rss::kKeyBytes) {
    std::copy_n(rss.key(), Rss::kKeyBytes, conf->rss_key);
  }
  conf->rss_key_len = Rss::kKeyBytes;
  conf->rss_hf = rss.types;
  return 0;
}

/// Visits the entries of a table in groups, each with a mask of the selected ones.
template <class Each>
int for_each_entry(rte_eth_rss_reta_entry64* groups, uint16_t size, Each&& each) {
  if (size != Rss::kTable) {
    return -EINVAL;
  }
  for (uint32_t i = 0; i < size; ++i) {
    rte_eth_rss_reta_entry64& group = groups[i / RTE_ETH_RETA_GROUP_SIZE];
    const uint32_t at = i % RTE_ETH_RETA_GROUP_SIZE;
    if ((group.mask >> at & 1) != 0) {
      each(i, group.reta[at]);
    }
  }
  return 0;
}

int table_update(rte_eth_dev* dev, rte_eth_rss_reta_entry64* groups, uint16_t size) {
  Rss& rss = shared_of(dev).rss_conf;
  bool right = true;
  const int rc = for_each_entry(
      groups, size, [&](uint32_t, uint16_t queue) { right &= queue < dev->data->nb_rx_queues; });
  if (rc != 0 || !right) {
    return -EINVAL;
  }
  return for_each_entry(groups, size, [&](uint32_t i, uint16_t queue) { rss.table[i] = queue; });
}

int table_query(rte_eth_dev* dev, rte_eth_rss_reta_entry64* groups, uint16_t size) {
  const Rss& rss = shared_of(dev).rss_conf;
  return for_each_entry(groups, size, [&](uint32_t i, uint16_t& queue) { queue = rss.table[i]; });
}

int configure(rte_eth_dev* dev) {
  const rte_eth_conf& conf = dev->data->dev_conf;
  Rss& rss = shared_of(dev).rss_conf;
  if ((conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) == 0) {
    rss.types = 0;
  } else if (const int rc = hash_update(dev, conf.rx_adv_conf.rss_conf); rc != 0) {
    return rc;
  }
  rss.spread(std::max<uint16_t>(dev->data->nb_rx_queues, 1));
  return 0;
}

int start(rte_eth_dev* dev) {
  return with_port(dev, [dev](NetPort& port) {
    const KeptCounts kept(dev);
    const int rc = port.start();
    if (rc == 0) {
      (void)port.update_link();
    }
    return rc;
  });
}

int stop(rte_eth_dev* dev) {
  return with_port(dev, [](NetPort& port) {
    port.stop();
    (void)port.update_link();
    return 0;
  });
}

int close(rte_eth_dev* dev) {
  const std::lock_guard guard(control_lock());
  NetShared& shared = shared_of(dev);
  delete shared.port;
  shared.port = nullptr;
  shared.rx = nullptr;
  return 0;
}

int reset(rte_eth_dev* dev) {
  return with_port(dev, [](NetPort& port) { return port.reset(); });
}

/// On a started port: a thread that polls calls this, so it takes no lock.
int rx_intr_enable(rte_eth_dev* dev, uint16_t) {
  NetPort* const port = shared_of(dev).port;
  return port == nullptr || !port->started() ? -EINVAL : port->wake_on_rx();
}

int rx_queue_setup(rte_eth_dev* dev, uint16_t queue, uint16_t entries, unsigned,
                   const rte_eth_rxconf* conf, rte_mempool* pool) {
  return with_port(dev, [&](NetPort& port) {
    const KeptCounts kept(dev);
    const uint64_t offloads = conf->offloads | dev->data->dev_conf.rxmode.offloads;
    return port.set_up_rx(queue, entries, pool, (offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0,
                          conf->rx_deferred_start != 0);
  });
}

int tx_queue_setup(rte_eth_dev* dev, uint16_t queue, uint16_t entries, unsigned,
                   const rte_eth_txconf* conf) {
  return with_port(dev, [&](NetPort& port) {
    const KeptCounts kept(dev);
    const uint64_t offloads = conf->offloads | dev->data->dev_conf.txmode.offloads;
    return port.set_up_tx(queue, entries, (offloads & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE) != 0,
                          conf->tx_deferred_start != 0);
  });
}

void rx_queue_release(rte_eth_dev* dev, uint16_t queue) {
  (void)with_port(dev, [&](NetPort& port) {
    const KeptCounts kept(dev);
    port.release_rx(queue);
    dev->data->rx_queues[queue] = nullptr;
    return 0;
  });
}

void tx_queue_release(rte_eth_dev* dev, uint16_t queue) {
  (void)with_port(dev, [&](NetPort& port) {
    const KeptCounts kept(dev);
    port.release_tx(queue);
    dev->data->tx_queues[queue] = nullptr;
    return 0;
  });
}

int link_update(rte_eth_dev* dev, int) {
  return with_port(dev, [](NetPort& port) { return port.update_link(); });
}

template <class... Any>
int nothing(Any...) {
  return 0;
}

int address_set(rte_eth_dev* dev, rte_ether_addr* address) {
  return with_port(dev, [address](NetPort& port) {
    const int rc = port.set_address(*address);
    if (rc != 0) {
      base::log_error(
          "%s: not an address of this process's ports: set the port's own, or another port's",
          port.name().c_str());
    }
    return rc;
  });
}

/// ethdev asks only for the address that the port already has, since it has room for one.
int address_add(rte_eth_dev* dev, rte_ether_addr* address, uint32_t, uint32_t) {
  return address_set(dev, address);
}

template <bool kUp>
int set_link(rte_eth_dev* dev) {
  return with_port(dev, [](NetPort& port) { return port.set_link(kUp); });
}

int mtu_set(rte_eth_dev* dev, uint16_t mtu) {
  return with_port(dev, [mtu](NetPort& port) { return port.set_mtu(mtu); });
}

int version_get(rte_eth_dev* dev, char* text, size_t size) {
  return with_port(dev, [&](NetPort& port) {
    if (port.card().card() == nullptr) {
      return -ENODEV;
    }
    const uint32_t version = port.card().bus().bar().read32(regs::id::hw_version());
    const int length = std::snprintf(text, size, "card 0x%08x", version);
    return static_cast<size_t>(length) < size ? 0 : length + 1;
  });
}

}  // namespace

const eth_dev_ops* net_ops() {
  static const eth_dev_ops kOps = [] {
    eth_dev_ops ops{};
    ops.dev_configure = configure;
    ops.dev_start = start;
    ops.dev_stop = stop;
    ops.dev_close = close;
    ops.dev_reset = reset;
    ops.dev_infos_get = net_infos_get;
    ops.rx_queue_setup = rx_queue_setup;
    ops.tx_queue_setup = tx_queue_setup;
    ops.rx_queue_release = rx_queue_release;
    ops.tx_queue_release = tx_queue_release;
    ops.rx_queue_intr_enable = rx_intr_enable;
    ops.rx_queue_intr_disable = nothing;  // an interrupt too many does no harm
    ops.link_update = link_update;
    // Every frame that reaches the card is for the port, also those of groups: nothing to switch.
    ops.promiscuous_enable = nothing;
    ops.promiscuous_disable = nothing;
    ops.allmulticast_enable = nothing;
    ops.allmulticast_disable = nothing;
    ops.set_mc_addr_list = nothing;
    ops.mtu_set = mtu_set;
    ops.mac_addr_set = address_set;
    ops.mac_addr_add = address_add;
    ops.mac_addr_remove = [](rte_eth_dev*, uint32_t) {};
    ops.dev_set_link_up = set_link<true>;
    ops.dev_set_link_down = set_link<false>;
    ops.fw_version_get = version_get;
    add_queue_ops(&ops);
    ops.rss_hash_update = [](rte_eth_dev* dev, rte_eth_rss_conf* conf) {
      return hash_update(dev, *conf);
    };
    ops.rss_hash_conf_get = hash_get;
    ops.reta_update = table_update;
    ops.reta_query = table_query;
    add_stats_ops(&ops);
    return ops;
  }();
  return &kOps;
}

const eth_dev_ops* net_secondary_ops() {
  static const eth_dev_ops kOps = [] {
    eth_dev_ops ops{};
    ops.dev_close = nothing;  // the primary keeps the port
    ops.dev_infos_get = net_infos_get;
    ops.link_update = nothing;
    add_queue_ops(&ops);
    add_stats_ops(&ops);
    return ops;
  }();
  return &kOps;
}

}  // namespace rio::pmd
