/// @file
/// The functions of ethdev.
#pragma once

#include "pmd/net/port.hpp"

namespace rio::pmd {

/// The table; constant.
extern const eth_dev_ops kNetOps;

/// What ethdev keeps of a port.
struct NetPrivate {
  NetPort* port;
};

[[nodiscard]] inline NetPort*& port_of(rte_eth_dev* dev) {
  return static_cast<NetPrivate*>(dev->data->dev_private)->port;
}

// stats.cc
int net_stats_get(rte_eth_dev* dev, rte_eth_stats* stats);
int net_stats_reset(rte_eth_dev* dev);
int net_xstats_get(rte_eth_dev* dev, rte_eth_xstat* xstats, unsigned n);
int net_xstats_names(rte_eth_dev* dev, rte_eth_xstat_name* names, unsigned n);

}  // namespace rio::pmd
