/// @file
/// A PCI card that EAL has probed and mapped (VFIO or UIO).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/eal/zones.hpp"

struct rte_pci_device;

namespace rio::pmd {

/// Control path, not thread-safe. The device outlives the bus. When the kernel asks for the device
/// (unbind, hot-unplug), EAL's interrupt thread makes the BAR of this process read all ones, as
/// that of a card that is gone; the application then closes or removes the device, or ends.
class EalPciBus final : public Bus {
 public:
  /// @param bar_index 0 to 5; 2 for QEMU's ivshmem. @param tag see Zones.
  /// @return -ENODEV: EAL has not mapped the BAR; -EINVAL: it is smaller than a card's.
  [[nodiscard]] static int create(rte_pci_device* device, unsigned bar_index, std::string tag,
                                  std::unique_ptr<EalPciBus>* out);
  ~EalPciBus() override;

  [[nodiscard]] Mmio bar() override;
  [[nodiscard]] int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override {
    return zones_.alloc(len_bytes, align_bytes, out);
  }
  void dma_free(const DmaMemory& memory) override { zones_.free(memory); }
  [[nodiscard]] void* shared_alloc(size_t len_bytes, size_t align_bytes) override {
    return eal_shared_alloc(len_bytes, align_bytes);
  }
  void shared_free(void* memory) override { eal_shared_free(memory); }
  /// Returns the runs of EAL's memory. Maps other memory through VFIO if bus addresses are pointers
  /// (--iova-mode=va), else -ENOTSUP.
  [[nodiscard]] int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  [[nodiscard]] int dma_unmap(void* va, size_t len_bytes) override;
  /// Without VFIO, or with VFIO's no-IOMMU mode.
  [[nodiscard]] bool reaches_all_memory() const override;
  /// For the primary process. EAL itself starts the card's accesses when it probes the card, and
  /// the destructor does not stop them, since secondary processes may go on.
  [[nodiscard]] int start_dma() override;
  [[nodiscard]] int stop_dma() override;
  /// The first call enables the card's interrupts: all MSI-X vectors that it and EAL can have.
  /// @return also -ENOTSUP: not bound to vfio-pci, or no such vector.
  [[nodiscard]] int irq_fd(uint32_t vector) override;
  [[nodiscard]] const std::string& name() const override { return name_; }
  [[nodiscard]] int numa_node() const override;

 private:
  EalPciBus(rte_pci_device* device, unsigned bar_index, std::string tag);
  [[nodiscard]] int enable_irqs();

  rte_pci_device* device_;
  unsigned bar_index_;
  std::string name_;
  Zones zones_;
  std::map<void*, std::pair<size_t, bool>> mapped_;  // length; whether by rte_dev_dma_map
  bool irqs_enabled_ = false;
};

}  // namespace rio::pmd
