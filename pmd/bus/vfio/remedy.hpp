/// @file
/// Commands that mend common faults of a card's binding.
#pragma once

#include <string>
#include <vector>

#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

/// Command that binds a device to a driver.
[[nodiscard]] std::string bind_command(const std::string& address, const std::string& driver);

/// Command that brings back a card which reads all ones.
[[nodiscard]] std::string rescan_command(const std::string& address);

/// Log that a step to a card failed. @param rc -errno. @param what "cannot open /dev/uio0". @param
/// remedy may be empty. @return rc.
int log_failed(const PciCard& card, int rc, const std::string& what,
               const std::string& remedy = "");

/// Log that a card's BAR is too small, or cannot be mapped. @return -ENXIO.
[[nodiscard]] int refuse_bar(const PciCard& card, uint64_t len_bytes, bool can_be_mapped = true);

/// A device of a card's IOMMU group.
struct Neighbour {
  std::string address;
  std::string driver;
};

/// Devices of an IOMMU group other than `card` that have a driver which VFIO does not accept, in
/// the order of their addresses.
[[nodiscard]] std::vector<Neighbour> foreign_neighbours(const PciPaths& paths, const PciCard& card,
                                                        Kernel& kernel = real_kernel());

/// The other devices of the group as "0000:03:00.1 (driver foo), …"; empty if there is none.
[[nodiscard]] std::string group_neighbours(const PciPaths& paths, const PciCard& card,
                                           Kernel& kernel = real_kernel());

}  // namespace rio::pmd::vfio
