/// @file
/// A real card, through VFIO or UIO, whichever driver it is bound to.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/backend.hpp"
#include "pmd/bus/vfio/dma_arena.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

struct VfioOptions {
  IovaMode iova = IovaMode::kAllocated;  ///< under VFIO; UIO has physical addresses
  bool reset = true;  ///< reset the device when it is opened, where it can be; failing is a
                      ///< warning, since the driver's own reset (GEN_REQ) comes after it
};

/// Control path: one thread. All errors are in the log with the command that mends them.
class VfioBus : public Bus {
 public:
  /// Open a card. It must be bound to vfio-pci, uio_pci_generic or igb_uio. The BAR's magic is
  /// checked. @param address as parse_address() takes it. @param kernel outlives the bus.
  /// @return 0; -EINVAL (address), -ENODEV (no such device, no group, all ones), -EBUSY (bound to
  /// another driver, or in use), -EACCES, -EPERM (group not viable), -ENXIO (no message card),
  /// or what the kernel said.
  [[nodiscard]] static int open(const std::string& address, const VfioOptions& options,
                                const PciPaths& paths, Kernel& kernel,
                                std::unique_ptr<VfioBus>* out);
  /// Open a card of the running system.
  [[nodiscard]] static int open(const std::string& address, std::unique_ptr<VfioBus>* out);

  /// The card must have been stopped. Memory of dma_alloc() goes with it.
  ~VfioBus() override;
  VfioBus(const VfioBus&) = delete;
  VfioBus& operator=(const VfioBus&) = delete;

  Mmio bar() override;
  /// @param align_bytes up to 2 MiB.
  int dma_alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) override;
  void dma_free(const DmaMemory& memory) override;
  int dma_map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) override;
  int dma_unmap(void* va, size_t len_bytes) override;
  int irq_fd(uint32_t vector) override;
  const std::string& name() const override { return card_.address; }
  int numa_node() const override { return card_.numa_node; }

  /// Reset the function; all registers are at their reset values after it. @return 0, -ENOTSUP.
  [[nodiscard]] int reset();
  [[nodiscard]] const PciCard& card() const { return card_; }

 private:
  struct UserMapping {
    size_t len_bytes;
    std::vector<IovaRun> runs;
  };

  VfioBus(const PciCard& card, std::unique_ptr<Backend> backend, Kernel& kernel,
          const PciPaths& paths);
  [[nodiscard]] int check_magic();

  PciCard card_;
  std::unique_ptr<Backend> backend_;
  DmaArena arena_;  // after the backend: its memory is unmapped first
  std::map<uintptr_t, UserMapping> user_;
};

}  // namespace rio::pmd::vfio
