#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "pmd/bus/vfio/remedy.hpp"
#include "pmd/bus/vfio/vfio_device.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr size_t kDevicesMax = 256;  // functions of a bus
// Of linux/vfio.h since 6.6: entries have numbers of devices that iommufd knows instead of groups.
constexpr uint32_t kFlagOwned = 0x2;   // VFIO_PCI_HOT_RESET_FLAG_DEV_ID_OWNED: all are ours
constexpr uint32_t kOwnedNotOpen = 0;  // VFIO_PCI_DEVID_OWNED

/// Whether a reset of all these devices hits this program's one open device and no other.
bool hits_only_us(std::span<const vfio_pci_dependent_device> devices, uint32_t flags,
                  const PciCard& card, bool by_group) {
  if (by_group) {
    return std::ranges::all_of(devices, [&card](const auto& one) {
      return one.group_id == static_cast<uint32_t>(card.iommu_group);
    });
  }
  return (flags & kFlagOwned) != 0 && std::ranges::count_if(devices, [](const auto& one) {
                                        return one.group_id != kOwnedNotOpen;
                                      }) == 1;
}

}  // namespace

int hot_reset(Kernel& kernel, const PciCard& card, const VfioDevice& device) {
  const bool by_group = device.group != nullptr;
  const int32_t group = by_group ? lone_group(device) : 0;
  std::array<uint32_t,
             (sizeof(vfio_pci_hot_reset_info) + kDevicesMax * sizeof(vfio_pci_dependent_device)) /
                 sizeof(uint32_t)>
      words{};
  auto* const slot = reinterpret_cast<vfio_pci_hot_reset_info*>(words.data());
  slot->argsz = sizeof(words);
  if (group < 0 || kernel.ioctl(device.fd.get(), VFIO_DEVICE_GET_PCI_HOT_RESET_INFO,
                                static_cast<void*>(slot)) < 0) {
    return -ENOTSUP;
  }
  const std::span devices(slot->devices, std::min<size_t>(slot->count, kDevicesMax));
  if (!hits_only_us(devices, slot->flags, card, by_group)) {
    return -ENOTSUP;
  }
  words = {};
  auto* const request = reinterpret_cast<vfio_pci_hot_reset*>(words.data());
  request->argsz = sizeof(*request) + sizeof(group);
  request->count = by_group ? 1 : 0;  // what shows that the devices are ours
  std::memcpy(request->group_fds, &group, sizeof(group));
  const int rc =
      kernel.ioctl(device.fd.get(), VFIO_DEVICE_PCI_HOT_RESET, static_cast<void*>(request));
  return rc < 0 ? log_failed(card, rc, "reset of its slot") : 0;
}

}  // namespace rio::pmd::vfio
