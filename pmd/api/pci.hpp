/// @file
/// Inspect the PCI cards of a machine: which there are, what the system and their configuration
/// space say of them, and their registers, beside the program that uses them. For tools: a program
/// that uses a card opens it by its name (riopmd.hpp).
#pragma once

#include "pmd/bus/vfio/inspect.hpp"
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
using pmd::vfio::foreign_neighbours;
using pmd::vfio::group_neighbours;
using pmd::vfio::link_name;
using pmd::vfio::link_speed_name;
using pmd::vfio::map_bar;
using pmd::vfio::read_card_id;
using pmd::vfio::read_config;
using pmd::vfio::read_text;
using pmd::vfio::uncorrectable_names;
using pmd::vfio::write_text;

}  // namespace rio::pci
