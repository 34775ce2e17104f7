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

namespace rio {

/// Control path: one thread, since libpci is not thread-safe. Functions return 0 or -errno.
namespace pci = pmd::vfio;

}  // namespace rio
