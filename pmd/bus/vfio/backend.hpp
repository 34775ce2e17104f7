/// @file
/// The interface to a card through VFIO or UIO.
#pragma once

#include <linux/vfio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fpga/name/card_name.hpp"
#include "pmd/bus/bus.hpp"
#include "pmd/bus/vfio/bus_master.hpp"
#include "pmd/bus/vfio/kernel.hpp"
#include "pmd/bus/vfio/pci_scan.hpp"

namespace rio::pmd::vfio {

inline constexpr const char* kVfioDriver = "vfio-pci";
inline constexpr const char* kUioDriver = "uio_pci_generic";
inline constexpr const char* kIgbUioDriver = "igb_uio";
inline constexpr size_t kHugeBytes = size_t{2} << 20;  ///< a hugepage

/// An open card. Control path, one thread. 0 or -errno; the cause is in the log, with the remedy.
class Backend {
 public:
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;
  /// A window onto the BAR with the registers, valid while the object lives.
  [[nodiscard]] Mmio bar() const { return {bar_.va(), bar_.len_bytes()}; }
  /// Like Bus::dma_map(), without a check for overlaps. -ENOTSUP is not logged.
  [[nodiscard]] virtual int map(void* va, size_t len_bytes, std::vector<IovaRun>* runs) = 0;
  /// Undo a map(). @param va, len_bytes, runs exactly map()'s arguments and result.
  [[nodiscard]] virtual int unmap(void* va, size_t len_bytes, const std::vector<IovaRun>& runs) = 0;
  /// Whether dma_alloc() must take hugepages, since other memory may be moved.
  [[nodiscard]] virtual bool hugepages_only() const = 0;
  /// As Bus::irq_fd().
  [[nodiscard]] virtual int irq_fd(uint32_t vector) = 0;
  /// Reset the function, or through VFIO its slot if all of that is ours, with bus mastering off
  /// afterwards. @return -ENOTSUP where the device has no such reset.
  [[nodiscard]] virtual int reset() = 0;
  /// As Bus::start_dma() and Bus::stop_dma(). The card is opened without.
  [[nodiscard]] virtual int start_dma() = 0;
  [[nodiscard]] virtual int stop_dma() = 0;

 protected:
  Backend(const PciPaths& paths, Kernel& kernel, const PciCard& card)
      : paths_(paths), kernel_(kernel), card_(card) {}
  /// Let the card answer at its BAR, and access memory or not. @return 0 or -errno, logged.
  [[nodiscard]] int set_command(ConfigFile config, bool master) const;
  /// As stop_dma().
  [[nodiscard]] int silence(ConfigFile config) const;
  [[nodiscard]] const char* address() const { return card_.address.c_str(); }
  /// Log that something failed. @param what "cannot open /dev/uio0". @param remedy may be empty.
  /// @return rc, -errno.
  [[nodiscard]] int failed(int rc, const std::string& what, const std::string& remedy = "") const;

  const PciPaths paths_;
  Kernel& kernel_;
  const PciCard card_;
  KernelMapping bar_;
};

/// Open a card through VFIO, by its group or with iommufd. A thread gives the card up when the
/// kernel asks for it or has seen an error of it: the BAR then reads all ones, as that of a card
/// that is gone, and interrupts wake their threads. @param card bound to vfio-pci. The kernel
/// outlives the backend. @param options iova_is_va needs an IOMMU of 47 bits or more.
[[nodiscard]] int open_vfio_backend(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                                    std::unique_ptr<Backend>* out, const name::Pci& options = {});

/// Open a card through UIO. @param card bound to uio_pci_generic or igb_uio.
[[nodiscard]] int open_uio_backend(const PciPaths& paths, Kernel& kernel, const PciCard& card,
                                   std::unique_ptr<Backend>* out);

/// The page size at an address, from /proc/self/smaps. @param smaps its text. @return bytes; 0:
/// nothing is mapped at `va`, or the text is not understood.
[[nodiscard]] uint64_t page_bytes_at(const std::string& smaps, uintptr_t va);

/// Where VFIO has a region of a device. @return 0 or -errno; not logged.
[[nodiscard]] int find_region(Kernel& kernel, int device, uint32_t index, vfio_region_info* out);

}  // namespace rio::pmd::vfio
