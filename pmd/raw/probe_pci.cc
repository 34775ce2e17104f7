// PCI cards, and QEMU's ivshmem as a BAR that a card model on the other side serves.

#include <bus_pci_driver.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>

#include "pmd/bus/eal/eal_pci_bus.hpp"
#include "pmd/bus/log.hpp"
#include "pmd/raw/devargs.hpp"
#include "pmd/raw/probe.hpp"

namespace rio::pmd {
namespace {

constexpr rte_pci_id kPciIds[] = {
    {RTE_PCI_DEVICE(regs::kPciVendor, regs::kPciDevice)},
    {RTE_PCI_DEVICE(regs::kPciIvshmemVendor, regs::kPciIvshmemDevice)},
    {},
};

/// A card that EAL has mapped. @return 1: not a card of ours (ivshmem without the magic).
int find_card(rte_pci_device* pci, FoundCard* found) {
  const bool ivshmem = pci->id.vendor_id == regs::kPciIvshmemVendor;
  const unsigned bar_index = ivshmem ? 2 : 0;
  if (rte_eal_process_type() == RTE_PROC_PRIMARY) {
    found->shared.set_card_number(SharedCard::next_card_number());
  } else if (const int rc = found->shared.attach(pci->name); rc != 0) {
    return rc;
  }
  std::unique_ptr<EalPciBus> bus;
  if (const int rc = EalPciBus::create(pci, bar_index, found->shared.zone_tag(own_token()), &bus);
      rc != 0) {
    return rc;
  }
  const uint32_t magic = bus->bar().read32(regs::id::magic());
  if (magic != regs::kMagic) {
    if (ivshmem) {
      return 1;
    }
    log_error("%s: BAR%u holds 0x%08x where a card holds 0x%08x: %s", pci->name, bar_index, magic,
              regs::kMagic,
              magic == regs::kAllOnes ? "the card does not answer, reset or replug it"
                                      : "other gateware, or a wrong byte order");
    return -ENODEV;
  }
  found->bus = std::move(bus);
  return 0;
}

int pci_probe(rte_pci_driver* /*driver*/, rte_pci_device* pci) {
  const std::lock_guard guard(control_lock());
  RawArgs args;
  args.base_dest_id = 0x100;
  const rte_devargs* const given = pci->device.devargs;
  if (const int rc = parse_devargs(pci->name, given != nullptr ? given->args : "", false, &args);
      rc != 0) {
    return rc;
  }
  FoundCard found;
  if (const int rc = find_card(pci, &found); rc != 0) {
    return rc;
  }
  std::unique_ptr<RawDevice> device;
  if (const int rc = RawDevice::create(pci->name, args, std::move(found), &device); rc != 0) {
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
