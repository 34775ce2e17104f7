#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/folder.hpp"
#include "base/log.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/iommufd_uapi.hpp"
#include "pmd/bus/vfio/remedy.hpp"
#include "pmd/bus/vfio/vfio_device.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr uint32_t kRangesFirst = 16;
constexpr uint32_t kRangesMax = 4096;

/// An address space of iommufd.
class Ioas final : public DmaSpace {
 public:
  explicit Ioas(Kernel& kernel) : kernel_(kernel) {}

  [[nodiscard]] int open(const PciPaths& paths, const PciCard& card);
  /// Let an opened device in. @param device of /dev/vfio/devices.
  [[nodiscard]] int admit(const PciPaths& paths, const PciCard& card, int device);
  [[nodiscard]] const Kernel& kernel() const { return kernel_; }

 private:
  [[nodiscard]] int read_ranges(const PciCard& card);
  int map_at(uint64_t iova, void* va, size_t len_bytes) override;
  int unmap_at(uint64_t iova, size_t len_bytes) override;

  Kernel& kernel_;
  KernelFd fd_;
  uint32_t id_ = 0;
};

/// The address space of this process. Never destroyed: cards may be closed after main().
struct Shared {
  std::mutex mutex;
  std::weak_ptr<Ioas> ioas;
};

Shared& shared() {
  static auto* const kOne = new Shared;
  return *kOne;
}

/// The name of a device's own file, "vfio3"; empty: the kernel makes none.
std::string node_name(const PciPaths& paths, const PciCard& card) {
  const auto names = base::names_in(device_folder(paths, card.address) + "/vfio-dev");
  const auto found =
      std::ranges::find_if(names, [](const auto& name) { return name.starts_with("vfio"); });
  return found != names.end() ? *found : "";
}

int Ioas::open(const PciPaths& paths, const PciCard& card) {
  const std::string path = paths.dev + "/iommu";
  fd_ = KernelFd(kernel_, kernel_.open(path, O_RDWR));
  if (fd_.get() < 0) {
    return log_failed(card, fd_.get(), "cannot open " + path,
                      fd_.get() == -ENOENT ? "modprobe iommufd" : "chown $USER " + path);
  }
  uapi::IoasAlloc request{sizeof(request), 0, 0};
  if (const int rc = kernel_.ioctl(fd_.get(), uapi::kIoasAlloc, static_cast<void*>(&request));
      rc < 0) {
    return log_failed(card, rc, "iommufd gives no address space", "open it without iommufd=1");
  }
  id_ = request.out_ioas_id;
  return 0;
}

int Ioas::admit(const PciPaths& paths, const PciCard& card, int device) {
  uapi::BindIommufd bind{sizeof(bind), 0, fd_.get(), 0};
  if (const int rc = kernel_.ioctl(device, uapi::kBindIommufd, static_cast<void*>(&bind)); rc < 0) {
    const std::string others = group_neighbours(paths, card, kernel_);
    return log_failed(card, rc, "cannot give it to iommufd",
                      rc == -EPERM ? "interrupts cannot be remapped; on a machine that you trust: "
                                     "modprobe iommufd allow_unsafe_interrupts=1"
                      : others.empty() ? "another program, or this one, has it open"
                                       : "bind all devices of its IOMMU group to vfio-pci; in the "
                                         "way: " +
                                             others);
  }
  uapi::AttachIommufdPt attach{sizeof(attach), 0, id_};
  if (const int rc = kernel_.ioctl(device, uapi::kAttachIommufdPt, static_cast<void*>(&attach));
      rc < 0) {
    return log_failed(card, rc, "cannot let it into the address space of this process's cards",
                      "open it in a process of its own");
  }
  return read_ranges(card);
}

int Ioas::read_ranges(const PciCard& card) {
  std::vector<vfio_iova_range> ranges(kRangesFirst);
  uapi::IoasIovaRanges request{sizeof(request), id_, kRangesFirst, 0, 0, 0};
  for (;;) {
    request.allowed_iovas = reinterpret_cast<uintptr_t>(ranges.data());
    const int rc = kernel_.ioctl(fd_.get(), uapi::kIoasIovaRanges, static_cast<void*>(&request));
    const bool longer = rc == -EMSGSIZE && request.num_iovas > ranges.size();
    if (rc < 0 && !(longer && request.num_iovas <= kRangesMax)) {
      return log_failed(card, rc, "IOMMU_IOAS_IOVA_RANGES");
    }
    ranges.resize(request.num_iovas);
    if (rc >= 0) {
      set_ranges(std::move(ranges));
      return 0;
    }
  }
}

int Ioas::map_at(uint64_t iova, void* va, size_t len_bytes) {
  uapi::IoasMap request{sizeof(request),
                        uapi::kMapFixedIova | uapi::kMapWriteable | uapi::kMapReadable,
                        id_,
                        0,
                        reinterpret_cast<uintptr_t>(va),
                        len_bytes,
                        iova};
  return kernel_.ioctl(fd_.get(), uapi::kIoasMap, static_cast<void*>(&request));
}

int Ioas::unmap_at(uint64_t iova, size_t len_bytes) {
  uapi::IoasUnmap request{sizeof(request), id_, iova, len_bytes};
  const int rc = kernel_.ioctl(fd_.get(), uapi::kIoasUnmap, static_cast<void*>(&request));
  return rc < 0 || request.length == len_bytes ? rc : -EIO;
}

}  // namespace

bool has_only_iommufd(const PciPaths& paths, const PciCard& card) {
  const auto names = base::names_in(paths.dev + "/vfio");
  return !node_name(paths, card).empty() &&
         std::ranges::find(names, std::to_string(card.iommu_group)) == names.end();
}

int open_with_iommufd(const PciPaths& paths, Kernel& kernel, const PciCard& card, VfioDevice* out) {
  const std::string node = node_name(paths, card);
  if (node.empty()) {
    base::log_error(
        "%s: the kernel gives it no file in /dev/vfio/devices: take a kernel with "
        "CONFIG_VFIO_DEVICE_CDEV (6.6 or later), or open it without iommufd=1",
        card.address.c_str());
    return -ENOTSUP;
  }
  const std::string path = paths.dev + "/vfio/devices/" + node;
  KernelFd device(kernel, kernel.open(path, O_RDWR));
  if (device.get() < 0) {
    return log_failed(card, device.get(), "cannot open " + path, "chown $USER " + path);
  }
  Shared& known = shared();
  const std::lock_guard lock(known.mutex);
  auto ioas = known.ioas.lock();
  if (ioas == nullptr || &ioas->kernel() != &kernel) {
    ioas = std::make_shared<Ioas>(kernel);
    if (const int rc = ioas->open(paths, card); rc != 0) {
      return rc;
    }
  }
  if (const int rc = ioas->admit(paths, card, device.get()); rc != 0) {
    return rc;
  }
  known.ioas = ioas;
  *out = {std::move(ioas), nullptr, std::move(device)};
  return 0;
}

}  // namespace rio::pmd::vfio
