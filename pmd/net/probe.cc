// Virtual devices net_rio0, net_rio1…: Ethernet on an emulated card, or on any card that another
// device has opened. Of a PCI card with class=net, too.

#include <bus_pci_driver.h>
#include <bus_vdev_driver.h>
#include <ethdev_driver.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "base/log.hpp"
#include "base/number.hpp"
#include "pmd/card/open_card.hpp"
#include "pmd/card/pci_class.hpp"
#include "pmd/card/pmd_info.hpp"
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

/// The keys of a port. @param out where their values go.
OwnKeys keys_of(NetPortArgs* out) {
  constexpr uint64_t kStormMax = 1'000'000'000;
  NetPortArgs& port = *out;
  const name::OwnKey peers = {
      "peers",
      "destIDs up to " + std::to_string(kNetDestIds - 1) +
          " and ranges of them, as in 0x100:0x200-0x20f",
      [&port](std::string_view text) { return read_dest_ids(text, &port.invited); }};
  return {peers, number("mbox", regs::kMultiMailboxes - 1, &port.mbox),
          number("storm", kStormMax, &port.storm_frames_per_s),
          number("handover", 1, &port.handover)};
}

/// The arguments of start_port(), which come by ethdev.
struct Wanted {
  std::shared_ptr<EalCard> card;
  NetPortArgs args;
};

int start_port(rte_eth_dev* dev, void* wanted) {
  auto& [card, args] = *static_cast<Wanted*>(wanted);
  if (args.invited.empty()) {
    constexpr uint32_t kStep = 0x100;  // as default_dest_id() gives them
    for (uint32_t i = 1; i <= 16; ++i) {
      args.invited.push_back(i * kStep);
    }
  }
  dev->data->numa_node = card->bus().numa_node();
  if (const int rc = NetPort::create(dev->data->name, std::move(card), args, dev); rc != 0) {
    return rc;
  }
  dev->dev_ops = net_ops();
  set_bursts(dev, true);
  (void)shared_of(dev).port->update_link();
  return 0;
}

int join_port(rte_eth_dev* dev, void* /*wanted*/) {
  const bool polls = shared_of(dev).others_poll;
  if (!polls) {
    base::log_info(
        "%s: only the primary process can poll this port, since it steps the emulated card: give "
        "the primary stepping=thread",
        dev->data->name);
  }
  dev->dev_ops = net_secondary_ops();
  set_bursts(dev, polls);
  return 0;
}

/// Makes a port in the primary process, or joins that one in a secondary process.
int make(rte_device& parent, const char* name, Wanted wanted) {
  const bool is_primary = rte_eal_process_type() == RTE_PROC_PRIMARY;
  const int rc = rte_eth_dev_create(&parent, name, sizeof(NetShared), nullptr, nullptr,
                                    is_primary ? start_port : join_port, &wanted);
  if (rc == -ENODEV) {
    base::log_error(is_primary
                        ? "%s: no room for a port: another one has this name, or there are "
                          "RTE_MAX_ETHPORTS already"
                        : "%s: the primary process has no such port: give it the same device",
                    name);
  }
  return rc;
}

int probe(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (name == nullptr) {
    return -EINVAL;
  }
  const std::lock_guard guard(control_lock());
  Wanted wanted;
  int rc = 0;
  if (rte_eal_process_type() == RTE_PROC_PRIMARY) {  // a secondary has the primary's arguments
    rc = open_any_card(name, rte_vdev_device_args(vdev), keys_of(&wanted.args), &wanted.card,
                       &wanted.args.qp);
  }
  return rc != 0 ? rc : make(vdev->device, name, std::move(wanted));
}

int remove(const char* name) {
  rte_eth_dev* const dev = rte_eth_dev_allocated(name);
  if (dev == nullptr || dev->dev_ops == nullptr) {
    return 0;  // closed already
  }
  const int rc = dev->dev_ops->dev_close(dev);
  return rc != 0 ? rc : rte_eth_dev_release_port(dev);
}

constexpr PciClass kClass = {
    .name = "net",
    .prepare = [](OwnKeys* keys) -> PciClass::Probe {
      const auto args = std::make_shared<NetPortArgs>();
      std::ranges::move(keys_of(args.get()), std::back_inserter(*keys));
      keys->push_back(qp_key(&args->qp));
      return [args](rte_pci_device& pci, std::shared_ptr<EalCard> card) {
        return make(pci.device, pci.name, {.card = std::move(card), .args = *args});
      };
    },
    .remove = remove,
};

RTE_INIT(net_rio_class) {
  register_pci_class(kClass);
}

// constinit: a dynamic initialiser would run after the registration below.
constinit rte_vdev_driver net_rio = [] {
  rte_vdev_driver driver{};
  driver.probe = probe;
  driver.remove = [](rte_vdev_device* vdev) { return remove(rte_vdev_device_name(vdev)); };
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  return driver;
}();

RIO_REGISTER_PMD_INFO(net_rio,
                      "peers=<destIDs> mbox=<0-3> storm=<frames/s> handover=<0|1> card=<name> "
                      "qp=<number>, or arguments of raw_rio for an emulated card of its own, or "
                      "for a PCI card with class=net");

}  // namespace

RTE_PMD_REGISTER_VDEV(net_rio, net_rio);

}  // namespace rio::pmd
