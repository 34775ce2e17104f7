/// @file
/// A card to look at while another program may be using it: its BAR, and nothing else.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

/// Maps the BAR through sysfs, or by borrow_bar() where a program has it and the kernel keeps it
/// for that. Nothing is reset and nothing becomes reachable for the card, so there is no memory and
/// there are no interrupts. When a program opens the card after this, such a kernel takes the
/// mapping away: the next access is a SIGBUS. Control path, one thread.
class BarBus final : public Bus {
 public:
  /// Open a card. vfio-pci keeps a device that no program has open powered down; such a one is
  /// opened through VFIO, without a reset. @param address as parse_address() takes it. @param
  /// kernel outlives the bus. @return 0; -EINVAL (address), -ENODEV (no such device), -EACCES,
  /// -EPERM (no rights, or the kernel is locked down), -ENXIO (no BAR), or what the kernel said.
  [[nodiscard]] static int open(const std::string& address, const PciPaths& paths, Kernel& kernel,
                                std::unique_ptr<BarBus>* out);
  ~BarBus() override;
  BarBus(const BarBus&) = delete;
  BarBus& operator=(const BarBus&) = delete;

  Mmio bar() override;
  /// -ENOTSUP, as all that follow.
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
  std::unique_ptr<Backend> backend_;  // where the card had to be woken
  void* va_ = nullptr;                // else
  size_t len_bytes_ = 0;
};

}  // namespace rio::pmd::vfio
