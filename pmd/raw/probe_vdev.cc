// Virtual devices raw_rio0, raw_rio1…: emulated cards.

#include <bus_vdev_driver.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include <functional>

#include "pmd/card/open_card.hpp"
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
  if (rte_eal_process_type() == RTE_PROC_PRIMARY) {  // a secondary has the primary's arguments
    const char* const given = rte_vdev_device_args(vdev);
    if (const int rc = parse_devargs(name, given, name::Place::kDevice, &args); rc != 0) {
      return rc;
    }
  }
  std::shared_ptr<EalCard> card;
  if (const int rc = open_emulated_card(name, args, &card); rc != 0) {
    return rc;
  }
  return register_device(&vdev->device, "raw_rio", vdev->device.numa_node,
                         std::make_unique<RawDevice>(name, std::move(card)));
}

int vdev_remove(rte_vdev_device* vdev) {
  return unregister_device(rte_vdev_device_name(vdev));
}

/// Runs `work` on a virtual device. @return 0, or -1 with rte_errno, as the bus expects.
int with_vdev(rte_vdev_device* vdev, const std::function<int(RawDevice&)>& work) {
  const std::lock_guard guard(control_lock());
  int rc = -ENODEV;
  for (const uint16_t id : device_ids()) {
    RawDevice* const device = find_device(id);
    if (device->name() == rte_vdev_device_name(vdev)) {
      rc = work(*device);
    }
  }
  if (rc != 0) {
    rte_errno = -rc;
    return -1;
  }
  return 0;
}

int vdev_dma_map(rte_vdev_device* vdev, void* va, uint64_t iova, size_t len_bytes) {
  return with_vdev(
      vdev, [=](RawDevice& device) { return device.eal_card().dma_map(va, iova, len_bytes); });
}

int vdev_dma_unmap(rte_vdev_device* vdev, void* va, uint64_t /*iova*/, size_t len_bytes) {
  return with_vdev(vdev,
                   [=](RawDevice& device) { return device.eal_card().dma_unmap(va, len_bytes); });
}

constexpr rte_vdev_driver make_driver() {
  rte_vdev_driver driver{};
  driver.probe = vdev_probe;
  driver.remove = vdev_remove;
  driver.dma_map = vdev_dma_map;
  driver.dma_unmap = vdev_dma_unmap;
  // Rings and BAR larger than a page must be contiguous for the card.
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  return driver;
}

// constinit: a dynamic initialiser would run after the registration below.
constinit rte_vdev_driver raw_rio_vdev = make_driver();

}  // namespace

RTE_PMD_REGISTER_VDEV(raw_rio, raw_rio_vdev);

}  // namespace rio::pmd
