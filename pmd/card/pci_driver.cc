// Drivers of EAL's PCI bus: for cards, and for QEMU's ivshmem devices whose BAR a card model serves
// on the other side. class= chooses what a card is to DPDK.

#include <bus_pci_driver.h>
#include <rte_devargs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "base/number.hpp"
#include "pmd/card/open_card.hpp"
#include "pmd/card/pci_class.hpp"
#include "pmd/card/pmd_info.hpp"

namespace rio::pmd {
namespace {

constexpr std::array<std::string_view, 3> kClasses = {"raw", "net", "dma"};
constexpr const char* kClassValues = "raw, net or dma, or several with colons between: net:dma";

/// The classes whose plug-ins are loaded, in the order of kClasses; null: it is not loaded.
std::array<const PciClass*, kClasses.size()>& loaded() {
  static std::array<const PciClass*, kClasses.size()> classes{};
  return classes;
}

using Chosen = std::vector<const PciClass*>;

/// The classes that class= names; without it the first one that is loaded. @return 1: none is.
int choose(const char* card, const std::vector<std::string>& args, Chosen* out) {
  constexpr std::string_view kKey = "class=";
  const auto given = std::ranges::find_if(
      args, [kKey](const std::string& piece) { return piece.starts_with(kKey); });
  if (given == args.end()) {
    const auto first = std::ranges::find_if(loaded(), [](auto* one) { return one != nullptr; });
    if (first == loaded().end()) {
      return 1;  // this library alone was loaded
    }
    out->push_back(*first);
    return 0;
  }
  std::string_view list = std::string_view(*given).substr(kKey.size());
  for (size_t colon = 0; colon != std::string_view::npos; list.remove_prefix(colon + 1)) {
    colon = list.find(':');
    const std::string_view name = list.substr(0, colon);
    const auto at = std::ranges::find(kClasses, name);
    if (at == kClasses.end()) {
      base::log_error("%s: bad value '%s' for argument 'class': allowed is %s", card,
                      base::printable(name).c_str(), kClassValues);
      return -EINVAL;
    }
    const PciClass* const one = loaded()[static_cast<size_t>(at - kClasses.begin())];
    if (one == nullptr) {
      base::log_error("%s: class=%s needs its plug-in: load it, -d librte_%s_rio.so", card,
                      at->data(), at->data());
      return -ENOENT;
    }
    out->push_back(one);
    if (colon == std::string_view::npos) {
      break;
    }
  }
  return 0;
}

int remove(rte_pci_device* pci) {
  const std::lock_guard guard(control_lock());
  for (const PciClass* const one : loaded()) {
    const int rc = one == nullptr ? 0 : one->remove(pci->name);
    if (rc != 0 && rc != -ENODEV) {
      return rc;
    }
  }
  return 0;
}

[[nodiscard]] const char* args_of(const rte_pci_device& pci) {
  return pci.device.devargs == nullptr ? nullptr : pci.device.devargs->args;
}

/// Makes the devices of a card; all or none. @param pieces its arguments. @param own keys besides
/// those of the card and of its classes.
int probe_card(rte_pci_device* pci, const std::vector<std::string>& pieces, OwnKeys own) {
  Chosen chosen;
  if (const int rc = choose(pci->name, pieces, &chosen); rc != 0) {
    return rc;
  }
  own.push_back({"class", kClassValues, [](std::string_view) { return true; }});  // chosen above
  std::vector<PciClass::Probe> probes;
  std::ranges::transform(chosen, std::back_inserter(probes),
                         [&own](const PciClass* one) { return one->prepare(&own); });
  CardArgs args;
  args.base_dest_id = 0x100;
  int rc = parse_devargs(pci->name, args_of(*pci), name::Place::kPciDevice, &args, own);
  std::shared_ptr<EalCard> card;
  rc = rc != 0 ? rc : open_pci_card(pci, args, &card);
  if (rc != 0) {
    return rc;
  }
  for (const PciClass::Probe& probe : probes) {
    rc = rc != 0 ? rc : probe(*pci, card);
  }
  if (rc != 0) {
    (void)remove(pci);
  }
  return rc;
}

int probe(rte_pci_driver* /*driver*/, rte_pci_device* pci) {
  const std::lock_guard guard(control_lock());
  std::vector<std::string> pieces;
  const int rc = split_devargs(pci->name, args_of(*pci), &pieces);
  return rc != 0 ? rc : probe_card(pci, pieces, {});
}

/// Most ivshmem devices are not cards, and what they share is other programs' memory: one is mapped
/// only if its argument ivshmem=1 says that it is a card.
int probe_ivshmem(rte_pci_driver* /*driver*/, rte_pci_device* pci) {
  const std::lock_guard guard(control_lock());
  std::vector<std::string> pieces;
  if (split_devargs(pci->name, args_of(*pci), &pieces) != 0 ||
      std::ranges::find(pieces, "ivshmem=1") == pieces.end()) {
    return 1;
  }
  if (const int rc = rte_pci_map_device(pci); rc != 0) {
    base::log_error("%s: cannot map it (%d): bind it, dpdk-devbind.py -b vfio-pci %s", pci->name,
                    rc, pci->name);
    return rc;
  }
  const int rc = probe_card(
      pci, pieces, {{"ivshmem", "1", [](std::string_view value) { return value == "1"; }}});
  if (rc != 0) {
    rte_pci_unmap_device(pci);
  }
  return rc;
}

int remove_ivshmem(rte_pci_device* pci) {
  const int rc = remove(pci);
  if (rc == 0) {
    rte_pci_unmap_device(pci);
  }
  return rc;
}

constexpr rte_pci_id kCards[] = {kPciIds[0], {}};
constexpr rte_pci_id kIvshmems[] = {kPciIds[1], {}};

// constinit: a dynamic initialiser would run after the registrations below.
constinit rte_pci_driver rio_pci = [] {
  rte_pci_driver driver{};
  driver.id_table = kCards;
  driver.probe = probe;
  driver.remove = remove;
  driver.drv_flags = RTE_PCI_DRV_NEED_MAPPING;
  return driver;
}();
constinit rte_pci_driver rio_ivshmem = [] {
  rte_pci_driver driver{};
  driver.id_table = kIvshmems;
  driver.probe = probe_ivshmem;
  driver.remove = remove_ivshmem;
  return driver;
}();

}  // namespace

void register_pci_class(const PciClass& one) {
  loaded().at(static_cast<size_t>(std::ranges::find(kClasses, one.name) - kClasses.begin())) = &one;
}

RTE_PMD_REGISTER_PCI(rio_pci, rio_pci);
RTE_PMD_REGISTER_PCI(rio_ivshmem, rio_ivshmem);

}  // namespace rio::pmd
