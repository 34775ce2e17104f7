#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <set>

#include "base/folder.hpp"
#include "base/log.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/remedy.hpp"
#include "pmd/bus/vfio/vfio_device.hpp"

namespace rio::pmd::vfio {
namespace {

/// A container of VFIO, with an IOMMU of type 1.
class Container final : public DmaSpace {
 public:
  explicit Container(Kernel& kernel) : kernel_(kernel) {}

  [[nodiscard]] int open(const PciPaths& paths, const PciCard& card);
  /// Put a group into it. @return 0 or -errno; not logged.
  [[nodiscard]] int admit(int group);
  /// Make it work, once a group is in it.
  [[nodiscard]] int set_iommu(const PciCard& card);
  /// Read the addresses that all groups in it can have.
  [[nodiscard]] int read_ranges(const PciCard& card);
  /// A group was closed.
  void leave() { --groups_; }

 private:
  int map_at(uint64_t iova, void* va, size_t len_bytes) override;
  int unmap_at(uint64_t iova, size_t len_bytes) override;

  Kernel& kernel_;
  KernelFd fd_;
  unsigned long iommu_type_ = 0;
  std::atomic<int> groups_ = 0;
};

/// An IOMMU group in its container.
struct Group {
  Group(Kernel& of, int its_number) : kernel(of), number(its_number) {}
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ~Group() {
    fd = {};
    if (container != nullptr) {
      container->leave();
    }
  }

  Kernel& kernel;
  const int number;
  std::shared_ptr<Container> container;
  KernelFd fd;
  std::set<std::string> devices;  // addresses of those that are open; of Groups::mutex
};

/// The groups that this process has open. Never destroyed: cards may be closed after main().
struct Groups {
  std::mutex mutex;
  std::vector<std::weak_ptr<Group>> all;
};

Groups& groups() {
  static auto* const kAll = new Groups;
  return *kAll;
}

/// A device's place in its group.
struct Place {
  Place(std::shared_ptr<Group> in, std::string its_address)
      : group(std::move(in)), address(std::move(its_address)) {}
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    const std::lock_guard lock(groups().mutex);
    group->devices.erase(address);
  }

  const std::shared_ptr<Group> group;
  const std::string address;
};

int Container::open(const PciPaths& paths, const PciCard& card) {
  const std::string path = paths.dev + "/vfio/vfio";
  const int fd = kernel_.open(path, O_RDWR);
  if (fd < 0) {
    return log_failed(card, fd, "cannot open " + path,
                      fd == -EACCES ? "chmod 666 /dev/vfio/vfio (it gives no rights by itself)"
                                    : "modprobe vfio-pci");
  }
  fd_ = KernelFd(kernel_, fd);
  if (const int version = kernel_.ioctl(fd, VFIO_GET_API_VERSION, 0ul);
      version != VFIO_API_VERSION) {
    base::log_error("%s: VFIO speaks version %d, this driver version %d: use another kernel",
                    card.address.c_str(), version, VFIO_API_VERSION);
    return version < 0 ? version : -EPROTO;
  }
  for (const unsigned long type : {VFIO_TYPE1v2_IOMMU, VFIO_TYPE1_IOMMU}) {
    if (kernel_.ioctl(fd, VFIO_CHECK_EXTENSION, type) > 0) {
      iommu_type_ = type;
      return 0;
    }
  }
  base::log_error("%s: VFIO has no type 1 IOMMU: modprobe vfio_iommu_type1", card.address.c_str());
  return -ENOTSUP;
}

int Container::admit(int group) {
  int container = fd_.get();
  const int rc = kernel_.ioctl(group, VFIO_GROUP_SET_CONTAINER, static_cast<void*>(&container));
  groups_ += rc < 0 ? 0 : 1;
  return std::min(rc, 0);
}

int Container::set_iommu(const PciCard& card) {
  const int rc = kernel_.ioctl(fd_.get(), VFIO_SET_IOMMU, iommu_type_);
  return rc >= 0 ? 0
                 : log_failed(card, rc, "VFIO_SET_IOMMU",
                              rc == -EPERM
                                  ? "interrupts cannot be remapped; on a machine that you trust: "
                                    "modprobe -r vfio_iommu_type1; modprobe vfio_iommu_type1 "
                                    "allow_unsafe_interrupts=1"
                                  : "");
}

int Container::read_ranges(const PciCard& card) {
  // Two calls: the first returns the length of the answer.
  auto head = sized<vfio_iommu_type1_info>();
  if (const int rc = kernel_.ioctl(fd_.get(), VFIO_IOMMU_GET_INFO, static_cast<void*>(&head));
      rc < 0) {
    return log_failed(card, rc, "VFIO_IOMMU_GET_INFO");
  }
  const size_t len_bytes = std::clamp<size_t>(head.argsz, sizeof(head), 65536);
  std::vector<uint64_t> words((len_bytes + 7) / 8);
  auto* bytes = reinterpret_cast<uint8_t*>(words.data());
  head.argsz = static_cast<uint32_t>(len_bytes);
  std::memcpy(bytes, &head, sizeof(head));
  if (const int rc = kernel_.ioctl(fd_.get(), VFIO_IOMMU_GET_INFO, static_cast<void*>(bytes));
      rc < 0) {
    return log_failed(card, rc, "VFIO_IOMMU_GET_INFO");
  }
  std::memcpy(&head, bytes, sizeof(head));
  std::vector<vfio_iova_range> found;
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
        found.push_back(range);
      }
    }
    at = cap.next;
  }
  if (found.empty()) {  // kernels before 5.4 do not report them
    // IOMMUs have at least 39 bits; the MSI window below 4 GiB is left out.
    found = {{0, 0xFEDFFFFFu}, {0x100000000u, (uint64_t{1} << 39) - 1}};
  }
  set_ranges(std::move(found));
  return 0;
}

int Container::map_at(uint64_t iova, void* va, size_t len_bytes) {
  auto request = sized<vfio_iommu_type1_dma_map>();
  request.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  request.vaddr = reinterpret_cast<uintptr_t>(va);
  request.iova = iova;
  request.size = len_bytes;
  return kernel_.ioctl(fd_.get(), VFIO_IOMMU_MAP_DMA, static_cast<void*>(&request));
}

int Container::unmap_at(uint64_t iova, size_t len_bytes) {
  if (groups_ == 0) {
    return 0;  // the kernel unmapped everything when the last group left
  }
  auto request = sized<vfio_iommu_type1_dma_unmap>();
  request.iova = iova;
  request.size = len_bytes;
  const int rc = kernel_.ioctl(fd_.get(), VFIO_IOMMU_UNMAP_DMA, static_cast<void*>(&request));
  return rc < 0 || request.size == len_bytes ? rc : -EIO;
}

/// Opens the file of a group, whose devices must all be VFIO's.
int open_group_file(const PciPaths& paths, const PciCard& card, Group* group) {
  const std::string number = std::to_string(card.iommu_group);
  const std::string path = paths.dev + "/vfio/" + number;
  const int fd = group->kernel.open(path, O_RDWR);
  if (fd == -EBUSY) {
    base::log_error(
        "%s: its IOMMU group %s is in use, by another process or by EAL in this one: fuser -v %s "
        "names it",
        card.address.c_str(), number.c_str(), path.c_str());
    return fd;
  }
  if (fd < 0) {
    return log_failed(
        card, fd, "cannot open " + path,
        fd == -ENOENT ? bind_command(card.address, kVfioDriver) : "chown $USER " + path);
  }
  group->fd = KernelFd(group->kernel, fd);
  auto status = sized<vfio_group_status>();
  if (const int rc = group->kernel.ioctl(fd, VFIO_GROUP_GET_STATUS, static_cast<void*>(&status));
      rc < 0) {
    return log_failed(card, rc, "status of IOMMU group " + number);
  }
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0) {
    const std::string others = group_neighbours(paths, card, group->kernel);
    base::log_error(
        "%s: its IOMMU group %s is not viable: bind all of its devices to vfio-pci. In the "
        "way: %s. For each: %s",
        card.address.c_str(), number.c_str(), others.empty() ? "unknown" : others.c_str(),
        bind_command("ADDRESS", kVfioDriver).c_str());
    return -EPERM;
  }
  return 0;
}

/// Puts a group into a container of this process; into a new one if the kernel refuses, which it
/// does where two IOMMUs have no addresses in common.
int join_container(const PciPaths& paths, const PciCard& card,
                   const std::vector<std::shared_ptr<Group>>& others, Group* group) {
  for (const auto& other : others) {
    if (other->container->admit(group->fd.get()) == 0) {
      group->container = other->container;
      return group->container->read_ranges(card);
    }
  }
  auto container = std::make_shared<Container>(group->kernel);
  int rc = container->open(paths, card);
  if (rc == 0 && (rc = container->admit(group->fd.get())) != 0) {
    return log_failed(card, rc, "cannot put its group into a container");
  }
  if (rc != 0) {
    return rc;
  }
  group->container = container;
  rc = container->set_iommu(card);
  return rc == 0 ? container->read_ranges(card) : rc;
}

/// The group of a card, opened if this process does not have it open. With Groups::mutex held.
int find_group(const PciPaths& paths, Kernel& kernel, const PciCard& card,
               std::shared_ptr<Group>* out) {
  std::vector<std::weak_ptr<Group>>& all = groups().all;
  std::erase_if(all, [](const auto& weak) { return weak.expired(); });
  std::vector<std::shared_ptr<Group>> others;
  for (const auto& weak : all) {
    auto group = weak.lock();
    if (group == nullptr || &group->kernel != &kernel) {
      continue;
    }
    if (group->number == card.iommu_group) {
      *out = std::move(group);
      return 0;
    }
    others.push_back(std::move(group));
  }
  auto group = std::make_shared<Group>(kernel, card.iommu_group);
  int rc = open_group_file(paths, card, group.get());
  rc = rc == 0 ? join_container(paths, card, others, group.get()) : rc;
  if (rc == 0) {
    all.push_back(group);
    *out = std::move(group);
  }
  return rc;
}

}  // namespace

int lone_group(const VfioDevice& device) {
  const Group& group = *static_cast<const Place*>(device.group.get())->group;
  const std::lock_guard lock(groups().mutex);
  return group.devices.size() == 1 ? group.fd.get() : -EBUSY;
}

int open_in_group(const PciPaths& paths, Kernel& kernel, const PciCard& card, VfioDevice* out) {
  if (card.iommu_group < 0) {
    base::log_error(
        "%s: the card has no IOMMU group: switch the IOMMU on (VT-d or AMD-Vi in the firmware, "
        "intel_iommu=on on the kernel's command line), or use UIO: %s",
        card.address.c_str(), bind_command(card.address, kUioDriver).c_str());
    return -ENODEV;
  }
  const std::string unsafe = "noiommu-" + std::to_string(card.iommu_group);
  const auto names = base::names_in(paths.dev + "/vfio");
  if (std::ranges::find(names, unsafe) != names.end()) {
    base::log_error(
        "%s: VFIO has it in no-IOMMU mode (%s/vfio/%s), where nothing keeps it from all of memory, "
        "which this driver does not take for VFIO. Switch the IOMMU on (VT-d or AMD-Vi in the "
        "firmware, intel_iommu=on on the kernel's command line) and that mode off (echo 0 > "
        "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode), or use UIO: %s",
        card.address.c_str(), paths.dev.c_str(), unsafe.c_str(),
        bind_command(card.address, kUioDriver).c_str());
    return -ENOTSUP;
  }
  std::shared_ptr<Group> group;
  std::unique_lock lock(groups().mutex);
  if (const int rc = find_group(paths, kernel, card, &group); rc != 0) {
    return rc;
  }
  // The kernel would open it once more, and this process would reset it under its own feet.
  if (!group->devices.insert(card.address).second) {
    base::log_error("%s: this process has it open already: close it first", card.address.c_str());
    return -EBUSY;
  }
  lock.unlock();
  VfioDevice device{group->container, std::make_shared<Place>(group, card.address), {}};
  std::string name = card.address;
  const int fd =
      kernel.ioctl(group->fd.get(), VFIO_GROUP_GET_DEVICE_FD, static_cast<void*>(name.data()));
  if (fd < 0) {
    return log_failed(card, fd, "VFIO gives no device", bind_command(card.address, kVfioDriver));
  }
  device.fd = KernelFd(kernel, fd);
  *out = std::move(device);
  return 0;
}

}  // namespace rio::pmd::vfio
