#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <sstream>

#include "base/folder.hpp"
#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/remedy.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kPfnMask = (uint64_t{1} << 55) - 1;  // Documentation/admin-guide/mm/pagemap.rst
constexpr uint64_t kPresent = uint64_t{1} << 63;

/// A card through UIO: the BAR from sysfs, memory by physical address. Without an IOMMU, nothing
/// protects memory from the card. Only hugepages are mapped, since the kernel may move other pages.
/// No interrupts: uio_pci_generic has none that a card with MSI-X could raise.
class UioBackend final : public Backend {
 public:
  UioBackend(const PciPaths& paths, Kernel& kernel, const PciCard& card)
      : Backend(paths, kernel, card), folder_(device_folder(paths, card.address)) {}

  [[nodiscard]] int open();

  /// -ENOTSUP if a part of the range is not in hugepages, or its physical address is hidden.
  int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  int unmap(void*, size_t, const std::vector<IovaRun>&) override { return 0; }
  bool hugepages_only() const override { return true; }
  int irq_fd(uint32_t) override { return -ENOTSUP; }
  int reset() override;
  int start_dma() override { return set_command(config(), true); }
  int stop_dma() override { return silence(config()); }

 private:
  [[nodiscard]] int open_file(const std::string& path, int flags, const char* remedy,
                              KernelFd* out);
  [[nodiscard]] int open_uio();
  [[nodiscard]] int map_bar();
  [[nodiscard]] ConfigFile config() { return {kernel_, config_.get(), 0}; }
  [[nodiscard]] int physical(uintptr_t va, uint64_t* physical_address);

  const std::string folder_;
  KernelFd uio_;
  KernelFd config_;
  KernelFd pagemap_;
};

constexpr const char* kNeedsRoot = "UIO needs root: run with sudo, or use VFIO";

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

int UioBackend::open() {
  int rc = open_uio();
  rc = rc == 0 ? map_bar() : rc;
  rc = rc == 0 ? open_file(folder_ + "/config", O_RDWR, kNeedsRoot, &config_) : rc;
  return rc == 0 ? set_command(config(), false) : rc;
}

int UioBackend::open_file(const std::string& path, int flags, const char* remedy, KernelFd* out) {
  *out = KernelFd(kernel_, kernel_.open(path, flags));
  return out->get() < 0 ? failed(out->get(), "cannot open " + path, remedy) : 0;
}

/// Keeps /dev/uioN open and locked: when it is closed, uio_pci_generic switches bus mastering off.
/// The kernel lets any number of processes open it, and each would reset the card under the others.
int UioBackend::open_uio() {
  const std::vector<std::string> nodes = base::names_in(folder_ + "/uio");
  if (nodes.empty() || !nodes.back().starts_with("uio")) {
    base::log_error("%s: no UIO node below %s/uio: %s", address(), folder_.c_str(),
                    bind_command(card_.address, kUioDriver).c_str());
    return -ENODEV;
  }
  const std::string path = paths_.dev + "/" + nodes.back();
  int rc = open_file(path, O_RDWR, kNeedsRoot, &uio_);
  if (rc == 0 && kernel_.lock_file(uio_.get()) != 0) {
    rc = failed(-EBUSY, "in use, by another process or by this one",
                "fuser -v " + path + " names it");
  }
  return rc;
}

int UioBackend::map_bar() {
  const uint64_t len_bytes = card_.bar_bytes[static_cast<size_t>(card_.bar)];
  if (len_bytes < regs::kPageBytes) {
    return refuse_bar(card_, len_bytes);
  }
  const std::string path = bar_path(paths_, card_);
  KernelFd file;
  if (const int rc = open_file(path, O_RDWR | O_SYNC, kNeedsRoot, &file); rc != 0) {
    return rc;
  }
  const int rc = bar_.map(kernel_, len_bytes, PROT_READ | PROT_WRITE, file.get(), 0);
  return rc == 0 ? 0
                 : failed(rc, "cannot map " + path,
                          rc == -EPERM ? "the kernel is locked down (Secure Boot): use VFIO" : "");
}

int UioBackend::physical(uintptr_t va, uint64_t* physical_address) {
  if (pagemap_.get() < 0) {
    if (const int rc =
            open_file(paths_.proc + "/self/pagemap", O_RDONLY,
                      "physical addresses need root: run with sudo, or use VFIO", &pagemap_);
        rc != 0) {
      return rc;
    }
  }
  uint64_t entry = 0;
  const ssize_t n = kernel_.read(pagemap_.get(), &entry, sizeof(entry), va / kPage * sizeof(entry));
  if (n != sizeof(entry) || (entry & kPresent) == 0) {
    base::log_error("%s: memory at %p is not present: write to it before it is registered",
                    address(), reinterpret_cast<void*>(va));
    return -EFAULT;
  }
  if ((entry & kPfnMask) == 0) {
    base::log_error(
        "%s: the kernel hides physical addresses: run with sudo (CAP_SYS_ADMIN), or use VFIO",
        address());
    return -EPERM;
  }
  *physical_address = (entry & kPfnMask) * kPage + va % kPage;
  return 0;
}

int UioBackend::map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) {
  std::string smaps;
  if (const int rc = read_text(paths_.proc + "/self/smaps", &smaps, kernel_); rc != 0) {
    return failed(rc, "cannot read " + paths_.proc + "/self/smaps");
  }
  std::vector<IovaRun> found;
  const auto begin = reinterpret_cast<uintptr_t>(va);
  for (uintptr_t at = begin; at < begin + len_bytes;) {
    const uint64_t page = page_bytes_at(smaps, at);
    if (page <= kPage || (page & (page - 1)) != 0) {
      return -ENOTSUP;  // the caller bounces it
    }
    // A hugepage is contiguous: its first byte decides.
    const uintptr_t end = std::min((at / page + 1) * page, begin + len_bytes);
    uint64_t iova = 0;
    if (const int rc = physical(at, &iova); rc != 0) {
      return rc;
    }
    append_run({reinterpret_cast<void*>(at), iova, end - at}, &found);
    at = end;
  }
  *runs = std::move(found);
  return 0;
}

int UioBackend::reset() {
  const int rc = write_text(folder_ + "/reset", "1", kernel_);
  if (rc == -ENOENT) {
    return -ENOTSUP;
  }
  return rc == 0 ? set_command(config(), false)
                 : failed(rc, "reset through " + folder_ + "/reset", "run with sudo");
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
