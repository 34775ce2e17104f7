// Virtual devices raw_rio0, raw_rio1…: emulated cards. PCI cards come from pmd/card.

#include <bus_pci_driver.h>
#include <bus_vdev_driver.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <functional>
#include <utility>

#include "pmd/card/open_card.hpp"
#include "pmd/card/pci_class.hpp"
#include "pmd/card/pmd_info.hpp"
#include "pmd/raw/device.hpp"

namespace rio::pmd {
namespace {

int vdev_probe(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (name == nullptr) {
    return -EINVAL;
  }
  const std::lock_guard guard(control_lock());
  CardArgs args;
  args.base_dest_id = default_dest_id(name);
  int rc = 0;
  if (rte_eal_process_type() == RTE_PROC_PRIMARY) {  // a secondary has the primary's arguments
    rc = parse_devargs(name, rte_vdev_device_args(vdev), name::Place::kDevice, &args);
  }
  std::shared_ptr<EalCard> card;
  rc = rc != 0 ? rc : open_emulated_card(name, args, &card);
  return rc != 0 ? rc : register_device(vdev->device, name, "raw_rio", std::move(card));
}

int vdev_remove(rte_vdev_device* vdev) {
  return unregister_device(rte_vdev_device_name(vdev));
}

/// Runs `work` on a virtual device's card. @return 0, or -1 with rte_errno, as the bus expects.
int with_card(rte_vdev_device* vdev, const std::function<int(EalCard&)>& work) {
  const std::lock_guard guard(control_lock());
  const std::shared_ptr<EalCard> card = EalCard::find(rte_vdev_device_name(vdev));
  const int rc = card == nullptr ? -ENODEV : work(*card);
  if (rc != 0) {
    rte_errno = -rc;
    return -1;
  }
  return 0;
}

int vdev_dma_map(rte_vdev_device* vdev, void* va, uint64_t iova, size_t len_bytes) {
  return with_card(vdev, [=](EalCard& card) { return card.dma_map(va, iova, len_bytes); });
}

int vdev_dma_unmap(rte_vdev_device* vdev, void* va, uint64_t /*iova*/, size_t len_bytes) {
  return with_card(vdev, [=](EalCard& card) { return card.dma_unmap(va, len_bytes); });
}

// constinit: a dynamic initialiser would run after the registrations below.
constinit rte_vdev_driver raw_rio_vdev = [] {
  rte_vdev_driver driver{};
  driver.probe = vdev_probe;
  driver.remove = vdev_remove;
  driver.dma_map = vdev_dma_map;
  driver.dma_unmap = vdev_dma_unmap;
  // Rings and BAR larger than a page must be contiguous for the card.
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  return driver;
}();

constexpr PciClass kClass = {
    .name = "raw",
    .prepare = [](OwnKeys*) -> PciClass::Probe {
      return [](rte_pci_device& pci, std::shared_ptr<EalCard> card) {
        return register_device(pci.device, pci.name, "raw_rio_pci", std::move(card));
      };
    },
    .remove = unregister_device,
};

RTE_INIT(raw_rio_class) {
  register_pci_class(kClass);
}

RIO_REGISTER_PMD_INFO(
    raw_rio,
    "wire=<emu:loop|emu:name|emu:fabric|shm:name|udp:name|relay:name> qps=<1-31> id=<destID> "
    "stepping=<inline|thread> early=<0|1> torn=<0|1> exact=<0|1> quirks=<0|1> faults=<seed:rate> "
    "pcie=<seed> "
    "topology=<file> at=<endpoint> pull=<0|1> members=<file> bind=<address> port=<number> "
    "patience=<s> loss=<seed:rate> board=<number> flights=<n> resting=<n> rx_contexts=<n> "
    "poisoned=<n> pass_over=<n> push_slots=<log2> barrier=<0|1> early_room=<n> rail=<0|1> "
    "tx_ring=<entries> rx_ring=<entries> dedicated_ring=<entries> "
    "doorbell_ring=<entries> dma_ring=<entries> event_ring=<entries> response_timeout_us=<us> "
    "receive_timeout_us=<us> retry_limit=<n> retry_delay_us=<us> vf_qps=<n> push=<0|1>; "
    "PCI: class=<raw|net|dma[:...]> ivshmem=<1>");

}  // namespace

RTE_PMD_REGISTER_VDEV(raw_rio, raw_rio_vdev);

}  // namespace rio::pmd
