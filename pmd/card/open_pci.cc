// PCI cards, and QEMU's ivshmem as a BAR that a card model on the other side serves.

#include <bus_pci_driver.h>
#include <rte_eal.h>

#include "base/log.hpp"
#include "pmd/bus/eal/eal_pci_bus.hpp"
#include "pmd/card/open_card.hpp"

namespace rio::pmd {
namespace {

/// @return 1: not a card of ours.
int find_card(rte_pci_device* pci, FoundCard* found) {
  const bool ivshmem = pci->id.vendor_id == regs::kPciIvshmemVendor;
  const unsigned bar_index = ivshmem ? 2 : 0;
  if (rte_eal_process_type() == RTE_PROC_PRIMARY) {
    found->shared.number_it();
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
    base::log_error("%s: BAR%u holds 0x%08x where a card holds 0x%08x: %s", pci->name, bar_index,
                    magic, regs::kMagic,
                    magic == regs::kAllOnes ? "the card does not answer, reset or replug it"
                                            : "other gateware, or a wrong byte order");
    return -ENODEV;
  }
  found->bus = std::move(bus);
  return 0;
}

}  // namespace

int open_pci_card(rte_pci_device* pci, const CardArgs& args, std::shared_ptr<EalCard>* out) {
  FoundCard found;
  const int rc = find_card(pci, &found);
  return rc != 0 ? rc : EalCard::create(pci->name, args, std::move(found), out);
}

}  // namespace rio::pmd
