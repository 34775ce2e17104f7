/// @file
/// The driver's functions for ethdev.
#pragma once

#include "pmd/net/port.hpp"

namespace rio::pmd {

/// Functions of the primary process.
[[nodiscard]] const eth_dev_ops* net_ops();
/// Functions of secondary processes: those that need no card.
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

/// Set the bursts, and the other functions that ethdev calls without checks. @param polls whether
/// this process may poll.
void set_bursts(rte_eth_dev* dev, bool polls);
/// Add functions that only look at queues.
void add_queue_ops(eth_dev_ops* ops);
/// Keeps the port's reported counts steady while it lives: queues may come and go, and their counts
/// with them. Control path.
class KeptCounts {
 public:
  explicit KeptCounts(rte_eth_dev* dev);
  ~KeptCounts();
  KeptCounts(const KeptCounts&) = delete;
  KeptCounts& operator=(const KeptCounts&) = delete;

 private:
  rte_eth_dev& dev_;
  std::array<uint64_t, NetShared::kCountsMax> told_;
};

/// Add functions for counts.
void add_stats_ops(eth_dev_ops* ops);
/// Facts about the driver, equal in every process.
int net_infos_get(rte_eth_dev* dev, rte_eth_dev_info* info);

}  // namespace rio::pmd
