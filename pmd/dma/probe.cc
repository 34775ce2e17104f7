// Virtual devices dma_rio0, dma_rio1…: a DMA queue of an emulated card, or of any card that another
// device has opened. Of a PCI card with class=dma, too.

#include <bus_pci_driver.h>
#include <bus_vdev_driver.h>
#include <rte_eal.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include "base/log.hpp"
#include "pmd/card/open_card.hpp"
#include "pmd/card/pci_class.hpp"
#include "pmd/card/pmd_info.hpp"
#include "pmd/dma/device.hpp"

namespace rio::pmd {
namespace {

/// Makes a device. @param qp -1: any.
int make(rte_device& parent, const char* name, std::shared_ptr<EalCard> card, int qp) {
  const int node = card->bus().numa_node();
  std::unique_ptr<DmaDevice> device;
  if (const int rc = DmaDevice::create(name, std::move(card), qp, &device); rc != 0) {
    return rc;
  }
  parent.numa_node = node;  // as dmadev reports it
  // dmadev wants private memory for each device; ours is a C++ object instead.
  rte_dma_dev* const dev = rte_dma_pmd_allocate(name, node, 1);
  if (dev == nullptr) {
    base::log_error(
        "%s: no room for a DMA device: another one has this name, or there are too many "
        "(rte_dma_dev_max())",
        name);
    return -ENOMEM;
  }
  dev->device = &parent;
  dev->dev_ops = &kDmaOps;
  set_hot_functions(*device.release(), dev->fp_obj);
  dev->state = RTE_DMA_DEV_READY;
  return 0;
}

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
  int qp = -1;
  const int rc = open_any_card(name, rte_vdev_device_args(vdev), {}, &card, &qp);
  return rc != 0 ? rc : make(vdev->device, name, std::move(card), qp);
}

int remove(const char* name) {
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

// On a PCI address a DMA device takes the last queue pair: an Ethernet port there takes the first
// one and those behind it.
constexpr PciClass kClass = {
    .name = "dma",
    .prepare = [](OwnKeys*) -> PciClass::Probe {
      return [](rte_pci_device& pci, std::shared_ptr<EalCard> card) {
        const int last = static_cast<int>(card->queue_pairs()) - 1;
        return card->is_primary() ? make(pci.device, pci.name, std::move(card), last) : 0;
      };
    },
    .remove = remove,
};

RTE_INIT(dma_rio_class) {
  register_pci_class(kClass);
}

// constinit: a dynamic initialiser would run after the registration below.
constinit rte_vdev_driver dma_rio = [] {
  rte_vdev_driver driver{};
  driver.probe = probe;
  driver.remove = [](rte_vdev_device* vdev) { return remove(rte_vdev_device_name(vdev)); };
  driver.drv_flags = RTE_VDEV_DRV_NEED_IOVA_AS_VA;
  return driver;
}();

RIO_REGISTER_PMD_INFO(dma_rio,
                      "card=<name> qp=<number>, or arguments of raw_rio for an emulated card of "
                      "its own, or for a PCI card with class=dma");

}  // namespace

RTE_PMD_REGISTER_VDEV(dma_rio, dma_rio);

}  // namespace rio::pmd
