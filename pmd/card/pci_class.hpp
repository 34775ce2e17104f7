/// @file
/// A PCI card as devices of several classes. EAL gives a PCI device to one driver only: that is
/// librte_common_rio.so's, and the plug-ins of the classes join it.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "pmd/card/card_args.hpp"
#include "pmd/card/eal_card.hpp"

struct rte_pci_device;

namespace rio::pmd {

/// A class of devices. All functions are control path, under control_lock().
struct PciClass {
  /// Makes the device, in a primary process or a secondary one. @return 0 or -errno; logged.
  using Probe = std::function<int(rte_pci_device&, std::shared_ptr<EalCard>)>;

  std::string_view name;  ///< in class=
  /// Begin to probe a card. @param keys gets those that the class has besides the card's. @return
  /// called once the arguments were parsed and the card is open.
  Probe (*prepare)(OwnKeys* keys);
  /// Remove the device of this name. @return 0; -ENODEV: there is none; other -errno, logged.
  int (*remove)(const char* name);
};

/// Add a class. When a plug-in is loaded.
void register_pci_class(const PciClass& one);

}  // namespace rio::pmd
