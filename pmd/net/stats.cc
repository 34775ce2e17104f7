#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>
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
/// Finds a row by its name, for stats_get(): rows may be added and moved.
[[nodiscard]] constexpr unsigned row(std::string_view name) {
  for (unsigned i = 0; i < kCount; ++i) {
    if (name == kRows[i].name) {
      return i;
    }
  }
  return kCount;  // an index beyond the table: not a constant expression, so it does not compile
}
constexpr unsigned kRxErrors[] = {
    row("rx_failed_messages"), row("rx_bad_lengths"), row("rx_too_long"),      row("rx_spoofed"),
    row("rx_bad_bundles"),     row("rx_bad_parts"),   row("rx_bad_mailboxes"), row("rx_storms")};
constexpr unsigned kTxErrors[] = {row("tx_refused"), row("tx_bad_lengths"), row("tx_no_peer")};

/// The table's counts, then those of each queue: frames and bytes in, frames dropped, frames and
/// bytes out.
using Counts = std::array<uint64_t, NetShared::kCountsMax>;
constexpr unsigned kOfQueue = 5;
static_assert(kCount + kOfQueue * RTE_ETHDEV_QUEUE_STAT_CNTRS <= NetShared::kCountsMax);

Counts operator-(Counts a, const Counts& b) {
  std::transform(a.begin(), a.end(), b.begin(), a.begin(), std::minus<>());
  return a;
}

/// All counts, as they are.
Counts all_counts(const rte_eth_dev* dev) {
  Counts all{};
  for (unsigned i = 0; i < kCount; ++i) {
    all[i] = kRows[i].get(dev);
  }
  for (uint16_t i = 0; i < RTE_ETHDEV_QUEUE_STAT_CNTRS; ++i) {
    uint64_t* const of_queue = &all[kCount + kOfQueue * i];
    if (i < dev->data->nb_rx_queues && rx_of(dev, i) != nullptr) {
      const NetRxQueueCounts& rx = rx_of(dev, i)->counts;
      of_queue[0] = rx.frames.get();
      of_queue[1] = rx.bytes.get();
      of_queue[2] = rx.ring_full.get();
    }
    if (i < dev->data->nb_tx_queues && tx_of(dev, i) != nullptr) {
      const NetTxCounts& tx = tx_of(dev, i)->counts();
      of_queue[3] = tx.frames.get();
      of_queue[4] = tx.bytes.get();
    }
  }
  return all;
}

/// All counts since their last reset.
Counts told_counts(const rte_eth_dev* dev) {
  return all_counts(dev) - shared_of(dev).zero;
}

int stats_get(rte_eth_dev* dev, rte_eth_stats* stats) {
  const Counts told = told_counts(dev);
  const auto sum = [&told](const auto& rows) {
    return std::accumulate(std::begin(rows), std::end(rows), uint64_t{0},
                           [&told](uint64_t all, unsigned row) { return all + told[row]; });
  };
  stats->ipackets = told[row("rx_frames")];
  stats->ibytes = told[row("rx_bytes")];
  stats->rx_nombuf = told[row("rx_no_mbuf")];
  stats->imissed = told[row("rx_ring_full")];
  stats->ierrors = sum(kRxErrors);
  stats->opackets = told[row("tx_frames")];
  stats->obytes = told[row("tx_bytes")];
  stats->oerrors = sum(kTxErrors);
  for (unsigned i = 0; i < RTE_ETHDEV_QUEUE_STAT_CNTRS; ++i) {
    const uint64_t* const of_queue = &told[kCount + kOfQueue * i];
    stats->q_ipackets[i] = of_queue[0];
    stats->q_ibytes[i] = of_queue[1];
    stats->q_errors[i] = of_queue[2];
    stats->q_opackets[i] = of_queue[3];
    stats->q_obytes[i] = of_queue[4];
  }
  return 0;
}

int stats_reset(rte_eth_dev* dev) {
  shared_of(dev).zero = all_counts(dev);
  return 0;
}

int xstats_get(rte_eth_dev* dev, rte_eth_xstat* xstats, unsigned n) {
  const Counts told = told_counts(dev);
  for (unsigned i = 0; i < kCount && n >= kCount; ++i) {
    xstats[i] = {.id = i, .value = told[i]};
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

KeptCounts::KeptCounts(rte_eth_dev* dev) : dev_(*dev), told_(told_counts(dev)) {}

KeptCounts::~KeptCounts() {
  // A count may be smaller than at the last reset: the differences wrap.
  shared_of(&dev_).zero = all_counts(&dev_) - told_;
}

void add_stats_ops(eth_dev_ops* ops) {
  ops->stats_get = stats_get;
  ops->stats_reset = stats_reset;
  ops->xstats_get = xstats_get;
  ops->xstats_get_names = xstats_names;
  ops->xstats_reset = stats_reset;
}

}  // namespace rio::pmd
