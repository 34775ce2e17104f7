/// @file
/// A real card, through the driver that it is bound to: VFIO or UIO.
#pragma once

#include <memory>

#include "fpga/name/card_name.hpp"
#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// Open a card, which must be bound to vfio-pci, uio_pci_generic or igb_uio. Checks the BAR's
/// magic. The card must be stopped before the bus is destroyed, which frees the memory of
/// dma_alloc(); its alignment is at most 2 MiB. Control path, one thread; all errors are logged
/// with the command that mends them. @param address as parse_address() takes it. @param kernel
/// outlives the bus.
/// @return 0; -EINVAL (address), -ENODEV (no such device, no group, all ones), -EBUSY (bound to
/// another driver, or in use), -EACCES, -EPERM (group not viable), -ENXIO (not a message card), or
/// the kernel's error.
[[nodiscard]] int open_vfio_bus(const name::Pci& name, const PciPaths& paths,
                                std::unique_ptr<Bus>* out, Kernel& kernel = real_kernel());

}  // namespace rio::pmd::vfio
