#include "pmd/bus/vfio/vfio_backend.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/remedy.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr uint64_t kHugeBytes = uint64_t{2} << 20;

}  // namespace

VfioBackend::VfioBackend(const PciPaths& paths, Kernel& kernel, const PciCard& card, IovaMode mode)
    : paths_(paths), kernel_(kernel), card_(card), mode_(mode) {}

VfioBackend::~VfioBackend() {
  if (bar_va_ != nullptr) {
    kernel_.munmap(bar_va_, bar_bytes_);
  }
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
  const char* address = card_.address.c_str();
  if (card_.iommu_group < 0) {
    base::log_error(
        "%s: it is in no IOMMU group: switch the IOMMU on (VT-d or AMD-Vi in the firmware, "
        "intel_iommu=on on the kernel's command line), or use UIO: %s",
        address, bind_command(card_.address, kUioDriver).c_str());
    return -ENODEV;
  }
  const std::string path = paths_.dev + "/vfio/vfio";
  const int fd = kernel_.open(path, O_RDWR);
  if (fd < 0) {
    base::log_error("%s: cannot open %s: %s: %s", address, path.c_str(), std::strerror(-fd),
                    fd == -EACCES ? "chmod 666 /dev/vfio/vfio (it gives no rights by itself)"
                                  : "modprobe vfio-pci");
    return fd;
  }
  container_ = KernelFd(kernel_, fd);
  if (const int version = kernel_.ioctl(fd, VFIO_GET_API_VERSION, 0ul);
      version != VFIO_API_VERSION) {
    base::log_error("%s: VFIO speaks version %d, this driver version %d: another kernel is needed",
                    address, version, VFIO_API_VERSION);
    return version < 0 ? version : -EPROTO;
  }
  for (const unsigned long type : {VFIO_TYPE1v2_IOMMU, VFIO_TYPE1_IOMMU}) {
    if (kernel_.ioctl(fd, VFIO_CHECK_EXTENSION, type) > 0) {
      iommu_type_ = type;
      return 0;
    }
  }
  base::log_error("%s: VFIO has no type 1 IOMMU: modprobe vfio_iommu_type1", address);
  return -ENOTSUP;
}

int VfioBackend::open_group() {
  const char* address = card_.address.c_str();
  const std::string number = std::to_string(card_.iommu_group);
  const std::string path = paths_.dev + "/vfio/" + number;
  const int fd = kernel_.open(path, O_RDWR);
  if (fd == -EBUSY) {
    base::log_error(
        "%s: its IOMMU group %s is in use, by another process or by this one: fuser -v %s names it",
        address, number.c_str(), path.c_str());
    return fd;
  }
  if (fd < 0) {
    const std::string command =
        fd == -ENOENT ? bind_command(card_.address, kVfioDriver) : "chown $USER " + path;
    base::log_error("%s: cannot open %s: %s: %s", address, path.c_str(), std::strerror(-fd),
                    command.c_str());
    return fd;
  }
  group_ = KernelFd(kernel_, fd);
  vfio_group_status status{};
  status.argsz = sizeof(status);
  if (const int rc = kernel_.ioctl(fd, VFIO_GROUP_GET_STATUS, &status); rc < 0) {
    base::log_error("%s: status of IOMMU group %s: %s", address, number.c_str(),
                    std::strerror(-rc));
    return rc;
  }
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    const std::string others = group_neighbours(paths_, kernel_, card_);
    base::log_error(
        "%s: its IOMMU group %s is not viable: bind all of its devices to vfio-pci; in the "
        "way: %s. For each: %s",
        address, number.c_str(), others.empty() ? "unknown" : others.c_str(),
        bind_command("ADDRESS", kVfioDriver).c_str());
    return -EPERM;
  }
  return 0;
}

int VfioBackend::set_iommu() {
  int container = container_.get();
  if (const int rc = kernel_.ioctl(group_.get(), VFIO_GROUP_SET_CONTAINER, &container); rc < 0) {
    base::log_error("%s: cannot put its group into a container: %s", card_.address.c_str(),
                    std::strerror(-rc));
    return rc;
  }
  if (const int rc = kernel_.ioctl(container, VFIO_SET_IOMMU, iommu_type_); rc < 0) {
    base::log_error("%s: VFIO_SET_IOMMU: %s%s", card_.address.c_str(), std::strerror(-rc),
                    rc == -EPERM
                        ? ": interrupts cannot be remapped; on a machine that you trust: modprobe "
                          "-r vfio_iommu_type1; modprobe vfio_iommu_type1 "
                          "allow_unsafe_interrupts=1"
                        : "");
    return rc;
  }
  return 0;
}

int VfioBackend::read_iova_ranges() {
  // Twice: the first call tells how long the answer is.
  vfio_iommu_type1_info head{};
  head.argsz = sizeof(head);
  if (const int rc = kernel_.ioctl(container_.get(), VFIO_IOMMU_GET_INFO, &head); rc < 0) {
    base::log_error("%s: VFIO_IOMMU_GET_INFO: %s", card_.address.c_str(), std::strerror(-rc));
    return rc;
  }
  const size_t len_bytes = std::clamp<size_t>(head.argsz, sizeof(head), 65536);
  std::vector<uint64_t> words((len_bytes + 7) / 8);
  auto* bytes = reinterpret_cast<uint8_t*>(words.data());
  head.argsz = static_cast<uint32_t>(len_bytes);
  std::memcpy(bytes, &head, sizeof(head));
  if (const int rc =
          kernel_.ioctl(container_.get(), VFIO_IOMMU_GET_INFO, static_cast<void*>(bytes));
      rc < 0) {
    base::log_error("%s: VFIO_IOMMU_GET_INFO: %s", card_.address.c_str(), std::strerror(-rc));
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
        iova_ranges_.emplace_back(range.start, range.end);
      }
    }
    at = cap.next;
  }
  if (iova_ranges_.empty()) {  // kernels before 5.4 do not say
    // 39 bits are the least that IOMMUs have; the MSI window below 4 GiB is left out.
    iova_ranges_ = {{0, 0xFEDFFFFFu}, {0x100000000u, (uint64_t{1} << 39) - 1}};
  }
  for (const auto& [first, last] : iova_ranges_) {
    const uint64_t begin = std::max(first, kHugeBytes);  // 0 is kept out: it looks like "none"
    if (begin <= last) {
      iovas_.add(begin, last - begin + 1);
    }
  }
  return 0;
}

int VfioBackend::open_device() {
  std::string address = card_.address;
  const int fd =
      kernel_.ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, static_cast<void*>(address.data()));
  if (fd < 0) {
    base::log_error("%s: VFIO gives no device: %s: %s", card_.address.c_str(), std::strerror(-fd),
                    bind_command(card_.address, kVfioDriver).c_str());
    return fd;
  }
  device_ = KernelFd(kernel_, fd);
  vfio_device_info info{};
  info.argsz = sizeof(info);
  if (const int rc = kernel_.ioctl(fd, VFIO_DEVICE_GET_INFO, &info); rc < 0) {
    base::log_error("%s: VFIO_DEVICE_GET_INFO: %s", card_.address.c_str(), std::strerror(-rc));
    return rc;
  }
  device_flags_ = info.flags;
  return 0;
}

int VfioBackend::map_bar() {
  vfio_region_info region{};
  region.argsz = sizeof(region);
  region.index = VFIO_PCI_BAR0_REGION_INDEX + static_cast<uint32_t>(card_.bar);
  if (const int rc = kernel_.ioctl(device_.get(), VFIO_DEVICE_GET_REGION_INFO, &region); rc < 0) {
    base::log_error("%s: BAR%d: %s", card_.address.c_str(), card_.bar, std::strerror(-rc));
    return rc;
  }
  if (region.size < regs::kPageBytes || (region.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0) {
    base::log_error(
        "%s: BAR%d has %llu bytes and can%s be mapped: the gateware is no message card's, or "
        "the firmware gave the BAR no room: %s",
        card_.address.c_str(), card_.bar, static_cast<unsigned long long>(region.size),
        (region.flags & VFIO_REGION_INFO_FLAG_MMAP) != 0 ? "" : "not",
        rescan_command(card_.address).c_str());
    return -ENXIO;
  }
  void* va = nullptr;
  if (const int rc = kernel_.mmap(nullptr, region.size, PROT_READ | PROT_WRITE, MAP_SHARED,
                                  device_.get(), region.offset, &va);
      rc != 0) {
    base::log_error("%s: cannot map BAR%d: %s", card_.address.c_str(), card_.bar,
                    std::strerror(-rc));
    return rc;
  }
  bar_va_ = va;
  bar_bytes_ = region.size;
  return 0;
}

int VfioBackend::enable_bus_master() {
  vfio_region_info region{};
  region.argsz = sizeof(region);
  region.index = VFIO_PCI_CONFIG_REGION_INDEX;
  int rc = kernel_.ioctl(device_.get(), VFIO_DEVICE_GET_REGION_INFO, &region);
  if (rc >= 0) {
    uint16_t command = 0;
    const uint64_t at = region.offset + PCI_COMMAND;
    ssize_t n = kernel_.read(device_.get(), &command, sizeof(command), at);
    if (n == sizeof(command)) {
      command |= PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY;
      n = kernel_.write(device_.get(), &command, sizeof(command), at);
    }
    rc = n == sizeof(command) ? 0 : (n < 0 ? static_cast<int>(n) : -EIO);
  }
  if (rc < 0) {
    base::log_error("%s: cannot let the card become bus master: %s: %s", card_.address.c_str(),
                    std::strerror(-rc), rescan_command(card_.address).c_str());
    return rc;
  }
  return 0;
}

int open_vfio_backend(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                      std::unique_ptr<Backend>* out, IovaMode mode) {
  auto backend = std::make_unique<VfioBackend>(paths, kernel, card, mode);
  if (const int rc = backend->open(); rc != 0) {
    return rc;
  }
  *out = std::move(backend);
  return 0;
}

}  // namespace rio::pmd::vfio
