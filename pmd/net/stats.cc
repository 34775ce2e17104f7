#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <string_view>

#include "pmd/net/ops.hpp"

namespace rio::pmd {
namespace {

struct Row {
  const char* name;
  uint64_t (*get)(const rte_eth_dev* dev);
};

template <Counter NetRxCounts::*counter>
uint64_t port(const rte_eth_dev* dev) {
  const NetRx* const rx = shared_of(dev).rx;
  return rx == nullptr ? 0 : (rx->counts().*counter).get();
}
template <Counter NetRxQueueCounts::*counter>
uint64_t rx(const rte_eth_dev* dev) {
  uint64_t sum = 0;
  for (uint16_t i = 0; i < dev->data->nb_rx_queues; ++i) {
    sum += rx_of(dev, i) == nullptr ? 0 : (rx_of(dev, i)->counts.*counter).get();
  }
  return sum;
}
template <Counter NetTxCounts::*counter>
uint64_t tx(const rte_eth_dev* dev) {
  uint64_t sum = 0;
  for (uint16_t i = 0; i < dev->data->nb_tx_queues; ++i) {
    sum += tx_of(dev, i) == nullptr ? 0 : (tx_of(dev, i)->counts().*counter).get();
  }
  return sum;
}

constexpr Row kRows[] = {
    {"rx_frames", rx<&NetRxQueueCounts::frames>},
    {"rx_bytes", rx<&NetRxQueueCounts::bytes>},
    {"rx_messages", port<&NetRxCounts::messages>},
    {"rx_bundles", port<&NetRxCounts::bundles>},
    {"rx_no_mbuf", rx<&NetRxQueueCounts::no_mbuf>},
    {"rx_ring_full", rx<&NetRxQueueCounts::ring_full>},
    {"rx_failed_messages", port<&NetRxCounts::failed>},
    {"rx_bad_lengths", port<&NetRxCounts::lengths>},
    {"rx_too_long", port<&NetRxCounts::too_long>},
    {"rx_spoofed", port<&NetRxCounts::spoofed>},
    {"rx_bad_bundles", port<&NetRxCounts::bad_bundles>},
    {"rx_bad_parts", port<&NetRxCounts::bad_parts>},
    {"rx_bad_mailboxes", port<&NetRxCounts::bad_mailboxes>},
    {"rx_storms", port<&NetRxCounts::storms>},
    {"rx_late", port<&NetRxCounts::late>},
    {"rx_out_of_order", port<&NetRxCounts::out_of_order>},
    {"rx_joins", port<&NetRxCounts::joins>},
    {"rx_leaves", port<&NetRxCounts::leaves>},
    {"tx_frames", tx<&NetTxCounts::frames>},
    {"tx_bytes", tx<&NetTxCounts::bytes>},
    {"tx_messages", tx<&NetTxCounts::messages>},
    {"tx_refused", tx<&NetTxCounts::refused>},
    {"tx_bad_lengths", tx<&NetTxCounts::lengths>},
    {"tx_no_peer", tx<&NetTxCounts::no_peer>},
    {"tx_bounced", tx<&NetTxCounts::bounced>},
};
constexpr unsigned kCount = sizeof(kRows) / sizeof(kRows[0]);
static_assert(kCount <= NetShared::kCountsMax);

/// Where stats_get() finds what it sums, by names, so that rows may be added and moved.
[[nodiscard]] constexpr unsigned row(std::string_view name) {
  for (unsigned i = 0; i < kCount; ++i) {
    if (name == kRows[i].name) {
      return i;
    }
  }
  return kCount;  // no constant expression: an index beyond the table
}
constexpr unsigned kRxErrors[] = {
    row("rx_failed_messages"), row("rx_bad_lengths"), row("rx_too_long"),      row("rx_spoofed"),
    row("rx_bad_bundles"),     row("rx_bad_parts"),   row("rx_bad_mailboxes"), row("rx_storms")};
constexpr unsigned kTxErrors[] = {row("tx_refused"), row("tx_bad_lengths"), row("tx_no_peer")};

uint64_t value(const rte_eth_dev* dev, unsigned row) {
  return kRows[row].get(dev) - shared_of(dev).zero[row];
}

/// Frames and bytes in, frames dropped, frames and bytes out of the queues of a number.
QueueCounts of_queue(const rte_eth_dev* dev, uint16_t i) {
  const NetRxQueue* const rx = i < dev->data->nb_rx_queues ? rx_of(dev, i) : nullptr;
  const NetTx* const tx = i < dev->data->nb_tx_queues ? tx_of(dev, i) : nullptr;
  return {rx == nullptr ? 0 : rx->counts.frames.get(), rx == nullptr ? 0 : rx->counts.bytes.get(),
          rx == nullptr ? 0 : rx->counts.ring_full.get(),
          tx == nullptr ? 0 : tx->counts().frames.get(),
          tx == nullptr ? 0 : tx->counts().bytes.get()};
}

/// Counts of a queue since the last reset of them.
QueueCounts told_of_queue(const rte_eth_dev* dev, uint16_t i) {
  QueueCounts counts = of_queue(dev, i);
  for (uint32_t k = 0; k < NetShared::kQueueCounts; ++k) {
    counts[k] -= shared_of(dev).queue_zero[i][k];
  }
  return counts;
}

template <size_t kSize>
uint64_t sum(const rte_eth_dev* dev, const unsigned (&rows)[kSize]) {
  uint64_t all = 0;
  for (const unsigned row : rows) {
    all += value(dev, row);
  }
  return all;
}

int stats_get(rte_eth_dev* dev, rte_eth_stats* stats) {
  stats->ipackets = value(dev, row("rx_frames"));
  stats->ibytes = value(dev, row("rx_bytes"));
  stats->rx_nombuf = value(dev, row("rx_no_mbuf"));
  stats->imissed = value(dev, row("rx_ring_full"));
  stats->ierrors = sum(dev, kRxErrors);
  stats->opackets = value(dev, row("tx_frames"));
  stats->obytes = value(dev, row("tx_bytes"));
  stats->oerrors = sum(dev, kTxErrors);
  for (uint16_t i = 0; i < RTE_ETHDEV_QUEUE_STAT_CNTRS; ++i) {
    const QueueCounts told = told_of_queue(dev, i);
    stats->q_ipackets[i] = told[0];
    stats->q_ibytes[i] = told[1];
    stats->q_errors[i] = told[2];
    stats->q_opackets[i] = told[3];
    stats->q_obytes[i] = told[4];
  }
  return 0;
}

int stats_reset(rte_eth_dev* dev) {
  for (unsigned i = 0; i < kCount; ++i) {
    shared_of(dev).zero[i] = kRows[i].get(dev);
  }
  for (uint16_t i = 0; i < RTE_ETHDEV_QUEUE_STAT_CNTRS; ++i) {
    const QueueCounts now = of_queue(dev, i);
    std::copy(now.begin(), now.end(), shared_of(dev).queue_zero[i]);
  }
  return 0;
}

int xstats_get(rte_eth_dev* dev, rte_eth_xstat* xstats, unsigned n) {
  for (unsigned i = 0; i < kCount && n >= kCount; ++i) {
    xstats[i] = {.id = i, .value = value(dev, i)};
  }
  return static_cast<int>(kCount);
}

int xstats_names(rte_eth_dev*, rte_eth_xstat_name* names, unsigned n) {
  for (unsigned i = 0; i < kCount && names != nullptr && n >= kCount; ++i) {
    std::snprintf(names[i].name, sizeof(names[i].name), "%s", kRows[i].name);
  }
  return static_cast<int>(kCount);
}

}  // namespace

KeptCounts::KeptCounts(rte_eth_dev* dev) : dev_(*dev) {
  for (unsigned i = 0; i < kCount; ++i) {
    told_[i] = value(dev, i);
  }
  for (uint16_t i = 0; i < RTE_ETHDEV_QUEUE_STAT_CNTRS; ++i) {
    told_of_queue_[i] = told_of_queue(dev, i);
  }
}

KeptCounts::~KeptCounts() {
  // A count may become smaller than it was at the last reset: the sums wrap.
  NetShared& shared = shared_of(&dev_);
  for (unsigned i = 0; i < kCount; ++i) {
    shared.zero[i] = kRows[i].get(&dev_) - told_[i];
  }
  for (uint16_t i = 0; i < RTE_ETHDEV_QUEUE_STAT_CNTRS; ++i) {
    const QueueCounts now = of_queue(&dev_, i);
    for (uint32_t k = 0; k < NetShared::kQueueCounts; ++k) {
      shared.queue_zero[i][k] = now[k] - told_of_queue_[i][k];
    }
  }
}

void add_stats_ops(eth_dev_ops* ops) {
  ops->stats_get = stats_get;
  ops->stats_reset = stats_reset;
  ops->xstats_get = xstats_get;
  ops->xstats_get_names = xstats_names;
  ops->xstats_reset = stats_reset;
}

}  // namespace rio::pmd
