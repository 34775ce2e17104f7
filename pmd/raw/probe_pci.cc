// PCI cards, including QEMU's ivshmem devices whose BAR a card model serves on the other side.

#include <bus_pci_driver.h>
#include <rte_dev.h>
#include <rte_devargs.h>

#include "pmd/card/open_card.hpp"
#include "pmd/raw/device.hpp"

namespace rio::pmd {
namespace {

constexpr rte_pci_id kPciIds[] = {
    {RTE_PCI_DEVICE(regs::kPciVendor, regs::kPciDevice)},
    {RTE_PCI_DEVICE(regs::kPciIvshmemVendor, regs::kPciIvshmemDevice)},
    {},
};

int pci_probe(rte_pci_driver* /*driver*/, rte_pci_device* pci) {
  const std::lock_guard guard(control_lock());
  CardArgs args;
  args.base_dest_id = 0x100;
  const rte_devargs* const given = pci->device.devargs;
  if (const int rc = parse_devargs(pci->name, given != nullptr ? given->args : "",
                                   name::Place::kPciDevice, &args);
      rc != 0) {
    return rc;
  }
  std::shared_ptr<EalCard> card;
  if (const int rc = open_pci_card(pci, args, &card); rc != 0) {
    return rc;
  }
  return register_device(&pci->device, "raw_rio_pci", pci->device.numa_node,
                         std::make_unique<RawDevice>(pci->name, std::move(card)));
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
