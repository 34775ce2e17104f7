#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/range_allocator.hpp"
#include "pmd/bus/vfio/remedy.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr uint32_t kVectorsMax = 256;

/// A struct of VFIO's interface, empty but for its size.
template <class Struct>
[[nodiscard]] Struct sized() {
  Struct empty{};
  empty.argsz = sizeof(empty);
  return empty;
}

/// A card through VFIO: container, group, device. Steps of open() in the order of the kernel's
/// documentation (driver-api/vfio.rst).
class VfioBackend final : public Backend {
 public:
  VfioBackend(const PciPaths& paths, Kernel& kernel, const PciCard& card, bool iova_is_va)
      : Backend(paths, kernel, card), iova_is_va_(iova_is_va) {}
  ~VfioBackend() override { bar_ = {}; }  // before its device is closed

  [[nodiscard]] int open();

  int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  int unmap(void* va, size_t len_bytes, const std::vector<IovaRun>& runs) override;
  bool hugepages_only() const override { return false; }
  int irq_fd(uint32_t vector) override;
  int reset() override;

 private:
  template <class Argument>
  [[nodiscard]] int ask(const KernelFd& fd, unsigned long request, Argument argument,
                        const std::string& what);
  [[nodiscard]] int open_container();
  [[nodiscard]] int open_group();
  [[nodiscard]] int set_iommu();
  [[nodiscard]] int read_iova_ranges();
  [[nodiscard]] int open_device();
  [[nodiscard]] int map_bar();
  [[nodiscard]] int enable_bus_master();
  [[nodiscard]] int enable_vectors();
  [[nodiscard]] bool addressable(uint64_t iova, uint64_t len_bytes) const;
  [[nodiscard]] int choose_iova(uint64_t va, size_t len_bytes, __u64* iova);

  const bool iova_is_va_;
  // Closed in reverse order: device, group, container.
  KernelFd container_;
  KernelFd group_;
  KernelFd device_;
  uint32_t device_flags_ = 0;
  unsigned long iommu_type_ = 0;
  RangeAllocator iovas_;
  std::vector<vfio_iova_range> iova_ranges_;
  std::vector<KernelFd> vectors_;
};

/// The remedy for a failed mapping.
const char* map_remedy(int rc) {
  switch (-rc) {
    case ENOMEM:
      return ": more memory is locked than `ulimit -l` allows: ulimit -l unlimited, or in "
             "/etc/security/limits.conf: * - memlock unlimited (systemd: LimitMEMLOCK=infinity)";
    case ENOSPC:
      return ": too many mappings: register fewer, larger ranges, or raise "
             "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
    case EFAULT:
      return ": some of it is not mapped, or read-only: register memory that can be written";
    default:
      return "";
  }
}

}  // namespace

int find_region(Kernel& kernel, int device, uint32_t index, vfio_region_info* out) {
  auto region = sized<vfio_region_info>();
  region.index = index;
  const int rc = kernel.ioctl(device, VFIO_DEVICE_GET_REGION_INFO, &region);
  if (rc < 0) {
    return rc;
  }
  *out = region;
  return 0;
}

int Backend::failed(int rc, const std::string& what, const std::string& remedy) const {
  base::log_error("%s: %s: %s%s%s", address(), what.c_str(), std::strerror(-rc),
                  remedy.empty() ? "" : ": ", remedy.c_str());
  return rc;
}

int Backend::set_bus_master(int fd, uint64_t config_at) {
  uint16_t command = 0;
  ssize_t n = kernel_.read(fd, &command, sizeof(command), config_at + PCI_COMMAND);
  if (n == sizeof(command)) {
    command |= PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY;
    n = kernel_.write(fd, &command, sizeof(command), config_at + PCI_COMMAND);
  }
  return n == sizeof(command) ? 0 : (n < 0 ? static_cast<int>(n) : -EIO);
}

/// An ioctl whose failure is logged. @param what failed. @return what it returns, or -errno.
template <class Argument>
int VfioBackend::ask(const KernelFd& fd, unsigned long request, Argument argument,
                     const std::string& what) {
  const int rc = kernel_.ioctl(fd.get(), request, argument);
  return rc < 0 ? failed(rc, what) : rc;
}

int VfioBackend::open() {
  using Step = int (VfioBackend::*)();
  for (const Step step :
       {&VfioBackend::open_container, &VfioBackend::open_group, &VfioBackend::set_iommu,
        &VfioBackend::read_iova_ranges, &VfioBackend::open_device, &VfioBackend::map_bar,
        &VfioBackend::enable_bus_master}) {
    if (const int rc = (this->*step)(); rc != 0) {
      return rc;
    }
  }
  return 0;
}

int VfioBackend::open_container() {
  if (card_.iommu_group < 0) {
    base::log_error(
        "%s: the card has no IOMMU group: switch the IOMMU on (VT-d or AMD-Vi in the firmware, "
        "intel_iommu=on on the kernel's command line), or use UIO: %s",
        address(), bind_command(card_.address, kUioDriver).c_str());
    return -ENODEV;
  }
  const std::string path = paths_.dev + "/vfio/vfio";
  const int fd = kernel_.open(path, O_RDWR);
  if (fd < 0) {
    return failed(fd, "cannot open " + path,
                  fd == -EACCES ? "chmod 666 /dev/vfio/vfio (it gives no rights by itself)"
                                : "modprobe vfio-pci");
  }
  container_ = KernelFd(kernel_, fd);
  if (const int version = kernel_.ioctl(fd, VFIO_GET_API_VERSION, 0ul);
      version != VFIO_API_VERSION) {
    base::log_error("%s: VFIO speaks version %d, this driver version %d: use another kernel",
                    address(), version, VFIO_API_VERSION);
    return version < 0 ? version : -EPROTO;
  }
  for (const unsigned long type : {VFIO_TYPE1v2_IOMMU, VFIO_TYPE1_IOMMU}) {
    if (kernel_.ioctl(fd, VFIO_CHECK_EXTENSION, type) > 0) {
      iommu_type_ = type;
      return 0;
    }
  }
  base::log_error("%s: VFIO has no type 1 IOMMU: modprobe vfio_iommu_type1", address());
  return -ENOTSUP;
}

int VfioBackend::open_group() {
  const std::string number = std::to_string(card_.iommu_group);
  const std::string path = paths_.dev + "/vfio/" + number;
  const int fd = kernel_.open(path, O_RDWR);
  if (fd == -EBUSY) {
    base::log_error(
        "%s: its IOMMU group %s is in use, by another process or by this one: fuser -v %s names it",
        address(), number.c_str(), path.c_str());
    return fd;
  }
  if (fd < 0) {
    return failed(fd, "cannot open " + path,
                  fd == -ENOENT ? bind_command(card_.address, kVfioDriver) : "chown $USER " + path);
  }
  group_ = KernelFd(kernel_, fd);
  auto status = sized<vfio_group_status>();
  if (const int rc = ask(group_, VFIO_GROUP_GET_STATUS, &status, "status of IOMMU group " + number);
      rc < 0) {
    return rc;
  }
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    const std::string others = group_neighbours(paths_, card_, kernel_);
    base::log_error(
        "%s: its IOMMU group %s is not viable: bind all of its devices to vfio-pci. In the "
        "way: %s. For each: %s",
        address(), number.c_str(), others.empty() ? "unknown" : others.c_str(),
        bind_command("ADDRESS", kVfioDriver).c_str());
    return -EPERM;
  }
  return 0;
}

int VfioBackend::set_iommu() {
  int container = container_.get();
  if (const int rc = ask(group_, VFIO_GROUP_SET_CONTAINER, &container,
                         "cannot put its group into a container");
      rc < 0) {
    return rc;
  }
  if (const int rc = kernel_.ioctl(container, VFIO_SET_IOMMU, iommu_type_); rc < 0) {
    return failed(rc, "VFIO_SET_IOMMU",
                  rc == -EPERM ? "interrupts cannot be remapped; on a machine that you trust: "
                                 "modprobe -r vfio_iommu_type1; modprobe vfio_iommu_type1 "
                                 "allow_unsafe_interrupts=1"
                               : "");
  }
  return 0;
}

int VfioBackend::read_iova_ranges() {
  // Two calls: the first returns the length of the answer.
  auto head = sized<vfio_iommu_type1_info>();
  if (const int rc = ask(container_, VFIO_IOMMU_GET_INFO, &head, "VFIO_IOMMU_GET_INFO"); rc < 0) {
    return rc;
  }
  const size_t len_bytes = std::clamp<size_t>(head.argsz, sizeof(head), 65536);
  std::vector<uint64_t> words((len_bytes + 7) / 8);
  auto* bytes = reinterpret_cast<uint8_t*>(words.data());
  head.argsz = static_cast<uint32_t>(len_bytes);
  std::memcpy(bytes, &head, sizeof(head));
  if (const int rc =
          ask(container_, VFIO_IOMMU_GET_INFO, static_cast<void*>(bytes), "VFIO_IOMMU_GET_INFO");
      rc < 0) {
    return rc;
  }
  std::memcpy(&head, bytes, sizeof(head));
  uint32_t at = (head.flags & VFIO_IOMMU_INFO_CAPS) != 0 ? head.cap_offset : 0;
  for (int i = 0; i < 32 && at != 0 && at + sizeof(vfio_info_cap_header) <= len_bytes; ++i) {
    vfio_info_cap_header cap;
    std::memcpy(&cap, bytes + at, sizeof(cap));
    const size_t table = at + sizeof(vfio_iommu_type1_info_cap_iova_range);
    if (cap.id == VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE && table <= len_bytes) {
      vfio_iommu_type1_info_cap_iova_range ranges;
      std::memcpy(&ranges, bytes + at, sizeof(ranges));
      const size_t room = (len_bytes - table) / sizeof(vfio_iova_range);
      for (size_t n = 0; n < std::min<size_t>(ranges.nr_iovas, room); ++n) {
        vfio_iova_range range;
        std::memcpy(&range, bytes + table + n * sizeof(range), sizeof(range));
        iova_ranges_.push_back(range);
      }
    }
    at = cap.next;
  }
  if (iova_ranges_.empty()) {  // kernels before 5.4 do not report them
    // IOMMUs have at least 39 bits; the MSI window below 4 GiB is left out.
    iova_ranges_ = {{0, 0xFEDFFFFFu}, {0x100000000u, (uint64_t{1} << 39) - 1}};
  }
  for (const vfio_iova_range& range : iova_ranges_) {
    const auto begin = std::max<uint64_t>(range.start, kHugeBytes);  // keep 0: it looks like "none"
    if (begin <= range.end) {
      iovas_.add(begin, range.end - begin + 1);
    }
  }
  return 0;
}

int VfioBackend::open_device() {
  std::string name = card_.address;
  const int fd =
      kernel_.ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, static_cast<void*>(name.data()));
  if (fd < 0) {
    return failed(fd, "VFIO gives no device", bind_command(card_.address, kVfioDriver));
  }
  device_ = KernelFd(kernel_, fd);
  auto info = sized<vfio_device_info>();
  const int rc = ask(device_, VFIO_DEVICE_GET_INFO, &info, "VFIO_DEVICE_GET_INFO");
  device_flags_ = info.flags;
  return rc < 0 ? rc : 0;
}

int VfioBackend::map_bar() {
  vfio_region_info region{};
  const std::string name = "BAR" + std::to_string(card_.bar);
  const auto index = VFIO_PCI_BAR0_REGION_INDEX + static_cast<uint32_t>(card_.bar);
  if (const int rc = find_region(kernel_, device_.get(), index, &region); rc != 0) {
    return failed(rc, name);
  }
  const bool can_be_mapped = (region.flags & VFIO_REGION_INFO_FLAG_MMAP) != 0;
  if (region.size < regs::kPageBytes || !can_be_mapped) {
    return refuse_bar(card_, region.size, can_be_mapped);
  }
  const int rc =
      bar_.map(kernel_, region.size, PROT_READ | PROT_WRITE, device_.get(), region.offset);
  return rc != 0 ? failed(rc, "cannot map " + name) : 0;
}

int VfioBackend::enable_bus_master() {
  vfio_region_info region{};
  int rc = find_region(kernel_, device_.get(), VFIO_PCI_CONFIG_REGION_INDEX, &region);
  rc = rc == 0 ? set_bus_master(device_.get(), region.offset) : rc;
  return rc != 0
             ? failed(rc, "cannot let the card become bus master", rescan_command(card_.address))
             : 0;
}

bool VfioBackend::addressable(uint64_t iova, uint64_t len_bytes) const {
  return std::any_of(iova_ranges_.begin(), iova_ranges_.end(), [&](const auto& range) {
    return range.start <= iova && iova <= range.end && range.end - iova >= len_bytes - 1;
  });
}

int VfioBackend::choose_iova(uint64_t va, size_t len_bytes, __u64* iova) {
  if (iova_is_va_) {
    if (!addressable(va, len_bytes)) {
      base::log_error("%s: the IOMMU cannot address %p: open the card with allocated bus addresses",
                      address(), reinterpret_cast<void*>(va));
      return -ERANGE;
    }
    *iova = va;
    return 0;
  }
  // The bus address has the memory's offset within 2 MiB, so that the IOMMU can use its large
  // pages.
  const uint64_t lead = len_bytes >= kHugeBytes ? va % kHugeBytes : 0;
  const uint64_t align = len_bytes >= kHugeBytes ? kHugeBytes : 65536;
  uint64_t first = 0;
  if (!iovas_.allocate(lead + len_bytes, align, &first)) {
    base::log_error("%s: no bus addresses left for %zu bytes", address(), len_bytes);
    return -ENOSPC;
  }
  *iova = first + lead;
  if (lead != 0) {
    iovas_.free(first, lead);
  }
  return 0;
}

int VfioBackend::map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  auto request = sized<vfio_iommu_type1_dma_map>();
  request.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  request.vaddr = reinterpret_cast<uintptr_t>(va);
  request.size = len_bytes;
  if (const int rc = choose_iova(request.vaddr, len_bytes, &request.iova); rc != 0) {
    return rc;
  }
  if (const int rc = kernel_.ioctl(container_.get(), VFIO_IOMMU_MAP_DMA, &request); rc < 0) {
    if (!iova_is_va_) {
      iovas_.free(request.iova, len_bytes);
    }
    base::log_error("%s: cannot map %zu bytes at %p for DMA: %s%s", address(), len_bytes, va,
                    std::strerror(-rc), map_remedy(rc));
    return rc;
  }
  *runs = {{va, request.iova, len_bytes}};
  return 0;
}

int VfioBackend::unmap(void* va, size_t len_bytes, const std::vector<IovaRun>& runs) {
  auto request = sized<vfio_iommu_type1_dma_unmap>();
  request.iova = runs[0].iova;
  request.size = len_bytes;
  const int rc = kernel_.ioctl(container_.get(), VFIO_IOMMU_UNMAP_DMA, &request);
  if (rc < 0 || request.size != len_bytes) {
    // The bus address is not used again: the card may still reach the memory behind it.
    base::log_error(
        "%s: cannot unmap %zu bytes at %p: %s; close the card before the memory is freed",
        address(), len_bytes, va, rc < 0 ? std::strerror(-rc) : "in part only");
    return rc < 0 ? rc : -EIO;
  }
  if (!iova_is_va_) {
    iovas_.free(runs[0].iova, len_bytes);
  }
  return 0;
}

int VfioBackend::enable_vectors() {
  auto info = sized<vfio_irq_info>();
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
      return failed(fd, "eventfd for vector " + std::to_string(i),
                    fd == -EMFILE ? "raise ulimit -n" : "");
    }
    fds.emplace_back(kernel_, fd);
  }
  // All at once: a kernel with VFIO_IRQ_INFO_NORESIZE accepts no more later.
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
    return failed(rc, "cannot enable " + std::to_string(count) + " MSI-X vectors",
                  "poll, or see dmesg");
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
    base::log_error("%s: no interrupt vector %u: the card has %zu", address(), vector,
                    vectors_.size());
    return -EINVAL;
  }
  return vectors_[vector].get();
}

int VfioBackend::reset() {
  if ((device_flags_ & VFIO_DEVICE_FLAGS_RESET) == 0) {
    return -ENOTSUP;
  }
  if (const int rc = ask(device_, VFIO_DEVICE_RESET, 0ul, "reset"); rc < 0) {
    return rc;
  }
  // A reset clears the command register, and with it bus mastering.
  return enable_bus_master();
}

int open_vfio_backend(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                      std::unique_ptr<Backend>* out, bool iova_is_va) {
  auto backend = std::make_unique<VfioBackend>(paths, kernel, card, iova_is_va);
  if (const int rc = backend->open(); rc != 0) {
    return rc;
  }
  *out = std::move(backend);
  return 0;
}

}  // namespace rio::pmd::vfio
