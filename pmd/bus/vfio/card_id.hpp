/// @file
/// A look at a card's identity, without opening it.
#pragma once

#include <cstdint>

#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

/// regs: ID.MAGIC, ID.HW_VERSION, ID.BUILD.
struct CardId {
  uint32_t magic = 0;
  uint32_t hw_version = 0;
  uint32_t build = 0;  ///< Unix time, 0 if the gateware does not say

  [[nodiscard]] bool is_card() const;   ///< the magic is right
  [[nodiscard]] bool all_ones() const;  ///< nothing answers
  [[nodiscard]] unsigned major() const { return (hw_version >> 16) & 0xFF; }
  [[nodiscard]] unsigned minor() const { return (hw_version >> 8) & 0xFF; }
  [[nodiscard]] unsigned patch() const { return hw_version & 0xFF; }
};

/// Read it through sysfs, or by borrow_bar(), beside the program that uses the card. vfio-pci keeps
/// a device that no program has open powered down: such a one is looked at through VFIO. Control
/// path.
/// @return 0, -ENXIO (the BAR is smaller than a page), -EAGAIN (powered down, and cannot be woken),
/// or what the kernel said (-EACCES: no rights). Only failures of VFIO are in the log.
[[nodiscard]] int read_card_id(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                               CardId* out);

}  // namespace rio::pmd::vfio
