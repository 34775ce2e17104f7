// Virtual devices dma_rio0, dma_rio1…: a DMA queue of an emulated card, or of any card that another
// device has opened.

#include <bus_vdev_driver.h>
#include <rte_eal.h>

#include <cerrno>
#include <mutex>

#include "base/log.hpp"
#include "pmd/card/open_card.hpp"
#include "pmd/dma/device.hpp"

namespace rio::pmd {
namespace {

int probe(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  if (name == nullptr) {
    return -EINVAL;
  }
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    base::log_error("%s: DMA devices are the primary process's: plug it in there", name);
    return -ENOTSUP;
  }
  const std::lock_guard guard(control_lock());
  std::shared_ptr<EalCard> card;
  std::unique_ptr<DmaDevice> device;
  int qp = -1;
  int rc = open_any_card(name, rte_vdev_device_args(vdev), {}, &card, &qp);
  rc = rc != 0 ? rc : DmaDevice::create(name, std::move(card), qp, &device);
  if (rc != 0) {
    return rc;
  }
  // dmadev wants private memory for each device; ours is a C++ object instead.
  rte_dma_dev* const dev = rte_dma_pmd_allocate(name, vdev->device.numa_node, 1);
  if (dev == nullptr) {
    base::log_error(
        "%s: no room for a DMA device: another one has this name, or there are too many "
        "(rte_dma_dev_max())",
        name);
    return -ENOMEM;
  }
  dev->device = &vdev->device;
  dev->dev_ops = &kDmaOps;
  set_hot_functions(*device.release(), dev->fp_obj);
  dev->state = RTE_DMA_DEV_READY;
  return 0;
}

int remove(rte_vdev_device* vdev) {
  const char* const name = rte_vdev_device_name(vdev);
  const int id = name == nullptr ? -1 : rte_dma_get_dev_id_by_name(name);
  if (id < 0) {
    return -ENODEV;
  }
  const std::lock_guard guard(control_lock());
  const DmaDevice* const device = find_dma_device(static_cast<int16_t>(id));
  if (device != nullptr && device->started()) {
    rte_dma_stop(static_cast<int16_t>(id));
  }
  return rte_dma_pmd_release(name);
}

// constinit: a dynamic initialiser would run after the registration below.
constinit rte_vdev_driver dma_rio = [] {
  rte_vdev_driver driver{};
  driver.probe = probe;
  driver.remove = remove;
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  return driver;
}();

// The text that dpdk-pmdinfo.py reads from the plug-in: one line of JSON after "PMD_INFO_STRING= ".
[[gnu::used, gnu::retain]] constexpr char kVdevInfo[] =
    "PMD_INFO_STRING= {\"name\" : \"dma_rio\", \"params\" : \""
    "card=<name> qp=<number>, or arguments of raw_rio for an emulated card of its own"
    "\", \"pci_ids\" : []}";

}  // namespace

RTE_PMD_REGISTER_VDEV(dma_rio, dma_rio);

}  // namespace rio::pmd
