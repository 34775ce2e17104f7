/// @file
/// A card through UIO: the BAR by sysfs, memory by its physical address. Internal to pmd/bus/vfio.
#pragma once

#include <vector>

#include "pmd/bus/vfio/backend.hpp"

namespace rio::pmd::vfio {

/// Nothing guards memory here: there is no IOMMU. Only hugepages are mapped, since only they stay
/// where they are. No interrupts (uio_pci_generic has none that a card with MSI-X could raise).
class UioBackend : public Backend {
 public:
  UioBackend(const PciPaths& paths, Kernel& kernel, const PciCard& card);
  ~UioBackend() override;

  [[nodiscard]] int open();

  void* bar_va() const override { return bar_va_; }
  size_t bar_bytes() const override { return bar_bytes_; }
  /// -ENOTSUP where something of the range is no hugepage, or its address is not told to us.
  int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  int unmap(void*, size_t, const std::vector<IovaRun>&) override { return 0; }
  bool hugepages_only() const override { return true; }
  int irq_fd(uint32_t) override { return -ENOTSUP; }
  int reset() override;

 private:
  [[nodiscard]] int open_uio();
  [[nodiscard]] int map_bar();
  [[nodiscard]] int enable_bus_master();
  [[nodiscard]] int physical(uintptr_t va, uint64_t* address);

  const PciPaths paths_;
  Kernel& kernel_;
  const PciCard card_;
  const std::string folder_;
  KernelFd uio_;
  KernelFd pagemap_;
  void* bar_va_ = nullptr;
  size_t bar_bytes_ = 0;
};

/// Where /proc/self/smaps says that memory lies in pages of which size. @param smaps its text.
/// @return bytes of a page at `va`; 0 where nothing is mapped or the text is not understood.
[[nodiscard]] uint64_t page_bytes_at(const std::string& smaps, uintptr_t va);

}  // namespace rio::pmd::vfio
