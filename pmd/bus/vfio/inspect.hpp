/// @file
/// Inspects a card without opening it, even while a program uses it: its identity, its registers.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

/// regs: ID.MAGIC, ID.BLOCK, ID.HW_VERSION, ID.BUILD.
struct CardId {
  uint32_t magic = 0;
  uint32_t block = 0;
  uint32_t hw_version = 0;
  uint32_t build = 0;  ///< Unix time, 0 if the gateware does not say

  /// The magic is that of a card.
  [[nodiscard]] bool is_card() const { return magic == regs::kMagic; }
  /// The edition of the contract that the card keeps; the driver refuses one before
  /// regs::kEdition.
  [[nodiscard]] unsigned edition() const { return regs::id::Block::version.get(block); }
  /// No device answers.
  [[nodiscard]] bool all_ones() const { return magic == regs::kAllOnes; }
  [[nodiscard]] unsigned major() const { return (hw_version >> 16) & 0xFF; }
  [[nodiscard]] unsigned minor() const { return (hw_version >> 8) & 0xFF; }
  [[nodiscard]] unsigned patch() const { return hw_version & 0xFF; }
};

/// Map the BAR of a card that another program has open through VFIO, by a copy of that program's
/// file descriptor (pidfd_getfd). Needed since kernels with CONFIG_IO_STRICT_DEVMEM, as in
/// distributions, map no BAR through sysfs once a program has opened it, and VFIO's group opens
/// only once. The mapping keeps the card open when that program ends: until it is unmapped the card
/// cannot be opened again. Control path. Needs the right to trace the program, as root has. @param
/// card bound to vfio-pci. @param prot of mmap(). @return 0; -ENOENT (no program that may be traced
/// has the card open), -EINVAL (the BAR is shorter than len_bytes), or the kernel's error. Logs
/// nothing.
[[nodiscard]] int borrow_bar(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                             size_t len_bytes, int prot, KernelMapping* out);

/// Read it, even while a program uses the card. vfio-pci keeps a device powered down while no
/// program has it open: such a device is read through VFIO. Control path. @return 0, -ENXIO (the
/// BAR is smaller than a page), -EAGAIN (powered down, and cannot be woken), or the kernel's error
/// (-EACCES: no rights). Only failures of VFIO are logged.
[[nodiscard]] int read_card_id(const PciPaths& paths, const PciCard& card, CardId* out,
                               Kernel& kernel = real_kernel());

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
