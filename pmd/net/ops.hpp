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
/// Of a queue: frames and bytes in, frames dropped, frames and bytes out.
using QueueCounts = std::array<uint64_t, NetShared::kQueueCounts>;

/// While it lives queues come and go, and their counts with them; what is told of the port goes on
/// where it was. Control path.
class KeptCounts {
 public:
  explicit KeptCounts(rte_eth_dev* dev);
  ~KeptCounts();
  KeptCounts(const KeptCounts&) = delete;
  KeptCounts& operator=(const KeptCounts&) = delete;

 private:
  rte_eth_dev& dev_;
  std::array<uint64_t, NetShared::kCountsMax> told_{};
  std::array<QueueCounts, RTE_ETHDEV_QUEUE_STAT_CNTRS> told_of_queue_{};
};

/// Counts.
void add_stats_ops(eth_dev_ops* ops);
/// Facts that are the same in every process.
int net_infos_get(rte_eth_dev* dev, rte_eth_dev_info* info);

}  // namespace rio::pmd
