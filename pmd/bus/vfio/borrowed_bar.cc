#include "pmd/bus/vfio/borrowed_bar.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <vector>

#include "base/folder.hpp"
#include "base/number.hpp"
#include "pmd/bus/vfio/backend.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr size_t kBars = 6;
using BarRegisters = std::array<uint32_t, kBars>;

/// The entries of a folder whose names are numbers.
std::vector<int> numbers_in(const std::string& folder) {
  std::vector<int> numbers;
  for (const std::string& name : base::names_in(folder)) {
    unsigned number = 0;
    if (base::read_decimal(name, 0, INT_MAX, &number)) {
      numbers.push_back(static_cast<int>(number));
    }
  }
  return numbers;
}

/// Reads where the card's BARs are from sysfs.
int bars_of(const PciPaths& paths, Kernel& kernel, const PciCard& card, BarRegisters* out) {
  const KernelFd config(
      kernel, kernel.open(paths.sysfs + "/bus/pci/devices/" + card.address + "/config", O_RDONLY));
  if (config.get() < 0) {
    return config.get();
  }
  const ssize_t n = kernel.read(config.get(), out->data(), sizeof(*out), PCI_BASE_ADDRESS_0);
  return n == sizeof(*out) ? 0 : (n < 0 ? static_cast<int>(n) : -EIO);
}

/// Whether an open VFIO device is the one with these BARs. VFIO does not tell its address, but no
/// two devices have their BARs at one address, and programs on the host do not move them.
bool is_device(Kernel& kernel, int device, const BarRegisters& wanted) {
  vfio_region_info config{};
  BarRegisters bars{};
  return find_region(kernel, device, VFIO_PCI_CONFIG_REGION_INDEX, &config) == 0 &&
         kernel.read(device, bars.data(), sizeof(bars), config.offset + PCI_BASE_ADDRESS_0) ==
             sizeof(bars) &&
         bars == wanted;
}

/// A copy of the descriptor by which any program has the device open; empty if none has.
KernelFd device_of_others(const PciPaths& paths, Kernel& kernel, const BarRegisters& wanted) {
  for (const int pid : numbers_in(paths.proc)) {
    const std::string folder = paths.proc + "/" + std::to_string(pid) + "/fd";
    if (pid == getpid()) {
      continue;
    }
    for (const int number : numbers_in(folder)) {
      std::string target;
      if (kernel.readlink(folder + "/" + std::to_string(number), &target) != 0 ||
          target.find("[vfio-device]") == std::string::npos) {
        continue;
      }
      KernelFd copy(kernel, kernel.copy_fd(pid, number));
      if (copy.get() >= 0 && is_device(kernel, copy.get(), wanted)) {
        return copy;
      }
    }
  }
  return {};
}

}  // namespace

int borrow_bar(const PciPaths& paths, Kernel& kernel, const PciCard& card, size_t len_bytes,
               int prot, KernelMapping* out) {
  BarRegisters bars{};
  if (const int rc = bars_of(paths, kernel, card, &bars); rc != 0) {
    return rc;
  }
  const KernelFd device = device_of_others(paths, kernel, bars);
  if (device.get() < 0) {
    return -ENOENT;
  }
  vfio_region_info region{};
  const auto index = VFIO_PCI_BAR0_REGION_INDEX + static_cast<uint32_t>(card.bar);
  if (const int rc = find_region(kernel, device.get(), index, &region); rc != 0) {
    return rc;
  }
  if (region.size < len_bytes) {
    return -EINVAL;
  }
  return out->map(kernel, len_bytes, prot, device.get(), region.offset);
}

int map_bar_beside(const PciPaths& paths, Kernel& kernel, const PciCard& card, size_t len_bytes,
                   int prot, KernelMapping* out, bool* opened) {
  const KernelFd fd(kernel, kernel.open(bar_path(paths, card), O_RDWR | O_SYNC));
  *opened = fd.get() >= 0;
  const int rc = *opened ? out->map(kernel, len_bytes, prot, fd.get(), 0) : fd.get();
  const bool borrowed = rc != 0 && card.driver == kVfioDriver &&
                        borrow_bar(paths, kernel, card, len_bytes, prot, out) == 0;
  return borrowed ? 0 : rc;
}

std::string bar_path(const PciPaths& paths, const PciCard& card) {
  return paths.sysfs + "/bus/pci/devices/" + card.address + "/resource" + std::to_string(card.bar);
}

}  // namespace rio::pmd::vfio
