// Virtual devices net_rio0, net_rio1…: Ethernet on an emulated card, or on any card that another
// device has opened.

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>

#include <cerrno>
#include <mutex>
#include <string_view>

#include "base/log.hpp"
#include "base/number.hpp"
#include "pmd/card/open_card.hpp"
#include "pmd/net/ops.hpp"

namespace rio::pmd {
namespace {

/// Parses "0x100:0x200-0x20f". @return false: malformed.
bool read_dest_ids(std::string_view text, std::vector<uint32_t>* out) {
  const auto read = [](std::string_view dest_id, uint32_t* number) {
    return base::read_number(dest_id, 0, kNetDestIds - 1, number);
  };
  std::string problem;
  return base::read_ranges(text, ':', "destID", read, out, &problem);
}

/// A key with a number from 0. @param out holds the default.
template <typename Number>
name::OwnKey number(const char* key, uint64_t most, Number* out) {
  return {key, "0 to " + std::to_string(most),
          [=](std::string_view text) { return base::read_number(text, 0, most, out); }};
}

/// Opens the card that the arguments name, and reads the others.
int read_args(const char* name, const char* args, std::shared_ptr<EalCard>* card,
              NetPortArgs* out) {
  constexpr uint64_t kStormMax = 1'000'000'000;
  NetPortArgs& port = *out;
  const name::OwnKey peers = {
      "peers",
      "destIDs up to " + std::to_string(kNetDestIds - 1) +
          " and ranges of them, as in 0x100:0x200-0x20f",
      [&port](std::string_view text) { return read_dest_ids(text, &port.invited); }};
  const int rc = open_any_card(
      name, args,
      {peers, number("mbox", regs::kMultiMailboxes - 1, &port.mbox),
       number("storm", kStormMax, &port.storm_frames_per_s), number("handover", 1, &port.handover)},
      card, &port.qp);
  constexpr uint32_t kStep = 0x100;  // as default_dest_id() gives them
  if (port.invited.empty()) {
    for (uint32_t i = 1; i <= 16; ++i) {
      port.invited.push_back(i * kStep);
    }
  }
  return rc;
}

int probe_in_primary(rte_vdev_device* vdev, const char* name) {
  const std::lock_guard guard(control_lock());
  NetPortArgs args;
  std::shared_ptr<EalCard> card;
  if (const int rc = read_args(name, rte_vdev_device_args(vdev), &card, &args); rc != 0) {
    return rc;
  }
  rte_eth_dev* const dev = rte_eth_vdev_allocate(vdev, sizeof(NetShared));
  if (dev == nullptr) {
    base::log_error("%s: no room for a port: another one has this name, or there are %d already",
                    name, RTE_MAX_ETHPORTS);
    return -ENOMEM;
  }
  if (const int rc = NetPort::create(name, std::move(card), args, dev); rc != 0) {
    rte_eth_dev_release_port(dev);
    return rc;
  }
  dev->dev_ops = net_ops();
  set_bursts(dev, true);
  (void)shared_of(dev).port->update_link();
  rte_eth_dev_probing_finish(dev);
  return 0;
}

int probe_in_secondary(rte_vdev_device* vdev, const char* name) {
  rte_eth_dev* const dev = rte_eth_dev_attach_secondary(name);
  if (dev == nullptr) {
    base::log_error("%s: the primary process has no such port: give it --vdev=%s", name, name);
    return -ENODEV;
  }
  const bool polls = shared_of(dev).others_poll;
  if (!polls) {
    base::log_info(
        "%s: only the primary process can poll this port, since it steps the emulated card: give "
        "the primary stepping=thread",
        name);
  }
  dev->device = &vdev->device;
  dev->dev_ops = net_secondary_ops();
  set_bursts(dev, polls);
  rte_eth_dev_probing_finish(dev);
  return 0;
}

int probe(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (name == nullptr) {
    return -EINVAL;
  }
  return rte_eal_process_type() == RTE_PROC_PRIMARY ? probe_in_primary(vdev, name)
                                                    : probe_in_secondary(vdev, name);
}

int remove(rte_vdev_device* vdev) {
  rte_eth_dev* const dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));
  if (dev == nullptr || dev->dev_ops == nullptr) {
    return 0;  // closed already
  }
  const int rc = dev->dev_ops->dev_close(dev);
  return rc != 0 ? rc : rte_eth_dev_release_port(dev);
}

// constinit: a dynamic initialiser would run after the registration below.
constinit rte_vdev_driver net_rio = [] {
  rte_vdev_driver driver{};
  driver.probe = probe;
  driver.remove = remove;
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  return driver;
}();

// The text that dpdk-pmdinfo.py reads from the plug-in: one line of JSON after "PMD_INFO_STRING= ".
[[gnu::used, gnu::retain]] constexpr char kVdevInfo[] =
    "PMD_INFO_STRING= {\"name\" : \"net_rio\", \"params\" : \""
    "peers=<destIDs> mbox=<0-3> storm=<frames/s> handover=<0|1> card=<name> qp=<number>, or "
    "arguments of raw_rio "
    "for an emulated card of its own"
    "\", \"pci_ids\" : []}";

}  // namespace

RTE_PMD_REGISTER_VDEV(net_rio, net_rio);

}  // namespace rio::pmd
