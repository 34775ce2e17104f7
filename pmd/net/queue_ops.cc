// Bursts, and functions that look at queues.
#include <rte_power_intrinsics.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <mutex>

#include "pmd/net/ops.hpp"

namespace rio::pmd {
namespace {

uint16_t rx_burst(void* queue, rte_mbuf** frames, uint16_t n) {
  NetRxQueue& rx = *static_cast<NetRxQueue*>(queue);
  if (rx.ring != nullptr) [[unlikely]] {
    return rx.rx == nullptr ? 0 : rx.rx->burst_of_several(rx, frames, n);
  }
  return rx.rx == nullptr ? 0 : rx.rx->burst(rx, frames, n);
}

uint16_t tx_burst(void* queue, rte_mbuf** frames, uint16_t n) {
  return static_cast<NetTx*>(queue)->burst(frames, n);
}

uint16_t no_burst(void*, rte_mbuf**, uint16_t) {
  return 0;
}

/// The card's ring of a receiver. @return null: it is not started.
const SharedRxQueue* ring_of(const NetRx* rx) {
  return rx == nullptr ? nullptr : rx->queue();
}

/// Number of waiting messages, each of at least one frame, and of frames that other queues
/// received.
uint32_t rx_count_of(void* queue) {
  const NetRxQueue& rx = *static_cast<const NetRxQueue*>(queue);
  const SharedRxQueue* const ring = ring_of(rx.rx);
  return (ring == nullptr ? 0 : ring->ready_count()) +
         (rx.ring == nullptr ? 0 : rte_ring_count(rx.ring));
}

int rx_status(void* queue, uint16_t offset) {
  const NetRxQueue& rx = *static_cast<const NetRxQueue*>(queue);
  const SharedRxQueue* const ring = ring_of(rx.rx);
  if (ring == nullptr || offset >= 1u << rx.rx->config().ring_log2) {
    return -EINVAL;
  }
  const uint32_t ready = ring->ready_count();
  return offset < ready                         ? RTE_ETH_RX_DESC_DONE
         : offset < ready + ring->outstanding() ? RTE_ETH_RX_DESC_AVAIL
                                                : RTE_ETH_RX_DESC_UNAVAIL;
}

int tx_status(void* queue, uint16_t offset) {
  const NetTx& tx = *static_cast<const NetTx*>(queue);
  const TxQueue* const ring = tx.queue();
  const uint32_t size = 1u << tx.config().ring_log2;
  if (ring == nullptr || offset >= size) {
    return -EINVAL;
  }
  // The entry that was at this place a lap ago.
  const uint32_t index = ring->next_index() + offset - size;
  const bool old = static_cast<int32_t>(index - ring->oldest_index()) < 0;
  return old || !ring->is_out(index) ? RTE_ETH_TX_DESC_DONE : RTE_ETH_TX_DESC_FULL;
}

/// ethdev does not check that the queue was set up, here and in the functions below that return
/// -EINVAL.
int tx_done_cleanup(void* queue, uint32_t) {
  return queue == nullptr ? -EINVAL : static_cast<int>(static_cast<NetTx*>(queue)->clean_up());
}

void rxq_info(rte_eth_dev* dev, uint16_t queue, rte_eth_rxq_info* info) {
  const NetRxQueue& rx = *rx_of(dev, queue);
  info->mp = rx.pool;
  info->scattered_rx = rx.scatter ? 1 : 0;
  info->nb_desc = static_cast<uint16_t>(rx.entries);
  info->conf.offloads = rx.scatter ? RTE_ETH_RX_OFFLOAD_SCATTER : 0;
  info->conf.rx_deferred_start = rx.deferred ? 1 : 0;
}

void txq_info(rte_eth_dev* dev, uint16_t queue, rte_eth_txq_info* info) {
  const NetTxConfig& config = tx_of(dev, queue)->config();
  info->nb_desc = static_cast<uint16_t>(1u << config.ring_log2);
  info->conf.offloads =
      RTE_ETH_TX_OFFLOAD_MULTI_SEGS | (config.fast_free ? RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE : 0);
  info->conf.tx_deferred_start = config.deferred ? 1 : 0;
}

int rx_mode(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* mode) {
  if (rx_of(dev, queue) == nullptr) {
    return -EINVAL;
  }
  std::snprintf(mode->info, sizeof(mode->info), "bundles%s%s",
                rx_of(dev, queue)->scatter ? ", scattered" : "",
                rx_of(dev, queue)->ring != nullptr ? ", RSS by software" : "");
  return 0;
}

int tx_mode(rte_eth_dev* dev, uint16_t queue, rte_eth_burst_mode* mode) {
  if (tx_of(dev, queue) == nullptr) {
    return -EINVAL;
  }
  std::snprintf(mode->info, sizeof(mode->info), "bundles%s",
                tx_of(dev, queue)->config().fast_free ? ", fast free" : "");
  return 0;
}

/// Starts or stops a queue. A stopped queue returns no frames, and accepts none.
template <bool kStarted>
int set_rx(rte_eth_dev* dev, uint16_t queue) {
  static_cast<NetRxQueue*>(dev->data->rx_queues[queue])
      ->stopped.store(!kStarted, std::memory_order_relaxed);
  dev->data->rx_queue_state[queue] = state_of(kStarted);
  return 0;
}
template <bool kStarted>
int set_tx(rte_eth_dev* dev, uint16_t queue) {
  static_cast<NetTx*>(dev->data->tx_queues[queue])->set_paused(!kStarted);
  dev->data->tx_queue_state[queue] = state_of(kStarted);
  return 0;
}

int dump(rte_eth_dev* dev, FILE* file) {
  const std::lock_guard guard(control_lock());
  const NetShared& shared = shared_of(dev);
  std::fprintf(
      file, "  destID 0x%x, %s\n", shared.peers->own.load(std::memory_order_relaxed),
      shared.others_poll ? "the card works by itself" : "the card works while it is polled");
  std::fputs("  joined:", file);
  shared.peers->joined.for_each([&](uint32_t dest_id) {
    std::fprintf(file, " 0x%x%s", dest_id,
                 shared.peers->bundles.has(dest_id) ? "" : " (plain frames)");
    return true;
  });
  std::fputs("\n", file);
  for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
    const NetTx* const tx = tx_of(dev, i);
    const TxQueue* const ring = tx == nullptr ? nullptr : tx->queue();
    std::fprintf(file, "  transmit queue %u: %u entries, %u under way\n", i,
                 tx == nullptr ? 0 : 1u << tx->config().ring_log2,
                 ring == nullptr ? 0 : ring->outstanding());
  }
  const SharedRxQueue* const ring = ring_of(shared.rx);
  std::fprintf(file, "  received: %u buffers with the card, %u messages wait\n",
               ring == nullptr ? 0 : ring->outstanding(),
               ring == nullptr ? 0 : ring->ready_count());
  return 0;
}

/// Whether the word has the awaited value already: then the CPU does not sleep.
int is_there(const uint64_t value, const uint64_t opaque[RTE_POWER_MONITOR_OPAQUE_SZ]) {
  return (value & opaque[1]) == opaque[0] ? -1 : 0;
}

int monitor_addr(void* queue, rte_power_monitor_cond* condition) {
  if (queue == nullptr) {
    return -EINVAL;
  }
  const NetRxQueue& rx = *static_cast<const NetRxQueue*>(queue);
  const SharedRxQueue* const ring = ring_of(rx.rx);
  if (ring == nullptr || !rx.rx->works_alone()) {
    return -ENOTSUP;  // a card that works only while it is polled wakes no sleeping CPU
  }
  const auto next = ring->next_completion();
  condition->addr = const_cast<uint32_t*>(next.status);
  condition->size = sizeof(*next.status);
  condition->opaque[0] = next.phase;
  condition->opaque[1] = kPhaseBit;
  condition->fn = is_there;
  return 0;
}

}  // namespace

void set_bursts(rte_eth_dev* dev, bool polls) {
  dev->rx_pkt_burst = polls ? rx_burst : no_burst;
  dev->tx_pkt_burst = polls ? tx_burst : no_burst;
  dev->rx_queue_count = rx_count_of;
  dev->rx_descriptor_status = rx_status;
  dev->tx_descriptor_status = tx_status;
}

void add_queue_ops(eth_dev_ops* ops) {
  ops->tx_done_cleanup = tx_done_cleanup;
  ops->rxq_info_get = rxq_info;
  ops->txq_info_get = txq_info;
  ops->rx_burst_mode_get = rx_mode;
  ops->tx_burst_mode_get = tx_mode;
  ops->get_monitor_addr = monitor_addr;
  ops->rx_queue_start = set_rx<true>;
  ops->rx_queue_stop = set_rx<false>;
  ops->tx_queue_start = set_tx<true>;
  ops->tx_queue_stop = set_tx<false>;
  ops->eth_dev_priv_dump = dump;
}

int net_infos_get(rte_eth_dev* dev, rte_eth_dev_info* info) {
  const NetShared& shared = shared_of(dev);
  info->max_mac_addrs = 1;
  info->min_rx_bufsize = 128;
  info->max_rx_pktlen = kFrameBytesMax;
  info->min_mtu = RTE_ETHER_MIN_MTU;
  info->max_mtu = kMtuMax;
  info->max_rx_queues = kRxQueuesMax;
  info->max_tx_queues = shared.tx_queues_max;
  info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER | RTE_ETH_RX_OFFLOAD_RSS_HASH;
  info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  info->tx_queue_offload_capa = info->tx_offload_capa;
  info->rx_queue_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
  info->reta_size = Rss::kTable;
  info->hash_key_size = Rss::kKeyBytes;
  info->flow_type_rss_offloads = Rss::kTypes;
  constexpr uint16_t kEntriesMin = 64;  // room for a jumbo frame
  info->rx_desc_lim.nb_max = static_cast<uint16_t>(1u << shared.ring_log2_max);
  info->rx_desc_lim.nb_min =
      std::max(kEntriesMin, static_cast<uint16_t>(1u << shared.ring_log2_min));
  info->rx_desc_lim.nb_align = 1;
  info->tx_desc_lim = info->rx_desc_lim;
  info->default_rxportconf = {.burst_size = 32, .ring_size = 128, .nb_queues = 1};
  info->default_txportconf = {.burst_size = 32, .ring_size = 256, .nb_queues = 1};
  info->dev_capa = 0;
  info->err_handle_mode = RTE_ETH_ERROR_HANDLE_MODE_PROACTIVE;
  return 0;
}

}  // namespace rio::pmd
