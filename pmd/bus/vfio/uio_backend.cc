#include "pmd/bus/vfio/uio_backend.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <sys/mman.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/remedy.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPfnMask = (uint64_t{1} << 55) - 1;  // Documentation/admin-guide/mm/pagemap.rst
constexpr uint64_t kPresent = uint64_t{1} << 63;

}  // namespace

uint64_t page_bytes_at(const std::string& smaps, uintptr_t va) {
  std::istringstream lines(smaps);
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    uintptr_t first = 0;
    uintptr_t end = 0;
    uint64_t kib = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &first, &end) == 2) {
      inside = first <= va && va < end;
    } else if (inside && std::sscanf(line.c_str(), "KernelPageSize: %" SCNu64 " kB", &kib) == 1) {
      return kib * 1024;
    }
  }
  return 0;
}

UioBackend::UioBackend(const PciPaths& paths, Kernel& kernel, const PciCard& card)
    : paths_(paths),
      kernel_(kernel),
      card_(card),
      folder_(paths.sysfs + "/bus/pci/devices/" + card.address) {}

UioBackend::~UioBackend() {
  if (bar_va_ != nullptr) {
    kernel_.munmap(bar_va_, bar_bytes_);
  }
}

int UioBackend::open() {
  using Step = int (UioBackend::*)();
  for (const Step step :
       {&UioBackend::open_uio, &UioBackend::map_bar, &UioBackend::enable_bus_master}) {
    if (const int rc = (this->*step)(); rc != 0) {
      return rc;
    }
  }
  return 0;
}

/// Hold /dev/uioN open: uio_pci_generic takes bus mastering away when it is closed.
int UioBackend::open_uio() {
  std::string node;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder_ + "/uio", error), end; !error && it != end;
       it.increment(error)) {
    node = it->path().filename().string();
  }
  if (node.rfind("uio", 0) != 0) {
    base::log_error("%s: no UIO node below %s/uio: %s", card_.address.c_str(), folder_.c_str(),
                    bind_command(card_.address, kUioDriver).c_str());
    return -ENODEV;
  }
  const std::string path = paths_.dev + "/" + node;
  const int fd = kernel_.open(path, O_RDWR);
  if (fd < 0) {
    base::log_error("%s: cannot open %s: %s: UIO needs root: run with sudo, or use VFIO",
                    card_.address.c_str(), path.c_str(), std::strerror(-fd));
    return fd;
  }
  uio_ = KernelFd(kernel_, fd);
  return 0;
}

int UioBackend::map_bar() {
  const uint64_t len_bytes = card_.bar_bytes[static_cast<size_t>(card_.bar)];
  if (len_bytes < regs::kPageBytes) {
    base::log_error(
        "%s: BAR%d has %llu bytes: the gateware is no message card's, or the firmware gave "
        "the BAR no room: %s",
        card_.address.c_str(), card_.bar, static_cast<unsigned long long>(len_bytes),
        rescan_command(card_.address).c_str());
    return -ENXIO;
  }
  const std::string path = folder_ + "/resource" + std::to_string(card_.bar);
  const int fd = kernel_.open(path, O_RDWR | O_SYNC);
  if (fd < 0) {
    base::log_error("%s: cannot open %s: %s: UIO needs root: run with sudo, or use VFIO",
                    card_.address.c_str(), path.c_str(), std::strerror(-fd));
    return fd;
  }
  const KernelFd closer(kernel_, fd);
  void* va = nullptr;
  if (const int rc =
          kernel_.mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &va);
      rc != 0) {
    base::log_error("%s: cannot map %s: %s%s", card_.address.c_str(), path.c_str(),
                    std::strerror(-rc),
                    rc == -EPERM ? ": the kernel is locked down (Secure Boot): use VFIO" : "");
    return rc;
  }
  bar_va_ = va;
  bar_bytes_ = len_bytes;
  return 0;
}

int UioBackend::enable_bus_master() {
  const std::string path = folder_ + "/config";
  const int fd = kernel_.open(path, O_RDWR);
  const KernelFd closer(kernel_, fd);
  int rc = fd;
  if (fd >= 0) {
    uint16_t command = 0;
    ssize_t n = kernel_.read(fd, &command, sizeof(command), PCI_COMMAND);
    if (n == sizeof(command)) {
      command |= PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY;
      n = kernel_.write(fd, &command, sizeof(command), PCI_COMMAND);
    }
    rc = n == sizeof(command) ? 0 : (n < 0 ? static_cast<int>(n) : -EIO);
  }
  if (rc < 0) {
    base::log_error("%s: cannot let the card become bus master through %s: %s: run with sudo",
                    card_.address.c_str(), path.c_str(), std::strerror(-rc));
    return rc;
  }
  return 0;
}

int UioBackend::physical(uintptr_t va, uint64_t* address) {
  if (pagemap_.get() < 0) {
    const std::string path = paths_.proc + "/self/pagemap";
    const int fd = kernel_.open(path, O_RDONLY);
    if (fd < 0) {
      base::log_error(
          "%s: cannot open %s: %s: physical addresses need root: run with sudo, or use VFIO",
          card_.address.c_str(), path.c_str(), std::strerror(-fd));
      return fd;
    }
    pagemap_ = KernelFd(kernel_, fd);
  }
  uint64_t entry = 0;
  const ssize_t n = kernel_.read(pagemap_.get(), &entry, sizeof(entry), va / kPage * sizeof(entry));
  if (n != sizeof(entry) || (entry & kPresent) == 0) {
    base::log_error("%s: memory at %p is not present: write to it before it is registered",
                    card_.address.c_str(), reinterpret_cast<void*>(va));
    return -EFAULT;
  }
  if ((entry & kPfnMask) == 0) {
    base::log_error(
        "%s: the kernel hides physical addresses: run with sudo (CAP_SYS_ADMIN), or use VFIO",
        card_.address.c_str());
    return -EPERM;
  }
  *address = (entry & kPfnMask) * kPage + va % kPage;
  return 0;
}

int UioBackend::map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  std::string smaps;
  if (const int rc = read_text(kernel_, paths_.proc + "/self/smaps", &smaps); rc != 0) {
    base::log_error("%s: cannot read %s/self/smaps: %s", card_.address.c_str(), paths_.proc.c_str(),
                    std::strerror(-rc));
    return rc;
  }
  std::vector<IovaRun> found;
  const auto begin = reinterpret_cast<uintptr_t>(va);
  for (uintptr_t at = begin; at < begin + len_bytes;) {
    const uint64_t page = page_bytes_at(smaps, at);
    if (page <= kPage || (page & (page - 1)) != 0) {
      return -ENOTSUP;  // the caller bounces it
    }
    // A hugepage is contiguous: its first byte tells.
    const uintptr_t end = std::min((at / page + 1) * page, begin + len_bytes);
    uint64_t address = 0;
    if (const int rc = physical(at, &address); rc != 0) {
      return rc;
    }
    if (!found.empty() && found.back().iova + found.back().len_bytes == address) {
      found.back().len_bytes += end - at;
    } else {
      found.push_back({reinterpret_cast<void*>(at), address, end - at});
    }
    at = end;
  }
  *runs = std::move(found);
  return 0;
}

int UioBackend::reset() {
  const int rc = write_text(kernel_, folder_ + "/reset", "1");
  if (rc == -ENOENT) {
    return -ENOTSUP;
  }
  if (rc != 0) {
    base::log_error("%s: reset through %s/reset: %s: run with sudo", card_.address.c_str(),
                    folder_.c_str(), std::strerror(-rc));
    return rc;
  }
  return enable_bus_master();
}

int open_uio_backend(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                     std::unique_ptr<Backend>* out) {
  auto backend = std::make_unique<UioBackend>(paths, kernel, card);
  if (const int rc = backend->open(); rc != 0) {
    return rc;
  }
  *out = std::move(backend);
  return 0;
}

}  // namespace rio::pmd::vfio
