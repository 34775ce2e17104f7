#include "pmd/bus/vfio/borrowed_bar.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <string>
#include <vector>

#include "base/number.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr size_t kBars = 6;
using BarRegisters = std::array<uint32_t, kBars>;

/// Names of the entries of a folder that are numbers.
std::vector<int> numbers_in(const std::string& folder) {
  std::vector<int> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    unsigned number = 0;
    if (base::read_decimal(name, 0, INT_MAX, &number)) {
      numbers.push_back(static_cast<int>(number));
    }
  }
  return numbers;
}

int region_of(Kernel& kernel, int device, uint32_t index, vfio_region_info* out) {
  vfio_region_info region{};
  region.argsz = sizeof(region);
  region.index = index;
  const int rc = kernel.ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &region);
  if (rc < 0) {
    return rc;
  }
  *out = region;
  return 0;
}

/// Where the card's BARs are, by sysfs.
int bars_of(const PciPaths& paths, Kernel& kernel, const PciCard& card, BarRegisters* out) {
  const KernelFd config(
      kernel, kernel.open(paths.sysfs + "/bus/pci/devices/" + card.address + "/config", O_RDONLY));
  if (config.get() < 0) {
    return config.get();
  }
  const ssize_t n = kernel.read(config.get(), out->data(), sizeof(*out), PCI_BASE_ADDRESS_0);
  return n == sizeof(*out) ? 0 : (n < 0 ? static_cast<int>(n) : -EIO);
}

/// Whether an open device of VFIO is the one with these BARs. VFIO does not tell its address; no
/// two devices have their BARs in one place, and programs on the host do not move them.
bool is_device(Kernel& kernel, int device, const BarRegisters& wanted) {
  vfio_region_info config{};
  BarRegisters bars{};
  return region_of(kernel, device, VFIO_PCI_CONFIG_REGION_INDEX, &config) == 0 &&
         kernel.read(device, bars.data(), sizeof(bars), config.offset + PCI_BASE_ADDRESS_0) ==
             sizeof(bars) &&
         bars == wanted;
}

/// A copy of the file by which any program has the device open, empty if none has.
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
               int prot, void** va) {
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
  if (const int rc = region_of(kernel, device.get(), index, &region); rc != 0) {
    return rc;
  }
  if (region.size < len_bytes) {
    return -EINVAL;
  }
  return kernel.mmap(nullptr, len_bytes, prot, MAP_SHARED, device.get(), region.offset, va);
}

}  // namespace rio::pmd::vfio
