/// @file
/// Inspects a card, through its BAR alone, even while another program uses it.
#pragma once

#include <memory>
#include <string>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// Map a card's BAR to read its registers: nothing is reset, no memory is made reachable, so the
/// bus has neither memory nor interrupts (-ENOTSUP), and another program may be using the card. If
/// a program opens it later, the kernel may remove the mapping: the next access raises SIGBUS.
/// vfio-pci keeps a device powered down while no program has it open; this opens such a device
/// through VFIO, without a reset. Control path, one thread. @param address as parse_address() takes
/// it. @param kernel outlives the bus. @return 0; -EINVAL (address), -ENODEV (no such device),
/// -EACCES, -EPERM (no rights, or the kernel is locked down), -ENXIO (no BAR), or the kernel's
/// error; logged.
[[nodiscard]] int map_bar(const std::string& address, const PciPaths& paths,
                          std::unique_ptr<Bus>* out, Kernel& kernel = real_kernel());

}  // namespace rio::pmd::vfio
