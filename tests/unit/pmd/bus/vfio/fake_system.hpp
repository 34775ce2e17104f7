/// @file
/// A machine for the tests of pmd/bus/vfio: a sysfs tree in a temporary folder, and a kernel with a
/// fake VFIO. Every relevant call is recorded, in order.
#pragma once

#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/formatted.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

inline constexpr size_t kBarBytes = 0x200000;

/// A temporary folder with sys, dev and proc in it.
class FakeTree {
 public:
  FakeTree() {
    char name[] = "/tmp/riopmd-vfio-XXXXXX";
    root = mkdtemp(name);
    paths.sysfs = root + "/sys";
    paths.dev = root + "/dev";
    paths.proc = root + "/proc";
    std::filesystem::create_directories(paths.sysfs + "/bus/pci/devices");
    std::filesystem::create_directories(paths.sysfs + "/bus/pci/drivers");
    std::filesystem::create_directories(paths.sysfs + "/kernel/mm/hugepages/hugepages-2048kB");
    std::filesystem::create_directories(paths.dev + "/vfio");
    std::filesystem::create_directories(paths.proc + "/self");
    write(paths.sysfs + "/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "0\n");
    write(paths.sysfs + "/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "8\n");
  }
  ~FakeTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  }
  FakeTree(const FakeTree&) = delete;
  FakeTree& operator=(const FakeTree&) = delete;

  static void write(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  std::string device(const std::string& address) const {
    return paths.sysfs + "/bus/pci/devices/" + address;
  }

  /// Adds a device with a BAR0 (or BAR2) of kBarBytes, whose words are in a file. Its subsystem ids
  /// are a card's.
  void add_device(const std::string& address, uint16_t vendor, uint16_t id,
                  const std::string& driver, int group, int bar = 0, int numa = 1) {
    const std::string folder = device(address);
    std::filesystem::create_directories(folder);
    set_ids(address, "", vendor, id);
    set_ids(address, "subsystem_", 0x10EE, 0x5249);
    write(folder + "/class", "0x028000\n");
    write(folder + "/irq", "0\n");
    write(folder + "/numa_node", std::to_string(numa) + "\n");
    std::string resource;
    for (int i = 0; i < 7; ++i) {
      resource += i == bar ? base::formatted("0x%016lx 0x%016lx 0x%016lx\n", 0xE0000000ul,
                                             0xE0000000ul + kBarBytes - 1, 0x40200ul)
                           : "0x0 0x0 0x0\n";
    }
    write(folder + "/resource", resource);
    std::string config(256, '\0');
    config[0] = static_cast<char>(vendor & 0xFF);
    config[1] = static_cast<char>(vendor >> 8);
    config[2] = static_cast<char>(id & 0xFF);
    config[3] = static_cast<char>(id >> 8);
    write(folder + "/config", config);
    if (!driver.empty()) {
      bind(address, driver);
    }
    if (group >= 0) {
      const std::string devices =
          paths.sysfs + "/kernel/iommu_groups/" + std::to_string(group) + "/devices";
      std::filesystem::create_directories(devices);
      std::filesystem::create_directory_symlink(folder, devices + "/" + address);
      std::filesystem::create_directory_symlink(
          "../../../../kernel/iommu_groups/" + std::to_string(group), folder + "/iommu_group");
    }
    set_word(address, bar, regs::kMagic);
  }

  void set_ids(const std::string& address, const std::string& of, uint16_t vendor, uint16_t id) {
    write(device(address) + "/" + of + "vendor", base::formatted("0x%04x\n", vendor));
    write(device(address) + "/" + of + "device", base::formatted("0x%04x\n", id));
  }

  void bind(const std::string& address, const std::string& driver) {
    const std::string folder = paths.sysfs + "/bus/pci/drivers/" + driver;
    std::filesystem::create_directories(folder);
    std::filesystem::remove(device(address) + "/driver");
    std::filesystem::create_directory_symlink("../../drivers/" + driver,
                                              device(address) + "/driver");
    if (driver.rfind("uio", 0) == 0 || driver == "igb_uio") {
      std::filesystem::create_directories(device(address) + "/uio/uio3");
      write(paths.dev + "/uio3", "");
    }
  }

  /// Sets the first word of a BAR, which is a file that can be mapped.
  void set_word(const std::string& address, int bar, uint32_t word) {
    const std::string path = device(address) + "/resource" + std::to_string(bar);
    std::ofstream file(path, std::ios::binary);
    file.write(reinterpret_cast<const char*>(&word), sizeof(word));
    file.close();
    std::filesystem::resize_file(path, kBarBytes);
  }

  std::string root;
  PciPaths paths;
};

/// A kernel with the real files of the tree; /dev/vfio and its descriptors are fake, and so are
/// hugepages and physical addresses.
class FakeKernel : public Kernel {
 public:
  static constexpr int kContainer = 100001;
  static constexpr int kGroup = 100002;
  static constexpr int kDevice = 100003;
  static constexpr int kPagemap = 100004;
  static constexpr int kSmaps = 100005;
  static constexpr uint64_t kConfigOffset = uint64_t{7} << 40;
  static constexpr uint64_t kHuge = uint64_t{2} << 20;

  explicit FakeKernel(const PciPaths& paths) : paths_(paths), bar_(kBarBytes / 4) {
    bar_[0] = regs::kMagic;
  }

  int open(const std::string& path, int flags) override {
    if (const auto it = open_errors.find(path); it != open_errors.end()) {
      return it->second;
    }
    if (path == paths_.dev + "/vfio/vfio") {
      return made_up(kContainer, "open container");
    }
    if (path == paths_.dev + "/vfio/" + std::to_string(group)) {
      return made_up(kGroup, "open group");
    }
    if (path == paths_.proc + "/self/pagemap") {
      return made_up(kPagemap, "open pagemap");
    }
    if (path == paths_.proc + "/self/smaps") {
      return made_up(kSmaps, "");
    }
    return real_kernel().open(path, flags);
  }
  void close(int fd) override {
    if (fd < kContainer) {
      if (const auto it = huge_files.find(fd); it != huge_files.end()) {
        hugepages += it->second && file_pages.empty() ? file_bytes / kHuge : 0;
        huge_files.erase(it);
      }
      real_kernel().close(fd);
      return;
    }
    opened.erase(opened.find(fd));
    if (fd != kSmaps) {
      calls.push_back("close " + std::to_string(fd - kContainer));
    }
  }

  int ioctl(int fd, unsigned long request, unsigned long arg) override {
    if (const auto it = ioctl_errors.find(request); it != ioctl_errors.end()) {
      return it->second;
    }
    switch (request) {
      case VFIO_GET_API_VERSION:
        return call(fd == kContainer, "version", api_version);
      case VFIO_CHECK_EXTENSION:
        return call(fd == kContainer, "extension " + std::to_string(arg),
                    extensions.count(arg) != 0 ? 1 : 0);
      case VFIO_SET_IOMMU:
        return call(fd == kContainer, "set iommu " + std::to_string(arg), 0);
      case VFIO_DEVICE_RESET:
        return call(fd == kDevice, "reset", 0);
      default:
        return call(false, "unknown ioctl", -ENOTTY);
    }
  }

  int ioctl(int fd, unsigned long request, void* arg) override {
    if (const auto it = ioctl_errors.find(request); it != ioctl_errors.end()) {
      return it->second;
    }
    switch (request) {
      case VFIO_GROUP_GET_STATUS: {
        auto* status = checked<vfio_group_status>(arg);
        status->flags = viable ? VFIO_GROUP_FLAGS_VIABLE : 0;
        return call(fd == kGroup, "group status", 0);
      }
      case VFIO_GROUP_SET_CONTAINER:
        return call(fd == kGroup && *static_cast<int*>(arg) == kContainer, "set container", 0);
      case VFIO_IOMMU_GET_INFO:
        return iommu_info(fd, arg);
      case VFIO_GROUP_GET_DEVICE_FD:
        opened.insert(kDevice);
        return call(fd == kGroup, std::string("device ") + static_cast<const char*>(arg), kDevice);
      case VFIO_DEVICE_GET_INFO: {
        auto* info = checked<vfio_device_info>(arg);
        info->flags = VFIO_DEVICE_FLAGS_PCI | (can_reset ? VFIO_DEVICE_FLAGS_RESET : 0);
        info->num_regions = VFIO_PCI_NUM_REGIONS;
        info->num_irqs = VFIO_PCI_NUM_IRQS;
        return call(fd == kDevice, "device info", 0);
      }
      case VFIO_DEVICE_GET_REGION_INFO: {
        auto* region = checked<vfio_region_info>(arg);
        const bool config = region->index == VFIO_PCI_CONFIG_REGION_INDEX;
        region->size = config ? 4096 : bar_len;
        region->offset = static_cast<uint64_t>(region->index) << 40;
        region->flags = VFIO_REGION_INFO_FLAG_READ | VFIO_REGION_INFO_FLAG_WRITE |
                        (config ? 0 : VFIO_REGION_INFO_FLAG_MMAP);
        return call(fd == kDevice, "region " + std::to_string(region->index), 0);
      }
      case VFIO_DEVICE_GET_IRQ_INFO: {
        auto* info = checked<vfio_irq_info>(arg);
        info->count = vectors;
        info->flags = VFIO_IRQ_INFO_EVENTFD | VFIO_IRQ_INFO_NORESIZE;
        return call(fd == kDevice && info->index == VFIO_PCI_MSIX_IRQ_INDEX, "irq info", 0);
      }
      case VFIO_DEVICE_SET_IRQS: {
        const auto* set = static_cast<const vfio_irq_set*>(arg);
        irq_fds.resize(set->count);
        std::memcpy(irq_fds.data(), set->data, set->count * sizeof(int32_t));
        return call(fd == kDevice && set->index == VFIO_PCI_MSIX_IRQ_INDEX && set->start == 0 &&
                        set->argsz == sizeof(*set) + set->count * 4 &&
                        set->flags == (VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER),
                    "set irqs " + std::to_string(set->count), 0);
      }
      case VFIO_IOMMU_MAP_DMA: {
        const auto* map = checked<vfio_iommu_type1_dma_map>(arg);
        for (const auto& [iova, size] : mapped) {
          if (iova < map->iova + map->size && map->iova < iova + size) {
            return -EEXIST;
          }
        }
        if (map->iova % 4096 != 0 || map->size % 4096 != 0 || map->vaddr % 4096 != 0 ||
            map->size == 0 || map->iova + map->size - 1 > last_iova) {
          return -EINVAL;
        }
        mapped[map->iova] = map->size;
        return call(
            fd == kContainer && map->flags == (VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE),
            "map " + std::to_string(map->size), 0);
      }
      case VFIO_IOMMU_UNMAP_DMA: {
        const auto* unmap = checked<vfio_iommu_type1_dma_unmap>(arg);
        const auto it = mapped.find(unmap->iova);
        const bool known = it != mapped.end() && it->second == unmap->size;
        if (known) {
          mapped.erase(it);
        }
        return call(fd == kContainer && known, "unmap " + std::to_string(unmap->size), 0);
      }
      default:
        return call(false, "unknown ioctl", -ENOTTY);
    }
  }

  int mmap(void* hint, size_t len_bytes, int prot, int flags, int fd, uint64_t offset_bytes,
           void** out) override {
    if (fd == kDevice) {
      *out = bar_.data();
      return call((offset_bytes >> 40) == bar_index && len_bytes == bar_len, "mmap bar", 0);
    }
    if (huge_files.count(fd) != 0) {
      return map_huge_file(hint, len_bytes, prot, flags, fd, offset_bytes, out);
    }
    if ((flags & MAP_HUGETLB) == 0) {
      return real_kernel().mmap(hint, len_bytes, prot, flags, fd, offset_bytes, out);
    }
    if (len_bytes / kHuge > hugepages) {
      return -ENOMEM;
    }
    // An aligned piece of ordinary memory stands for the hugepages; the rest of it leaks.
    void* raw = nullptr;
    const int rc = real_kernel().mmap(hint, len_bytes + kHuge, prot,
                                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, &raw);
    if (rc == 0) {
      const uintptr_t start = (reinterpret_cast<uintptr_t>(raw) + kHuge - 1) / kHuge * kHuge;
      huge[start] = len_bytes;
      hugepages -= len_bytes / kHuge;
      *out = reinterpret_cast<void*>(start);
    }
    return rc;
  }
  void munmap(void* va, size_t len_bytes) override {
    if (va == bar_.data()) {
      calls.push_back("munmap bar");
      return;
    }
    const auto start = reinterpret_cast<uintptr_t>(va);
    huge.erase(huge.lower_bound(start), huge.lower_bound(start + len_bytes));
    file_pages.erase(file_pages.lower_bound(start / kHuge),
                     file_pages.lower_bound((start + len_bytes) / kHuge));
    real_kernel().munmap(va, len_bytes);
  }

  ssize_t read(int fd, void* to, size_t len_bytes, uint64_t offset_bytes) override {
    if (fd == kDevice) {
      std::memcpy(to, &command, sizeof(command));
      return call(len_bytes == 2 && offset_bytes == kConfigOffset + 4, "read command", 2);
    }
    if (fd == kPagemap) {
      const uint64_t va = offset_bytes / 8 * 4096;
      const uint64_t entry = (uint64_t{1} << 63) | (hide_physical ? 0 : physical(va) / 4096);
      std::memcpy(to, &entry, sizeof(entry));
      return sizeof(entry);
    }
    if (fd == kSmaps) {
      const std::string text = smaps();
      if (offset_bytes >= text.size()) {
        return 0;
      }
      const size_t n = std::min(len_bytes, text.size() - offset_bytes);
      std::memcpy(to, text.data() + offset_bytes, n);
      return static_cast<ssize_t>(n);
    }
    return real_kernel().read(fd, to, len_bytes, offset_bytes);
  }
  ssize_t write(int fd, const void* from, size_t len_bytes, uint64_t offset_bytes) override {
    if (fd == kDevice) {
      std::memcpy(&command, from, sizeof(command));
      return call(len_bytes == 2 && offset_bytes == kConfigOffset + 4, "write command", 2);
    }
    return real_kernel().write(fd, from, len_bytes, offset_bytes);
  }
  int readlink(const std::string& path, std::string* out) override {
    return real_kernel().readlink(path, out);
  }
  int eventfd() override { return real_kernel().eventfd(); }
  int copy_fd(int, int) override { return -EPERM; }
  /// Makes a file of ordinary memory; the physical addresses of its pages are fake.
  int hugepage_file(size_t len_bytes) override {
    if (!has_huge_files) {
      return -ENOSYS;
    }
    const int fd = ::memfd_create("fake", MFD_CLOEXEC);
    if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(len_bytes)) != 0) {
      return -ENOMEM;
    }
    huge_files[fd] = false;
    file_bytes = len_bytes;
    return fd;
  }

  void drop_pages(int fd, uint64_t offset_bytes, size_t len_bytes) override {
    hugepages += len_bytes / kHuge;
    dropped += len_bytes / kHuge;
    // A mapped page must not be dropped: the file's mapping still refers to it.
    for (const auto& [page, number] : file_pages) {
      if (number == offset_bytes / kHuge && huge_files.count(fd) != 0) {
        calls.push_back("BAD drop of a mapped page");
      }
    }
  }

  /// A page's fake address: in reverse order if `scattered`, in another order if `shuffled`, with
  /// gaps between all of them if `apart`. A page of a file keeps its address wherever it is mapped.
  [[nodiscard]] uint64_t physical(uint64_t va) const {
    const auto page = file_pages.find(va / kHuge);
    uint64_t number = page != file_pages.end() ? page->second : va / kHuge % 2048;
    number = shuffled ? number * 5 % 16 : number;
    const uint64_t step = apart ? 2 : 1;
    return (scattered ? 8192 - number * step : 8192 + number * step) * kHuge + va % kHuge;
  }
  [[nodiscard]] std::string smaps() const {
    std::string text = "00400000-00500000 r-xp 00000000 00:00 0\nKernelPageSize:        4 kB\n";
    for (const auto& [start, len] : huge) {
      text += base::formatted("%lx-%lx rw-s 00000000 00:0f 1 /anon_hugepage (deleted)\n", start,
                              start + len);
      text += "Size: 2048 kB\nKernelPageSize:     2048 kB\nMMUPageSize: 2048 kB\n";
    }
    return text;
  }
  void set_magic(uint32_t word) { bar_[0] = word; }

  std::map<std::string, int> open_errors;
  std::map<unsigned long, int> ioctl_errors;
  std::set<unsigned long> extensions{VFIO_TYPE1_IOMMU, VFIO_TYPE1v2_IOMMU};
  std::multiset<int> opened;
  std::vector<std::string> calls;  // a wrong argument appears as "BAD …"
  std::map<uint64_t, uint64_t> mapped;
  std::map<uintptr_t, size_t> huge;
  std::map<uint64_t, uint64_t> file_pages;  // page number of memory: page of the file
  std::map<int, bool> huge_files;           // whether its pages were taken
  std::vector<int32_t> irq_fds;
  uint64_t last_iova = (uint64_t{1} << 39) - 1;
  size_t bar_len = kBarBytes;
  size_t hugepages = 0;
  size_t file_bytes = 0;  // of the last file of hugepages
  uint64_t bar_index = 0;
  int group = 7;
  int api_version = 0;
  uint32_t vectors = 4;
  uint16_t command = 0;
  bool viable = true;
  bool can_reset = true;
  bool scattered = false;
  bool apart = false;
  bool shuffled = false;
  size_t dropped = 0;
  bool has_huge_files = true;
  bool hide_physical = false;
  bool tell_ranges = true;

 private:
  int map_huge_file(void* hint, size_t len_bytes, int prot, int flags, int fd,
                    uint64_t offset_bytes, void** out) {
    if (!huge_files[fd]) {
      if (len_bytes / kHuge > hugepages) {
        return -ENOMEM;
      }
      hugepages -= len_bytes / kHuge;
      huge_files[fd] = true;
    }
    void* at = hint;
    if ((flags & MAP_FIXED) == 0) {  // aligned, as the kernel does it; the rest leaks
      void* raw = nullptr;
      if (real_kernel().mmap(nullptr, len_bytes + kHuge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                             0, &raw) != 0) {
        return -ENOMEM;
      }
      at = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(raw) + kHuge - 1) / kHuge * kHuge);
    }
    const int rc =
        real_kernel().mmap(at, len_bytes, prot, flags | MAP_FIXED, fd, offset_bytes, out);
    const auto start = reinterpret_cast<uintptr_t>(at);
    for (size_t i = 0; rc == 0 && i < len_bytes / kHuge; ++i) {
      file_pages[start / kHuge + i] = offset_bytes / kHuge + i;
    }
    if (rc == 0) {
      huge[start] = len_bytes;
    }
    return rc;
  }
  int made_up(int fd, const std::string& what) {
    opened.insert(fd);
    if (!what.empty()) {
      calls.push_back(what);
    }
    return fd;
  }
  int call(bool right, const std::string& what, int rc) {
    calls.push_back((right ? "" : "BAD ") + what);
    return right ? rc : -EINVAL;
  }
  template <typename T>
  T* checked(void* arg) {
    auto* typed = static_cast<T*>(arg);
    if (typed->argsz != sizeof(T)) {
      calls.push_back("BAD argsz");
    }
    return typed;
  }
  int iommu_info(int fd, void* arg) {
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
    return call(fd == kContainer, "iommu info", 0);
  }

  PciPaths paths_;
  std::vector<uint32_t> bar_;
};

}  // namespace rio::pmd::vfio
