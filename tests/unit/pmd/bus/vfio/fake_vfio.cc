// The answers of the fake kernel to ioctls of VFIO and iommufd.
#include <linux/vfio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "pmd/bus/vfio/iommufd_uapi.hpp"
#include "tests/unit/pmd/bus/vfio/fake_system.hpp"

namespace rio::pmd::vfio {

template <typename T>
T* FakeKernel::checked(void* arg) {
  auto* typed = static_cast<T*>(arg);
  if (typed->argsz != sizeof(T)) {
    calls.push_back("BAD argsz");
  }
  return typed;
}

int FakeKernel::ioctl(int fd, unsigned long request, void* arg) {
  if (const auto it = ioctl_errors.find(request); it != ioctl_errors.end()) {
    return it->second;
  }
  if (is(fd, kDevice) && request == VFIO_DEVICE_GET_PCI_HOT_RESET_INFO) {
    auto* info = static_cast<vfio_pci_hot_reset_info*>(arg);
    info->count = static_cast<uint32_t>(slot.size());
    info->flags = slot_flags;
    for (size_t i = 0; i < slot.size(); ++i) {
      info->devices[i].group_id = slot[i];
    }
    return call(info->argsz >= sizeof(*info) + 8 * slot.size(), "slot", slot.empty() ? -ENODEV : 0);
  }
  if (is(fd, kDevice) && request == VFIO_DEVICE_PCI_HOT_RESET) {
    const auto* reset = static_cast<vfio_pci_hot_reset*>(arg);
    const bool ours = reset->count == 0 || (reset->count == 1 && is(reset->group_fds[0], kGroup));
    return call(ours && reset->flags == 0, "reset slot " + std::to_string(reset->count), 0);
  }
  switch (request) {  // of these numbers some are those of the two above
    case VFIO_GROUP_GET_STATUS: {
      auto* status = checked<vfio_group_status>(arg);
      status->flags = viable ? VFIO_GROUP_FLAGS_VIABLE : 0;
      return call(is(fd, kGroup), "group status", 0);
    }
    case VFIO_GROUP_SET_CONTAINER:
      return call(is(fd, kGroup) && is(*static_cast<int*>(arg), kContainer), "set container",
                  *static_cast<int*>(arg) == refusing_container ? -EINVAL : 0);
    case VFIO_IOMMU_GET_INFO:
      return iommu_info(fd, arg);
    case VFIO_GROUP_GET_DEVICE_FD:
      return call(is(fd, kGroup), std::string("device ") + static_cast<const char*>(arg),
                  made_up(first(kDevice), ""));
    case VFIO_DEVICE_GET_INFO: {
      auto* info = checked<vfio_device_info>(arg);
      info->flags = VFIO_DEVICE_FLAGS_PCI | (can_reset ? VFIO_DEVICE_FLAGS_RESET : 0);
      info->num_regions = VFIO_PCI_NUM_REGIONS;
      info->num_irqs = VFIO_PCI_NUM_IRQS;
      return call(is(fd, kDevice), "device info", 0);
    }
    case VFIO_DEVICE_GET_REGION_INFO: {
      auto* region = checked<vfio_region_info>(arg);
      const bool config = region->index == VFIO_PCI_CONFIG_REGION_INDEX;
      region->size = config ? 4096 : bar_len;
      region->offset = static_cast<uint64_t>(region->index) << 40;
      region->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE |
                      (config ? 0 : VFIO_REGION_INFO_FLAG_MMAP);
      return call(is(fd, kDevice), "region " + std::to_string(region->index), 0);
    }
    case VFIO_DEVICE_GET_IRQ_INFO: {
      auto* info = checked<vfio_irq_info>(arg);
      const bool msix = info->index == VFIO_PCI_MSIX_IRQ_INDEX;
      info->count = msix ? vectors : static_cast<uint32_t>(tells.count(info->index));
      info->flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
      return call(is(fd, kDevice) && info->index >= VFIO_PCI_MSIX_IRQ_INDEX,
                  "irq info " + std::to_string(info->index), 0);
    }
    case VFIO_DEVICE_SET_IRQS: {
      const auto* set = static_cast<const vfio_irq_set*>(arg);
      std::vector<int32_t> fds(set->count);
      std::memcpy(fds.data(), set->data, set->count * sizeof(int32_t));
      const bool msix = set->index == VFIO_PCI_MSIX_IRQ_INDEX;
      if (msix) {
        irq_fds = fds;
      } else {
        events.emplace(set->index, fds.at(0));
      }
      return call(
          is(fd, kDevice) && (msix || (tells.contains(set->index) && fds.size() == 1)) &&
              set->start == 0 && set->argsz == sizeof(*set) + set->count * 4 &&
              set->flags == (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER),
          msix ? "set irqs " + std::to_string(set->count) : "watch " + std::to_string(set->index),
          0);
    }
    case VFIO_IOMMU_MAP_DMA: {
      const auto* map = checked<vfio_iommu_type1_dma_map>(arg);
      return call(
          is(fd, kContainer) && map->flags == (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE),
          "map " + std::to_string(map->size), map_pages(map->iova, map->vaddr, map->size));
    }
    case VFIO_IOMMU_UNMAP_DMA: {
      const auto* unmap = checked<vfio_iommu_type1_dma_unmap>(arg);
      return call(is(fd, kContainer) && unmap_pages(unmap->iova, unmap->size),
                  "unmap " + std::to_string(unmap->size), 0);
    }
    default:
      return iommufd(fd, request, arg);
  }
}

/// The numbers and sizes here are those of linux/iommufd.h and linux/vfio.h of Linux 6.6.
int FakeKernel::iommufd(int fd, unsigned long request, void* arg) {
  const uint32_t bytes = *static_cast<uint32_t*>(arg);
  switch (request) {
    case 0x3B76: {  // VFIO_DEVICE_BIND_IOMMUFD
      const auto* bind = static_cast<uapi::BindIommufd*>(arg);
      return call(is(fd, kDevice) && bytes == 16 && bind->flags == 0 && bind->iommufd == kIommufd,
                  "bind", 0);
    }
    case 0x3B77: {  // VFIO_DEVICE_ATTACH_IOMMUFD_PT
      const auto* attach = static_cast<uapi::AttachIommufdPt*>(arg);
      return call(is(fd, kDevice) && bytes == 12 && attach->flags == 0 && attach->pt_id == kIoas,
                  "attach", 0);
    }
    case 0x3B81: {  // IOMMU_IOAS_ALLOC
      auto* alloc = static_cast<uapi::IoasAlloc*>(arg);
      alloc->out_ioas_id = kIoas;
      return call(fd == kIommufd && bytes == 12 && alloc->flags == 0, "ioas", 0);
    }
    case 0x3B84: {  // IOMMU_IOAS_IOVA_RANGES
      auto* ranges = static_cast<uapi::IoasIovaRanges*>(arg);
      const bool room = ranges->num_iovas >= ioas_ranges;
      auto* out = reinterpret_cast<vfio_iova_range*>(ranges->allowed_iovas);
      for (uint32_t i = 0; room && i < ioas_ranges; ++i) {  // the last one is the longest
        out[i] = {uint64_t{i} << 22, i + 1 < ioas_ranges ? (uint64_t{i} << 22) + 4095 : last_iova};
      }
      ranges->num_iovas = ioas_ranges;
      return call(fd == kIommufd && bytes == 32 && ranges->ioas_id == kIoas, "ranges",
                  room ? 0 : -EMSGSIZE);
    }
    case 0x3B85: {  // IOMMU_IOAS_MAP
      const auto* map = static_cast<uapi::IoasMap*>(arg);
      return call(fd == kIommufd && bytes == 40 && map->ioas_id == kIoas && map->flags == 7,
                  "map " + std::to_string(map->length),
                  map_pages(map->iova, map->user_va, map->length));
    }
    case 0x3B86: {  // IOMMU_IOAS_UNMAP
      const auto* unmap = static_cast<uapi::IoasUnmap*>(arg);
      return call(fd == kIommufd && bytes == 24 && unmap->ioas_id == kIoas &&
                      unmap_pages(unmap->iova, unmap->length),
                  "unmap " + std::to_string(unmap->length), 0);
    }
    default:
      return call(false, "unknown ioctl", -ENOTTY);
  }
}

int FakeKernel::iommu_info(int fd, void* arg) {
  struct {
    vfio_iommu_type1_info info;
    vfio_info_cap_header cap;  // of a vfio_iommu_type1_info_cap_iova_range
    uint32_t count;
    uint32_t reserved;
    vfio_iova_range ranges[2];
  } answer{};
  auto* head = static_cast<vfio_iommu_type1_info*>(arg);
  const size_t room = head->argsz;
  answer.info.argsz = tell_ranges ? sizeof(answer) : sizeof(answer.info);
  answer.info.flags = VFIO_IOMMU_INFO_PGSIZES | (tell_ranges ? VFIO_IOMMU_INFO_CAPS : 0);
  if (tell_ranges && room >= sizeof(answer)) {
    answer.info.cap_offset = sizeof(answer.info);
  }
  answer.cap.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
  answer.cap.version = 1;
  answer.count = 2;
  answer.ranges[0] = {0, 0xFEDFFFFF};
  answer.ranges[1] = {0xFEF00000, last_iova};
  std::memcpy(arg, &answer, std::min(room, sizeof(answer)));
  return call(is(fd, kContainer), "iommu info", 0);
}

}  // namespace rio::pmd::vfio
