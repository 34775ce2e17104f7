/// @file
/// The BAR of a card that another program has open through VFIO.
#pragma once

#include <cstddef>

#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

/// Map it by a copy of that program's file descriptor (pidfd_getfd). A kernel with
/// CONFIG_IO_STRICT_DEVMEM, as distributions have it, maps no BAR through sysfs once vfio-pci has
/// claimed it for a program; nor can VFIO's group be opened twice. The mapping keeps the card open
/// when the program ends: it cannot be opened anew before the mapping is gone.
/// Control path. Takes the right to trace the program, as root has it.
/// @param card bound to vfio-pci. @param prot of mmap(). @param va the caller unmaps it.
/// @return 0; -ENOENT (no program that may be looked at has the card open), -EINVAL (the BAR is
/// shorter than len_bytes), or what the kernel said. Nothing is logged.
[[nodiscard]] int borrow_bar(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                             size_t len_bytes, int prot, void** va);

}  // namespace rio::pmd::vfio
