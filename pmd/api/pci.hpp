/// @file
/// Inspect the PCI cards of a machine: which there are, what the system and their configuration
/// space say of them, and their registers, beside the program that uses them. For tools: a program
/// that uses a card opens it by its name (riopmd.hpp).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/card_id.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_config.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"
#include "pmd/bus/vfio/remedy.hpp"

/// Control path: one thread, since libpci is not thread-safe. Functions return 0 or -errno.
namespace rio::pci {

using pmd::vfio::CardId;
using pmd::vfio::Neighbour;
using pmd::vfio::PciCard;
using pmd::vfio::PciConfig;
using pmd::vfio::PciPaths;

using pmd::vfio::find_card;
using pmd::vfio::find_cards;
using pmd::vfio::link_speed_name;
using pmd::vfio::read_config;
using pmd::vfio::uncorrectable_names;

/// Read a card's identity without opening it. @return as vfio::read_card_id().
[[nodiscard]] int read_card_id(const PciPaths& paths, const PciCard& card, CardId* out);

/// Map a card's BAR to read its registers: nothing is reset, and another program may be using it.
/// @param address as find_card() takes it. @param out has no memory and no interrupts.
/// @return as vfio::BarBus::open(), logged.
[[nodiscard]] int map_bar(const std::string& address, const PciPaths& paths,
                          std::unique_ptr<pmd::Bus>* out);

/// Devices of the card's IOMMU group whose driver VFIO does not accept, by address.
[[nodiscard]] std::vector<Neighbour> foreign_neighbours(const PciPaths& paths, const PciCard& card);
/// The devices of foreign_neighbours() as "0000:03:00.1 (driver foo), …"; empty if there is none.
[[nodiscard]] std::string group_neighbours(const PciPaths& paths, const PciCard& card);

/// Read a small file of sysfs or proc, without the end of its last line. Does not block.
/// @return 0; -EFBIG (more than 64 MiB), -ESPIPE (a pipe), -errno.
[[nodiscard]] int read_text(const std::string& path, std::string* out);
/// Write a small file of sysfs. @return 0, -errno.
[[nodiscard]] int write_text(const std::string& path, const std::string& text);
/// Last part of a link's target, such as the driver of a device. @return 0; -ENOENT, -EINVAL (not a
/// link), -errno.
[[nodiscard]] int link_name(const std::string& path, std::string* out);

}  // namespace rio::pci
