// Receive-side scaling, in ethdev's form.
#include <algorithm>
#include <cerrno>

#include "base/log.hpp"
#include "pmd/net/ops.hpp"

namespace rio::pmd {
namespace {

int hash_update(rte_eth_dev* dev, rte_eth_rss_conf* conf) {
  Rss& rss = shared_of(dev).rss_conf;
  if (conf->rss_key != nullptr && conf->rss_key_len != 0 && conf->rss_key_len != Rss::kKeyBytes) {
    base::log_error("%s: an RSS key has %u bytes, not %u", dev->data->name, Rss::kKeyBytes,
                    conf->rss_key_len);
    return -EINVAL;
  }
  if (conf->rss_key != nullptr && conf->rss_key_len != 0) {
    rss.set_key(conf->rss_key);
  }
  rss.set_types(conf->rss_hf & Rss::kTypes);
  return 0;
}

int hash_get(rte_eth_dev* dev, rte_eth_rss_conf* conf) {
  const Rss& rss = shared_of(dev).rss_conf;
  if (conf->rss_key != nullptr && conf->rss_key_len >= Rss::kKeyBytes) {
    std::copy_n(rss.key(), Rss::kKeyBytes, conf->rss_key);
  }
  conf->rss_key_len = Rss::kKeyBytes;
  conf->rss_hf = rss.types();
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
  return for_each_entry(groups, size, [&](uint32_t i, uint16_t queue) { rss.set_entry(i, queue); });
}

int table_query(rte_eth_dev* dev, rte_eth_rss_reta_entry64* groups, uint16_t size) {
  const Rss& rss = shared_of(dev).rss_conf;
  return for_each_entry(groups, size, [&](uint32_t i, uint16_t& queue) { queue = rss.entry(i); });
}

}  // namespace

void add_rss_ops(eth_dev_ops* ops) {
  ops->rss_hash_update = hash_update;
  ops->rss_hash_conf_get = hash_get;
  ops->reta_update = table_update;
  ops->reta_query = table_query;
}

}  // namespace rio::pmd
