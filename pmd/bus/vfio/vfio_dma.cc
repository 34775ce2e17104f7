// The part of VfioBackend that serves an open card: memory, interrupts, reset.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "pmd/bus/vfio/vfio_backend.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr uint64_t kHugeBytes = uint64_t{2} << 20;
constexpr uint32_t kVectorsMax = 256;

/// Log why a mapping failed, and the remedy.
void log_map_error(const std::string& address, void* va, size_t len_bytes, int rc) {
  const char* remedy = "";
  switch (-rc) {
    case ENOMEM:
      remedy =
          ": more memory is locked than `ulimit -l` allows: ulimit -l unlimited, or in "
          "/etc/security/limits.conf: * - memlock unlimited (systemd: LimitMEMLOCK=infinity)";
      break;
    case ENOSPC:
      remedy =
          ": too many mappings: register fewer, larger ranges, or raise "
          "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
      break;
    case EFAULT:
      remedy = ": some of it is not mapped, or read-only: register memory that can be written";
      break;
    default:
      break;
  }
  base::log_error("%s: cannot map %zu bytes at %p for DMA: %s%s", address.c_str(), len_bytes, va,
                  std::strerror(-rc), remedy);
}

}  // namespace

bool VfioBackend::addressable(uint64_t iova, uint64_t len_bytes) const {
  return std::any_of(iova_ranges_.begin(), iova_ranges_.end(), [&](const auto& range) {
    return range.first <= iova && iova <= range.second && range.second - iova >= len_bytes - 1;
  });
}

int VfioBackend::map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  vfio_iommu_type1_dma_map request{};
  request.argsz = sizeof(request);
  request.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  request.vaddr = reinterpret_cast<uintptr_t>(va);
  request.size = len_bytes;
  if (mode_ == IovaMode::kVirtual) {
    request.iova = request.vaddr;
    if (!addressable(request.iova, len_bytes)) {
      base::log_error("%s: the IOMMU cannot address %p: open the card with allocated bus addresses",
                      card_.address.c_str(), va);
      return -ERANGE;
    }
  } else {
    // At the place within 2 MiB that it has in memory, so that the IOMMU can use its large pages.
    const uint64_t lead = len_bytes >= kHugeBytes ? request.vaddr % kHugeBytes : 0;
    const uint64_t align = len_bytes >= kHugeBytes ? kHugeBytes : 65536;
    uint64_t first = 0;
    if (!iovas_.allocate(lead + len_bytes, align, &first)) {
      base::log_error("%s: no bus addresses left for %zu bytes", card_.address.c_str(), len_bytes);
      return -ENOSPC;
    }
    request.iova = first + lead;
    if (lead != 0) {
      iovas_.free(first, lead);
    }
  }
  if (const int rc = kernel_.ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &request); rc < 0) {
    if (mode_ == IovaMode::kAllocated) {
      iovas_.free(request.iova, len_bytes);
    }
    log_map_error(card_.address, va, len_bytes, rc);
    return rc;
  }
  *runs = {{va, request.iova, len_bytes}};
  return 0;
}

int VfioBackend::unmap(void* va, size_t len_bytes, const std::vector<IovaRun>& runs) {
  vfio_iommu_type1_dma_unmap request{};
  request.argsz = sizeof(request);
  request.iova = runs[0].iova;
  request.size = len_bytes;
  const int rc = kernel_.ioctl(container_.get(), VFIO_IOMMU_UNMAP_DMA, &request);
  if (rc < 0 || request.size != len_bytes) {
    // The bus address is not handed out again: the card may still reach the memory behind it.
    base::log_error(
        "%s: cannot unmap %zu bytes at %p: %s; close the card before the memory is freed",
        card_.address.c_str(), len_bytes, va, rc < 0 ? std::strerror(-rc) : "in part only");
    return rc < 0 ? rc : -EIO;
  }
  if (mode_ == IovaMode::kAllocated) {
    iovas_.free(runs[0].iova, len_bytes);
  }
  return 0;
}

int VfioBackend::enable_vectors() {
  vfio_irq_info info{};
  info.argsz = sizeof(info);
  info.index = VFIO_PCI_MSIX_IRQ_INDEX;
  if (kernel_.ioctl(device_.get(), VFIO_DEVICE_GET_IRQ_INFO, &info) < 0 || info.count == 0 ||
      (info.flags & VFIO_IRQ_INFO_EVENTFD) == 0) {
    return -ENOTSUP;
  }
  const uint32_t count = std::min(info.count, kVectorsMax);
  std::vector<KernelFd> fds;
  for (uint32_t i = 0; i < count; ++i) {
    const int fd = kernel_.eventfd();
    if (fd < 0) {
      base::log_error("%s: eventfd for vector %u: %s%s", card_.address.c_str(), i,
                      std::strerror(-fd), fd == -EMFILE ? ": raise ulimit -n" : "");
      return fd;
    }
    fds.emplace_back(kernel_, fd);
  }
  // All at once: a kernel with VFIO_IRQ_INFO_NORESIZE takes no more later.
  const size_t len_bytes = sizeof(vfio_irq_set) + count * sizeof(int32_t);
  std::vector<uint32_t> words(len_bytes / sizeof(uint32_t));
  auto* set = reinterpret_cast<vfio_irq_set*>(words.data());
  set->argsz = static_cast<uint32_t>(len_bytes);
  set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set->index = VFIO_PCI_MSIX_IRQ_INDEX;
  set->start = 0;
  set->count = count;
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t fd = fds[i].get();
    std::memcpy(set->data + i * sizeof(fd), &fd, sizeof(fd));
  }
  if (const int rc = kernel_.ioctl(device_.get(), VFIO_DEVICE_SET_IRQS, static_cast<void*>(set));
      rc < 0) {
    base::log_error("%s: cannot enable %u MSI-X vectors: %s: poll, or see dmesg",
                    card_.address.c_str(), count, std::strerror(-rc));
    return rc;
  }
  vectors_ = std::move(fds);
  return 0;
}

int VfioBackend::irq_fd(uint32_t vector) {
  if (vectors_.empty()) {
    if (const int rc = enable_vectors(); rc != 0) {
      return rc;
    }
  }
  if (vector >= vectors_.size()) {
    base::log_error("%s: vector %u asked for, it has %zu", card_.address.c_str(), vector,
                    vectors_.size());
    return -EINVAL;
  }
  return vectors_[vector].get();
}

int VfioBackend::reset() {
  if ((device_flags_ & VFIO_DEVICE_FLAGS_RESET) == 0) {
    return -ENOTSUP;
  }
  if (const int rc = kernel_.ioctl(device_.get(), VFIO_DEVICE_RESET, 0ul); rc < 0) {
    base::log_error("%s: reset: %s", card_.address.c_str(), std::strerror(-rc));
    return rc;
  }
  // A reset clears the command register.
  return enable_bus_master();
}

}  // namespace rio::pmd::vfio
