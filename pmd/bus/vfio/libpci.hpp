/// @file
/// Runs libpci on a sysfs tree, with errors as return values: libpci itself would end the program.
/// Internal to pmd/bus/vfio.
#pragma once

#include <functional>

#include "pmd/bus/vfio/kernel.hpp"

struct pci_access;

namespace rio::pmd::vfio {

/// A function that uses libpci. An error leaves it by longjmp, so no object with a destructor may
/// live in it.
using PciStep = void (*)(pci_access* access, void* arg);

/// Run libpci, which is not thread-safe: one at a time. Control path. @param arg of `step`.
/// @param read called after the step, for what cannot fail.
/// @return 0, -ENODEV (no such tree), -EIO (libpci's message is logged).
[[nodiscard]] int run_libpci(const PciPaths& paths, PciStep step, void* arg,
                             const std::function<void(pci_access*)>& read = {});

}  // namespace rio::pmd::vfio
