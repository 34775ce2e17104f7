#include "pmd/bus/vfio/pci_scan.hpp"

extern "C" {
#include <pci/pci.h>
}

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/log.hpp"
#include "base/number.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/inspect.hpp"
#include "pmd/bus/vfio/libpci.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr int kFill = PCI_FILL_IDENT | PCI_FILL_BASES | PCI_FILL_SIZES | PCI_FILL_NUMA_NODE |
                      PCI_FILL_IOMMU_GROUP | PCI_FILL_DRIVER | PCI_FILL_SUBSYS;

void scan(pci_access* access, void*) {
  pci_scan_bus(access);
  for (pci_dev* device = access->devices; device != nullptr; device = device->next) {
    pci_fill_info(device, kFill);
    // Read now, so that no later call can fail.
    (void)pci_get_string_property(device, PCI_FILL_DRIVER);
    (void)pci_get_string_property(device, PCI_FILL_IOMMU_GROUP);
  }
}

/// Converts libpci's description of a device.
PciCard describe(pci_dev* device) {
  PciCard card;
  card.address = name::PciAddress{static_cast<uint32_t>(device->domain), device->bus, device->dev,
                                  device->func}
                     .text();
  card.vendor = device->vendor_id;
  card.device = device->device_id;
  card.subsystem_vendor = device->subsys_vendor_id;
  card.subsystem = device->subsys_id;
  if (const char* driver = pci_get_string_property(device, PCI_FILL_DRIVER); driver != nullptr) {
    card.driver = driver;
  }
  if (const char* group = pci_get_string_property(device, PCI_FILL_IOMMU_GROUP); group != nullptr) {
    unsigned number = 0;
    card.iommu_group =
        base::read_number(group, 0, INT_MAX, &number) ? static_cast<int>(number) : -1;
  }
  card.numa_node = device->numa_node;
  for (size_t i = 0; i < card.bar_bytes.size(); ++i) {
    card.bar_bytes[i] = device->size[i];
  }
  if (card.vendor == regs::kPciIvshmemVendor && card.device == regs::kPciIvshmemDevice) {
    card.bar = 2;
  }
  return card;
}

/// Whether the ids are those of the reference gateware.
bool has_card_ids(const PciCard& card) {
  return card.vendor == regs::kPciVendor && card.device == regs::kPciDevice &&
         card.subsystem_vendor == regs::kPciSubsystemVendor &&
         card.subsystem == regs::kPciSubsystem;
}

int scan_all(const PciPaths& paths, std::vector<PciCard>* out) {
  return run_libpci(paths, scan, nullptr, [out](pci_access* access) {
    for (pci_dev* device = access->devices; device != nullptr; device = device->next) {
      out->push_back(describe(device));
    }
    std::sort(out->begin(), out->end(),
              [](const PciCard& a, const PciCard& b) { return a.address < b.address; });
  });
}

}  // namespace

int parse_address(const std::string& text, name::PciAddress* out) {
  if (text.find(':') == std::string::npos || !name::read_pci_address(text, out)) {
    base::log_error(
        "\"%s\" is not a PCI address: write it as lspci -D does, for example 0000:03:00.0",
        text.c_str());
    return -EINVAL;
  }
  return 0;
}

int find_cards(const PciPaths& paths, std::vector<PciCard>* cards, Kernel& kernel) {
  std::vector<PciCard> all;
  if (const int rc = scan_all(paths, &all); rc != 0) {
    return rc;
  }
  std::erase_if(all, [&](const PciCard& card) {
    if (has_card_ids(card)) {
      return false;
    }
    CardId id;  // most ivshmem devices are not cards: nothing is logged
    return card.bar != 2 || read_card_id(paths, card, &id, kernel) != 0 || !id.is_card();
  });
  *cards = std::move(all);
  return 0;
}

int find_card(const PciPaths& paths, const std::string& address, PciCard* card) {
  name::PciAddress wanted;
  if (const int rc = parse_address(address, &wanted); rc != 0) {
    return rc;
  }
  const std::string normal = wanted.text();
  std::vector<PciCard> all;
  if (const int rc = scan_all(paths, &all); rc != 0) {
    return rc;
  }
  std::string known;
  for (const PciCard& candidate : all) {
    if (candidate.address == normal) {
      *card = candidate;
      return 0;
    }
    if (has_card_ids(candidate)) {
      known += " " + candidate.address;
    }
  }
  base::log_error(
      "no PCI device %s; cards of this kind:%s. If one is missing: echo 1 > "
      "/sys/bus/pci/rescan",
      normal.c_str(), known.empty() ? " none" : known.c_str());
  return -ENODEV;
}

}  // namespace rio::pmd::vfio
