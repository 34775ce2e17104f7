/// @file
/// The functions of ethdev.
#pragma once

#include "pmd/net/port.hpp"

namespace rio::pmd {

/// Of the primary process.
[[nodiscard]] const eth_dev_ops* net_ops();
/// Of secondary processes: what needs no card.
[[nodiscard]] const eth_dev_ops* net_secondary_ops();

[[nodiscard]] inline NetShared& shared_of(const rte_eth_dev* dev) {
  return *static_cast<NetShared*>(dev->data->dev_private);
}
[[nodiscard]] inline const NetTx* tx_of(const rte_eth_dev* dev, uint16_t queue) {
  return static_cast<const NetTx*>(dev->data->tx_queues[queue]);
}
[[nodiscard]] inline const NetRxQueue* rx_of(const rte_eth_dev* dev, uint16_t queue) {
  return static_cast<const NetRxQueue*>(dev->data->rx_queues[queue]);
}

/// The bursts, and what else is called as they are. @param polls whether this process may poll.
void set_bursts(rte_eth_dev* dev, bool polls);
/// Functions that only look at queues, and those of receive-side scaling.
void add_queue_ops(eth_dev_ops* ops);
void add_rss_ops(eth_dev_ops* ops);
/// Counts.
void add_stats_ops(eth_dev_ops* ops);
/// What is the same in every process.
int net_infos_get(rte_eth_dev* dev, rte_eth_dev_info* info);

}  // namespace rio::pmd
