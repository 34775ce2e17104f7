#include <cerrno>
#include <cstdio>
#include <mutex>

#include "pmd/net/ops.hpp"

namespace rio::pmd {
namespace {

struct Row {
  const char* name;
  uint64_t (*get)(const NetPort& port);
};

template <Counter NetRxCounts::*counter>
uint64_t rx(const NetPort& port) {
  return port.rx() == nullptr ? 0 : (port.rx()->counts().*counter).get();
}
template <Counter NetTxCounts::*counter>
uint64_t tx(const NetPort& port) {
  return port.tx() == nullptr ? 0 : (port.tx()->counts().*counter).get();
}

constexpr Row kRows[] = {
    {"rx_frames", rx<&NetRxCounts::frames>},       {"rx_bytes", rx<&NetRxCounts::bytes>},
    {"rx_no_mbuf", rx<&NetRxCounts::no_mbuf>},     {"rx_failed_messages", rx<&NetRxCounts::failed>},
    {"rx_bad_lengths", rx<&NetRxCounts::lengths>}, {"rx_spoofed", rx<&NetRxCounts::spoofed>},
    {"rx_joins", rx<&NetRxCounts::joins>},         {"rx_leaves", rx<&NetRxCounts::leaves>},
    {"tx_frames", tx<&NetTxCounts::frames>},       {"tx_bytes", tx<&NetTxCounts::bytes>},
    {"tx_refused", tx<&NetTxCounts::refused>},     {"tx_bad_lengths", tx<&NetTxCounts::lengths>},
    {"tx_no_peer", tx<&NetTxCounts::no_peer>},     {"tx_bounced", tx<&NetTxCounts::bounced>},
};
constexpr unsigned kCount = sizeof(kRows) / sizeof(kRows[0]);

uint64_t value(const NetPort& port, unsigned row) {
  return kRows[row].get(port) - (port.zero.empty() ? 0 : port.zero[row]);
}

}  // namespace

int net_stats_get(rte_eth_dev* dev, rte_eth_stats* stats) {
  const std::lock_guard guard(control_lock());
  const NetPort* const port = port_of(dev);
  if (port == nullptr) {
    return -ENODEV;
  }
  stats->ipackets = value(*port, 0);
  stats->ibytes = value(*port, 1);
  stats->rx_nombuf = value(*port, 2);
  stats->ierrors = value(*port, 3) + value(*port, 4) + value(*port, 5);
  stats->opackets = value(*port, 8);
  stats->obytes = value(*port, 9);
  stats->oerrors = value(*port, 10) + value(*port, 11) + value(*port, 12);
  return 0;
}

int net_stats_reset(rte_eth_dev* dev) {
  const std::lock_guard guard(control_lock());
  NetPort* const port = port_of(dev);
  if (port == nullptr) {
    return -ENODEV;
  }
  port->zero.assign(kCount, 0);
  for (unsigned i = 0; i < kCount; ++i) {
    port->zero[i] = kRows[i].get(*port);
  }
  return 0;
}

int net_xstats_get(rte_eth_dev* dev, rte_eth_xstat* xstats, unsigned n) {
  const std::lock_guard guard(control_lock());
  const NetPort* const port = port_of(dev);
  if (port == nullptr) {
    return -ENODEV;
  }
  for (unsigned i = 0; i < kCount && n >= kCount; ++i) {
    xstats[i] = {.id = i, .value = value(*port, i)};
  }
  return static_cast<int>(kCount);
}

int net_xstats_names(rte_eth_dev*, rte_eth_xstat_name* names, unsigned n) {
  for (unsigned i = 0; i < kCount && names != nullptr && n >= kCount; ++i) {
    std::snprintf(names[i].name, sizeof(names[i].name), "%s", kRows[i].name);
  }
  return static_cast<int>(kCount);
}

}  // namespace rio::pmd
