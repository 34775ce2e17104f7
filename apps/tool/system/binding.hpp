/// @file
/// A device's driver: which it has, and how it gets another.
#pragma once

#include <string>

#include "apps/tool/global_options.hpp"
#include "apps/tool/system/sysfs_writer.hpp"
#include "pmd/api/pci.hpp"

namespace rio::tool {

/// Find a device that is to be changed. Refused, unless `force`: one that is no card of ours, and
/// one that a program uses. @param verb what is to be done with it, for the message.
/// @return 0, -EINVAL, -ENODEV, -EPERM (not ours), -EBUSY; said on stderr.
[[nodiscard]] int find_to_change(const GlobalOptions& context, const std::string& address,
                                 const std::string& verb, bool force, pci::PciCard* out);

/// Driver that a card wants: vfio-pci where it is in an IOMMU group, else uio_pci_generic.
[[nodiscard]] std::string wanted_driver(const pci::PciCard& card);

/// Whether a driver of this name is loaded.
[[nodiscard]] bool driver_loaded(const pci::PciPaths& paths, const std::string& driver);

/// Bind a device, whatever has it now. @param driver "default": whichever the kernel chooses.
/// @return 0 or -errno, said on stderr.
[[nodiscard]] int bind_card(const GlobalOptions& context, SysfsWriter& writer,
                            const pci::PciCard& card, const std::string& driver);

/// Leave a device without a driver. @return 0 or -errno, said on stderr.
[[nodiscard]] int unbind_card(const GlobalOptions& context, SysfsWriter& writer,
                              const pci::PciCard& card);

/// Driver that a device has now, empty if none.
[[nodiscard]] std::string driver_of(const pci::PciPaths& paths, const std::string& address);

}  // namespace rio::tool
