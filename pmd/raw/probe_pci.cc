// PCI cards, and QEMU's ivshmem as a BAR that a card model on the other side serves.

#include <bus_pci_driver.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>

#include "pmd/raw/devargs.hpp"
#include "pmd/raw/probe.hpp"

namespace rio::pmd {
namespace {

constexpr rte_pci_id kPciIds[] = {
    {RTE_PCI_DEVICE(regs::kPciVendor, regs::kPciDevice)},
    {RTE_PCI_DEVICE(regs::kPciIvshmemVendor, regs::kPciIvshmemDevice)},
    {},
};

int pci_probe(rte_pci_driver* /*driver*/, rte_pci_device* pci) {
  const std::lock_guard guard(control_lock());
  RawArgs args;
  args.base_dest_id = 0x100;
  const rte_devargs* const given = pci->device.devargs;
  if (const int rc = parse_devargs(pci->name, given != nullptr ? given->args : "", false, &args);
      rc != 0) {
    return rc;
  }
  const unsigned bar_index = pci->id.vendor_id == regs::kPciIvshmemVendor ? 2 : 0;
  std::unique_ptr<RawDevice> device;
  if (const int rc = RawDevice::create_pci(pci, bar_index, args, &device); rc != 0) {
    return rc;
  }
  return register_device(&pci->device, "raw_rio_pci", pci->device.numa_node, std::move(device));
}

int pci_remove(rte_pci_device* pci) {
  return unregister_device(pci->name);
}

constexpr rte_pci_driver make_driver() {
  rte_pci_driver driver{};
  driver.id_table = kPciIds;
  driver.probe = pci_probe;
  driver.remove = pci_remove;
  driver.drv_flags = RTE_PCI_DRV_NEED_MAPPING;
  return driver;
}

// constinit: a dynamic initialiser would run after the registration below.
constinit rte_pci_driver raw_rio_pci = make_driver();

}  // namespace

RTE_PMD_REGISTER_PCI(raw_rio_pci, raw_rio_pci);

}  // namespace rio::pmd
