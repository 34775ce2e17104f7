// Virtual devices net_rio0, net_rio1…: Ethernet on an emulated card, or on any card that another
// device has.

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <string_view>

#include "pmd/bus/log.hpp"
#include "pmd/card/card_args.hpp"
#include "pmd/card/open_card.hpp"
#include "pmd/net/ops.hpp"

namespace rio::pmd {
namespace {

/// "0x100:0x200-0x20f". @return false: none of that.
bool read_dest_ids(std::string_view text, std::vector<uint32_t>* out) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(':'), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t dash = part.find('-');
    const bool range = dash != std::string_view::npos;
    uint64_t first = 0;
    uint64_t last = 0;
    if (!read_number(part.substr(0, dash), 0, kNetDestIds - 1, &first) ||
        !read_number(range ? part.substr(dash + 1) : part, first, kNetDestIds - 1, &last)) {
      return false;
    }
    for (uint64_t id = first; id <= last; ++id) {
      out->push_back(static_cast<uint32_t>(id));
    }
  }
  return !out->empty();
}

int read_peers(const char* name, std::string* args, std::vector<uint32_t>* out) {
  std::string text;
  if (!take_arg(args, "peers", &text)) {
    constexpr uint32_t kStep = 0x100;  // as default_dest_id() gives them
    for (uint32_t i = 1; i <= 16; ++i) {
      out->push_back(i * kStep);
    }
    return 0;
  }
  if (!read_dest_ids(text, out)) {
    log_error(
        "%s: bad value '%s' for argument 'peers': allowed are destIDs up to %u and ranges of "
        "them, as in 0x100:0x200-0x20f",
        name, text.c_str(), kNetDestIds - 1);
    return -EINVAL;
  }
  return 0;
}

int make_port(const char* name, std::string args, std::unique_ptr<NetPort>* out) {
  std::vector<uint32_t> invited;
  std::shared_ptr<EalCard> card;
  int qp = -1;
  int rc = read_peers(name, &args, &invited);
  rc = rc != 0 ? rc : open_any_card(name, args, &card, &qp);
  return rc != 0 ? rc : NetPort::create(name, std::move(card), qp, std::move(invited), out);
}

int probe(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (name == nullptr) {
    return -EINVAL;
  }
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    log_error("%s: ports are the primary process's: plug it in there", name);
    return -ENOTSUP;
  }
  const std::lock_guard guard(control_lock());
  const char* const args = rte_vdev_device_args(vdev);
  std::unique_ptr<NetPort> port;
  if (const int rc = make_port(name, args != nullptr ? args : "", &port); rc != 0) {
    return rc;
  }
  rte_eth_dev* const dev = rte_eth_vdev_allocate(vdev, sizeof(NetPrivate));
  auto* const address = static_cast<rte_ether_addr*>(rte_zmalloc(name, sizeof(rte_ether_addr), 0));
  if (dev == nullptr || address == nullptr) {
    log_error("%s: no room for a port: another one has this name, or there are %d already", name,
              RTE_MAX_ETHPORTS);
    rte_free(address);
    if (dev != nullptr) {
      rte_eth_dev_release_port(dev);
    }
    return -ENOMEM;
  }
  *address = address_of(port->dest_id());
  dev->data->mac_addrs = address;
  dev->data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
  dev->dev_ops = &kNetOps;
  port_of(dev) = port.release();
  rte_eth_dev_probing_finish(dev);
  return 0;
}

int remove(rte_vdev_device* vdev) {
  rte_eth_dev* const dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
  if (dev == nullptr) {
    return 0;  // closed already
  }
  const int rc = kNetOps.dev_close(dev);
  return rc != 0 ? rc : rte_eth_dev_release_port(dev);
}

constexpr rte_vdev_driver make_driver() {
  rte_vdev_driver driver{};
  driver.probe = probe;
  driver.remove = remove;
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  return driver;
}

// constinit: a dynamic initialiser would run after the registration below.
constinit rte_vdev_driver net_rio = make_driver();

}  // namespace

RTE_PMD_REGISTER_VDEV(net_rio, net_rio);

}  // namespace rio::pmd
