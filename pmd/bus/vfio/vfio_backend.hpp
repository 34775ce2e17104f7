/// @file
/// A card through VFIO: container, group, device. Internal to pmd/bus/vfio.
#pragma once

#include <linux/vfio.h>

#include <string>
#include <vector>

#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/range_allocator.hpp"

namespace rio::pmd::vfio {

/// Steps of open() in the order of the kernel's documentation (driver-api/vfio.rst).
class VfioBackend : public Backend {
 public:
  VfioBackend(const PciPaths& paths, Kernel& kernel, const PciCard& card, IovaMode mode);
  ~VfioBackend() override;

  [[nodiscard]] int open();

  void* bar_va() const override { return bar_va_; }
  size_t bar_bytes() const override { return bar_bytes_; }
  int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  int unmap(void* va, size_t len_bytes, const std::vector<IovaRun>& runs) override;
  bool hugepages_only() const override { return false; }
  int irq_fd(uint32_t vector) override;
  int reset() override;

 private:
  [[nodiscard]] int open_container();
  [[nodiscard]] int open_group();
  [[nodiscard]] int set_iommu();
  [[nodiscard]] int read_iova_ranges();
  [[nodiscard]] int open_device();
  [[nodiscard]] int map_bar();
  [[nodiscard]] int enable_bus_master();
  [[nodiscard]] int enable_vectors();
  [[nodiscard]] bool addressable(uint64_t iova, uint64_t len_bytes) const;

  const PciPaths paths_;
  Kernel& kernel_;
  const PciCard card_;
  const IovaMode mode_;
  // Closed in the opposite order: device, group, container.
  KernelFd container_;
  KernelFd group_;
  KernelFd device_;
  uint32_t device_flags_ = 0;
  unsigned long iommu_type_ = 0;
  void* bar_va_ = nullptr;
  size_t bar_bytes_ = 0;
  RangeAllocator iovas_;
  std::vector<std::pair<uint64_t, uint64_t>> iova_ranges_;  // first and last
  std::vector<KernelFd> vectors_;
};

}  // namespace rio::pmd::vfio
