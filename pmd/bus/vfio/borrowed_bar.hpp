/// @file
/// The BAR of a card that another program has open through VFIO.
#pragma once

#include <cstddef>
#include <string>

#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

/// Map it by a copy of that program's file descriptor (pidfd_getfd). Needed since kernels with
/// CONFIG_IO_STRICT_DEVMEM, as in distributions, map no BAR through sysfs once a program has opened
/// it, and VFIO's group opens only once. The mapping keeps the card open when that program ends:
/// until it is unmapped the card cannot be opened again. Control path. Needs the right to trace the
/// program, as root has. @param card bound to vfio-pci. @param prot of mmap(). @return 0; -ENOENT
/// (no program that may be traced has the card open), -EINVAL (the BAR is shorter than len_bytes),
/// or the kernel's error. Logs nothing.
[[nodiscard]] int borrow_bar(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                             size_t len_bytes, int prot, KernelMapping* out);

/// Map the beginning of a BAR through sysfs, or by borrow_bar() if the kernel reserves it for a
/// program that has it open. @param opened set: whether the file bar_path() could be opened.
/// @return 0, or the kernel's error. Logs nothing.
[[nodiscard]] int map_bar_beside(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                                 size_t len_bytes, int prot, KernelMapping* out, bool* opened);

/// The file of a card's BAR in sysfs.
[[nodiscard]] std::string bar_path(const PciPaths& paths, const PciCard& card);

}  // namespace rio::pmd::vfio
