/// @file
/// Inspects a card, through its BAR alone, even while another program uses it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

/// Maps the BAR through sysfs, or by borrow_bar() if the kernel reserves it for a program that has
/// it open. Resets nothing and makes no memory reachable, so it has neither memory nor interrupts.
/// If a program opens the card later, such a kernel removes the mapping: the next access raises
/// SIGBUS. Control path, one thread.
class BarBus final : public Bus {
 public:
  /// Open a card. vfio-pci keeps a device powered down while no program has it open; this opens
  /// such a device through VFIO, without a reset. @param address as parse_address() takes it.
  /// @param kernel outlives the bus. @return 0; -EINVAL (address), -ENODEV (no such device),
  /// -EACCES, -EPERM (no rights, or the kernel is locked down), -ENXIO (no BAR), or the kernel's
  /// error.
  [[nodiscard]] static int open(const std::string& address, const PciPaths& paths, Kernel& kernel,
                                std::unique_ptr<BarBus>* out);
  ~BarBus() override;
  BarBus(const BarBus&) = delete;
  BarBus& operator=(const BarBus&) = delete;

  Mmio bar() override;
  /// Not supported, like the functions below: -ENOTSUP.
  int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override;
  void dma_free(const DmaMemory& memory) override;
  int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  int dma_unmap(void* va, size_t len_bytes) override;
  int irq_fd(uint32_t vector) override;
  const std::string& name() const override { return card_.address; }
  int numa_node() const override { return card_.numa_node; }

 private:
  BarBus(const PciCard& card, Kernel& kernel) : card_(card), kernel_(kernel) {}
  [[nodiscard]] int map(const PciPaths& paths);

  PciCard card_;
  Kernel& kernel_;
  std::unique_ptr<Backend> backend_;  // if the card had to be woken
  void* va_ = nullptr;                // otherwise
  size_t len_bytes_ = 0;
};

}  // namespace rio::pmd::vfio
