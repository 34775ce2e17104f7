/// @file
/// The two ways to a device of vfio-pci: by its IOMMU group, or by iommufd. Internal to
/// pmd/bus/vfio.
#pragma once

#include <linux/vfio.h>

#include <memory>
#include <vector>

#include "pmd/bus/vfio/dma_space.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

/// A struct of VFIO's interface, empty but for its size.
template <class Struct>
[[nodiscard]] Struct sized() {
  Struct empty{};
  empty.argsz = sizeof(empty);
  return empty;
}

/// An open device. The kernel has it back once its file is closed, its memory is unmapped, and, if
/// it was the last one, its group is left.
struct VfioDevice {
  std::shared_ptr<DmaSpace> space;  ///< which it has joined
  std::shared_ptr<void> group;      ///< keeps its group open; null with iommufd
  KernelFd fd;
};

/// Open a device by its group (Documentation/driver-api/vfio.rst): the file /dev/vfio/GROUP, which
/// can be opened once and which all devices of the group share in this process, in a container that
/// all groups share as far as the kernel can have them in one. Control path, any thread. @return 0
/// or -errno, logged.
[[nodiscard]] int open_in_group(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                                VfioDevice* out);

/// Whether a device can be opened with iommufd, and not by its group.
[[nodiscard]] bool has_only_iommufd(const PciPaths& paths, const PciCard& card);

/// Open a device with iommufd (Documentation/userspace-api/iommufd.rst): its own file
/// /dev/vfio/devices/vfioN, in an address space that all such devices of this process share.
/// Control path, any thread. @return 0 or -errno, logged.
[[nodiscard]] int open_with_iommufd(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                                    VfioDevice* out);

/// The file of an opened device's group. @return -EBUSY: this process has other devices of it open.
[[nodiscard]] int lone_group(const VfioDevice& device);

/// Reset the slot of a device, where that hits no device which another program, or this one, uses.
/// @return 0, -ENOTSUP (it would, or there is no such reset; not logged), or -errno, logged.
[[nodiscard]] int hot_reset(Kernel& kernel, const PciCard& card, const VfioDevice& device);

/// Let the kernel signal eventfds of interrupts 0 and up. @param index VFIO_PCI_MSIX_IRQ_INDEX or
/// another. @return at least 0, or -errno; not logged.
[[nodiscard]] int set_irqs(Kernel& kernel, int device, uint32_t index,
                           const std::vector<KernelFd>& fds);

/// Number of interrupts of an index that an eventfd can tell; 0: none, or the kernel knows none.
[[nodiscard]] uint32_t count_irqs(Kernel& kernel, int device, uint32_t index);

}  // namespace rio::pmd::vfio
