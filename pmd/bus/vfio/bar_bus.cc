#include "pmd/bus/vfio/bar_bus.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/log.hpp"
#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/vfio/borrowed_bar.hpp"
#include "pmd/bus/vfio/remedy.hpp"

namespace rio::pmd::vfio {
namespace {

/// Why a BAR cannot be mapped, and what to do about it.
std::string why_not(const PciCard& card, int rc) {
  if (rc == -EPERM) {
    return "the kernel is locked down (Secure Boot): switch that off to look at registers beside "
           "a running program";
  }
  if (card.driver == kVfioDriver) {
    return "a program may have it, and the kernel keeps it for that: look as root, or end the "
           "program: fuser -v /dev/vfio/" +
           std::to_string(card.iommu_group);
  }
  return rescan_command(card.address);
}

}  // namespace

int BarBus::open(const std::string& address, const PciPaths& paths, Kernel& kernel,
                 std::unique_ptr<BarBus>* out) {
  PciCard card;
  if (const int rc = find_card(paths, address, &card); rc != 0) {
    return rc;
  }
  std::unique_ptr<BarBus> bus(new BarBus(card, kernel));
  if (const int rc = bus->map(paths); rc != 0) {
    return rc;
  }
  if (card.driver == kVfioDriver && bus->bar().read32(regs::id::magic()) == regs::kAllOnes) {
    // Powered down, or gone; a program that has it open has it awake. Only opening it tells.
    if (const int rc = open_vfio_backend(paths, kernel, card, &bus->backend_); rc != 0) {
      return rc;
    }
  }
  *out = std::move(bus);
  return 0;
}

BarBus::~BarBus() {
  if (va_ != nullptr) {
    kernel_.munmap(va_, len_bytes_);
  }
}

int BarBus::map(const PciPaths& paths) {
  const uint64_t len_bytes = card_.bar_bytes[static_cast<size_t>(card_.bar)];
  if (len_bytes < regs::id::kSizeBytes) {
    base::log_error(
        "%s: BAR%d has %llu bytes: the gateware is no message card's, or the firmware gave the "
        "BAR no room: %s",
        card_.address.c_str(), card_.bar, static_cast<unsigned long long>(len_bytes),
        rescan_command(card_.address).c_str());
    return -ENXIO;
  }
  const std::string path =
      paths.sysfs + "/bus/pci/devices/" + card_.address + "/resource" + std::to_string(card_.bar);
  const KernelFd fd(kernel_, kernel_.open(path, O_RDWR | O_SYNC));
  if (fd.get() < 0) {
    base::log_error("%s: cannot open %s: %s: run with sudo", card_.address.c_str(), path.c_str(),
                    std::strerror(-fd.get()));
    return fd.get();
  }
  void* va = nullptr;
  int rc = kernel_.mmap(nullptr, len_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0, &va);
  if (rc != 0 && card_.driver == kVfioDriver &&
      borrow_bar(paths, kernel_, card_, len_bytes, PROT_READ | PROT_WRITE, &va) == 0) {
    rc = 0;
  }
  if (rc != 0) {
    base::log_error("%s: cannot map %s: %s: %s", card_.address.c_str(), path.c_str(),
                    std::strerror(-rc), why_not(card_, rc).c_str());
    return rc;
  }
  va_ = va;
  len_bytes_ = len_bytes;
  return 0;
}

Mmio BarBus::bar() {
  return backend_ != nullptr ? Mmio(backend_->bar_va(), backend_->bar_bytes())
                             : Mmio(va_, len_bytes_);
}

int BarBus::dma_alloc(size_t, size_t, DmaMemory*) {
  return -ENOTSUP;
}

void BarBus::dma_free(const DmaMemory&) {}

int BarBus::dma_map(void*, size_t, std::vector<IovaRun>*) {
  return -ENOTSUP;
}

int BarBus::dma_unmap(void*, size_t) {
  return -ENOTSUP;
}

int BarBus::irq_fd(uint32_t) {
  return -ENOTSUP;
}

}  // namespace rio::pmd::vfio
