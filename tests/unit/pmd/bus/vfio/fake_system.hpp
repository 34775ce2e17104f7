/// @file
/// A kernel with a fake VFIO (fake_vfio.cc), for the tests of pmd/bus/vfio. Every relevant call is
/// recorded, in order.
#pragma once

#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/formatted.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "tests/unit/pmd/bus/vfio/fake_tree.hpp"

namespace rio::pmd::vfio {

/// A kernel with the real files of the tree; /dev/vfio and its descriptors are fake, and so are
/// hugepages and physical addresses. All devices have the same BAR. A watching thread may close
/// descriptors.
class FakeKernel : public Kernel {
 public:
  static constexpr int kContainer = 100001;
  static constexpr int kGroup = 100002;
  static constexpr int kDevice = 100003;
  static constexpr int kPagemap = 100004;
  static constexpr int kSmaps = 100005;
  static constexpr int kIommufd = 100006;
  static constexpr int kMore = 100010;  // further containers, groups and devices
  static constexpr uint32_t kIoas = 77;
  static constexpr uint64_t kConfigOffset = uint64_t{7} << 40;
  static constexpr uint64_t kHuge = uint64_t{2} << 20;

  explicit FakeKernel(const PciPaths& paths) : paths_(paths) {
    void* va = MAP_FAILED;
    if (ftruncate(bar_file_.get(), kBarBytes) == 0) {
      va = ::mmap(nullptr, kBarBytes, PROT_READ | PROT_WRITE, MAP_SHARED, bar_file_.get(), 0);
    }
    bar_ = static_cast<uint32_t*>(va);
    bar_[0] = regs::kMagic;
  }
  ~FakeKernel() override { ::munmap(bar_, kBarBytes); }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  int open(const std::string& path, int flags) override {
    if (const auto it = open_errors.find(path); it != open_errors.end()) {
      return it->second;
    }
    if (path == paths_.dev + "/vfio/vfio") {
      return made_up(first(kContainer), "open container");
    }
    if (path == paths_.dev + "/vfio/" + std::to_string(group) ||
        path == paths_.dev + "/vfio/" + std::to_string(group + 1)) {
      if (!groups_.insert(path).second) {
        return -EBUSY;
      }
      const int fd = made_up(first(kGroup), "open group");
      group_files_[fd] = path;
      return fd;
    }
    if (path == paths_.dev + "/iommu") {
      return made_up(kIommufd, "open iommufd");
    }
    if (path.starts_with(paths_.dev + "/vfio/devices/vfio")) {
      return made_up(first(kDevice), "open " + path.substr(path.rfind('/') + 1));
    }
    if (path == paths_.proc + "/self/pagemap") {
      return made_up(kPagemap, "open pagemap");
    }
    if (path == paths_.proc + "/self/smaps") {
      return made_up(kSmaps, "");
    }
    const int fd = real_kernel().open(path, flags);
    if (path.ends_with("/config") && flags == O_RDWR) {
      config_files_.insert(fd);
    }
    return fd;
  }
  void close(int fd) override {
    if (fd < kContainer) {
      if (const auto it = huge_files.find(fd); it != huge_files.end()) {
        hugepages += it->second && file_pages.empty() ? file_bytes / kHuge : 0;
        huge_files.erase(it);
      }
      config_files_.erase(fd);
      real_kernel().close(fd);
      return;
    }
    const std::lock_guard lock(mutex);
    opened.erase(opened.find(fd));
    if (fd != kSmaps) {
      calls.push_back("close " + std::to_string(fd - kContainer));
    }
    if (const auto file = group_files_.find(fd); file != group_files_.end()) {
      groups_.erase(file->second);
      group_files_.erase(file);
      while (groups_.empty() && !mapped.empty()) {  // the last one: its container is emptied
        unmap_pages(mapped.begin()->first, mapped.begin()->second);
      }
    }
    if (kinds_.erase(fd) == 1 && on_close) {
      on_close(fd);
    }
  }
  /// Whether a made-up descriptor is open. Any thread.
  bool is_open(int fd) {
    const std::lock_guard lock(mutex);
    return opened.contains(fd);
  }
  /// The BAR is taken away: accesses to it raise SIGBUS.
  void take_bar() { (void)!ftruncate(bar_file_.get(), 0); }
  /// The kernel asks for the first device, or reports an error of it.
  void signal(uint32_t index) {
    const std::lock_guard lock(mutex);
    eventfd_write(events.at(index), 1);
  }

  int ioctl(int fd, unsigned long request, unsigned long arg) override {
    if (const auto it = ioctl_errors.find(request); it != ioctl_errors.end()) {
      return it->second;
    }
    switch (request) {
      case VFIO_GET_API_VERSION:
        return call(is(fd, kContainer), "version", api_version);
      case VFIO_CHECK_EXTENSION:
        return call(is(fd, kContainer), "extension " + std::to_string(arg),
                    extensions.count(arg) != 0 ? 1 : 0);
      case VFIO_SET_IOMMU:
        return call(is(fd, kContainer), "set iommu " + std::to_string(arg), 0);
      case VFIO_DEVICE_RESET:
        return call(is(fd, kDevice), "reset", 0);
      default:
        return call(false, "unknown ioctl", -ENOTTY);
    }
  }

  int ioctl(int fd, unsigned long request, void* arg) override;

  int mmap(void* hint, size_t len_bytes, int prot, int flags, int fd, uint64_t offset_bytes,
           void** out) override {
    if (is(fd, kDevice)) {
      const int rc = real_kernel().mmap(hint, len_bytes, prot, flags, bar_file_.get(), 0, out);
      bars_.insert(*out);
      return call((offset_bytes >> 40) == bar_index && len_bytes == bar_len, "mmap bar", rc);
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
    if (bars_.erase(va) == 1) {
      calls.push_back("munmap bar");
    }
    const auto start = reinterpret_cast<uintptr_t>(va);
    huge.erase(huge.lower_bound(start), huge.lower_bound(start + len_bytes));
    file_pages.erase(file_pages.lower_bound(start / kHuge),
                     file_pages.lower_bound((start + len_bytes) / kHuge));
    real_kernel().munmap(va, len_bytes);
  }

  ssize_t read(int fd, void* to, size_t len_bytes, uint64_t offset_bytes) override {
    if (is(fd, kDevice) || config_files_.contains(fd)) {
      return read_config(is(fd, kDevice) ? offset_bytes - kConfigOffset : offset_bytes, to,
                         len_bytes);
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
    if (is(fd, kDevice) || config_files_.contains(fd)) {
      uint16_t value = 0;
      std::memcpy(&value, from, sizeof(value));
      if (on_command) {
        on_command(value);
      }
      command = value | (stuck_master ? command & 4 : 0);
      return call(len_bytes == 2 && offset_bytes % kConfigOffset == 4,
                  "write command " + std::to_string(value), 2);
    }
    return real_kernel().write(fd, from, len_bytes, offset_bytes);
  }
  int readlink(const std::string& path, std::string* out) override {
    return real_kernel().readlink(path, out);
  }
  int eventfd() override { return real_kernel().eventfd(); }
  int copy_fd(int, int) override { return -EPERM; }
  void nap() override {
    ++naps;
    if (on_nap) {
      on_nap();
    }
  }
  /// Makes a file of ordinary memory; the physical addresses of its pages are fake.
  int create_file(const std::string& path, size_t len_bytes) override {
    const int fd = real_kernel().create_file(path, len_bytes);
    if (fd >= 0) {
      huge_files[fd] = false;
      file_bytes = len_bytes;
    }
    return fd;
  }
  int remove_file(const std::string& path) override { return real_kernel().remove_file(path); }
  int lock_file(int fd) override { return real_kernel().lock_file(fd); }

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
  /// The BAR's memory, page-aligned: kBarBytes, which all who map the BAR share.
  uint8_t* bar() { return reinterpret_cast<uint8_t*>(bar_); }

  std::recursive_mutex mutex;  // of `opened`, `calls` and `events`

  std::map<std::string, int> open_errors;
  std::map<unsigned long, int> ioctl_errors;
  std::set<unsigned long> extensions{VFIO_TYPE1_IOMMU, VFIO_TYPE1v2_IOMMU};
  std::multiset<int> opened;
  std::vector<std::string> calls;  // a wrong argument appears as "BAD …"
  std::map<uint64_t, uint64_t> mapped;
  std::function<void(uint64_t iova, uint64_t va, uint64_t len_bytes)> on_map;  // va 0: unmapped
  std::function<void(int fd)> on_close;  // of a container, group or device
  std::set<uint32_t> tells{VFIO_PCI_REQ_IRQ_INDEX, VFIO_PCI_ERR_IRQ_INDEX};
  std::map<uint32_t, int> events;                    // by index: eventfds of the first device
  std::function<void(uint16_t command)> on_command;  // before it is written
  std::function<void()> on_nap;
  int naps = 0;
  int pending = 0;             // reads of the device's status that show requests under way
  bool has_express = true;     // the PCI Express capability
  bool gone = false;           // configuration space reads all ones
  bool stuck_master = false;   // once on, it stays on
  int refusing_container = 0;  // takes no group
  uint32_t ioas_ranges = 2;
  std::map<uintptr_t, size_t> huge;
  std::map<uint64_t, uint64_t> file_pages;  // page number of memory: page of the file
  std::map<int, bool> huge_files;           // whether its pages were taken
  std::vector<int32_t> irq_fds;
  std::vector<uint32_t> slot;  // by device: its group, or its number in iommufd; empty: no reset
  uint32_t slot_flags = 0;
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
  bool hide_physical = false;
  bool tell_ranges = true;

 private:
  /// The words that the driver reads: the command register, and the way to the express capability,
  /// which is behind another one.
  ssize_t read_config(uint64_t offset_bytes, void* to, size_t len_bytes) {
    uint16_t word = 0;
    std::string what;
    switch (offset_bytes) {
      case 0x04:
        word = command;
        what = "read command";
        break;
      case 0x06:
        word = has_express ? 0x10 : 0;
        break;
      case 0x34:
        word = 0x40;
        break;
      case 0x40:
        word = 0x6005;  // MSI
        break;
      case 0x60:
        word = 0x0010;  // PCI Express
        break;
      case 0x6A:
        word = pending > 0 ? 0x20 : 0;
        what = pending-- > 0 ? "requests pending" : "no request pending";
        break;
      default:
        what = "BAD read of configuration space";
    }
    word = gone ? 0xFFFF : word;
    std::memcpy(to, &word, sizeof(word));
    return what.empty() ? 2 : call(len_bytes == 2, what, 2);
  }
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
  /// The first descriptor of a kind that is free; FakeKernel::is() knows all of them.
  int first(int kind) {
    const std::lock_guard lock(mutex);
    int fd = kind;
    for (int more = kMore; opened.contains(fd); ++more) {
      fd = more;
    }
    kinds_[fd] = kind;
    return fd;
  }
  std::set<int> config_files_;  // of sysfs
  bool is(int fd, int kind) {
    const std::lock_guard lock(mutex);
    const auto found = kinds_.find(fd);
    return found != kinds_.end() && found->second == kind;
  }
  int map_pages(uint64_t iova, uint64_t va, uint64_t len_bytes) {
    for (const auto& [other, size] : mapped) {
      if (other < iova + len_bytes && iova < other + size) {
        return -EEXIST;
      }
    }
    if (iova % 4096 != 0 || len_bytes % 4096 != 0 || va % 4096 != 0 || len_bytes == 0 ||
        iova + len_bytes - 1 > last_iova) {
      return -EINVAL;
    }
    mapped[iova] = len_bytes;
    if (on_map) {
      on_map(iova, va, len_bytes);
    }
    return 0;
  }
  bool unmap_pages(uint64_t iova, uint64_t len_bytes) {
    const auto it = mapped.find(iova);
    if (it == mapped.end() || it->second != len_bytes) {
      return false;
    }
    mapped.erase(it);
    if (on_map) {
      on_map(iova, 0, len_bytes);
    }
    return true;
  }
  int made_up(int fd, const std::string& what) {
    const std::lock_guard lock(mutex);
    opened.insert(fd);
    if (!what.empty()) {
      calls.push_back(what);
    }
    return fd;
  }
  int call(bool right, const std::string& what, int rc) {
    const std::lock_guard lock(mutex);
    calls.push_back((right ? "" : "BAD ") + what);
    return right ? rc : -EINVAL;
  }
  template <typename T>
  T* checked(void* arg);
  int iommufd(int fd, unsigned long request, void* arg);
  int iommu_info(int fd, void* arg);

  PciPaths paths_;
  base::Fd bar_file_{memfd_create("bar", MFD_CLOEXEC)};
  uint32_t* bar_ = nullptr;
  std::set<void*> bars_;          // where it is mapped
  std::set<std::string> groups_;  // open
  std::map<int, std::string> group_files_;
  std::map<int, int> kinds_;  // of open descriptors
};

}  // namespace rio::pmd::vfio
