/// @file
/// When a device may access memory: its command register, and the requests that it has under way.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/mmio.hpp"
#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// A device's configuration space. Control path, one thread.
class ConfigSpace {
 public:
  virtual ~ConfigSpace() = default;
  /// Read or write an aligned word of 16 bits. @return 0 or -errno; not logged.
  [[nodiscard]] virtual int read16(uint32_t offset_bytes, uint16_t* out) = 0;
  [[nodiscard]] virtual int write16(uint32_t offset_bytes, uint16_t value) = 0;
  /// Let a millisecond pass.
  virtual void nap() = 0;
};

/// One in a file: VFIO's device, or sysfs's `config`.
class ConfigFile final : public ConfigSpace {
 public:
  /// @param fd open while the object is used. @param begin_bytes where the space begins.
  ConfigFile(Kernel& kernel, int fd, uint64_t begin_bytes)
      : kernel_(kernel), fd_(fd), begin_bytes_(begin_bytes) {}
  int read16(uint32_t offset_bytes, uint16_t* out) override;
  int write16(uint32_t offset_bytes, uint16_t value) override;
  void nap() override { kernel_.nap(); }

 private:
  Kernel& kernel_;
  const int fd_;
  const uint64_t begin_bytes_;
};

/// Let a device answer at its BARs, and access memory only if it is bus master (PCI Local
/// Bus 6.2.2: command register). @return 0 or -errno; not logged.
[[nodiscard]] int set_bus_master(ConfigSpace& config, bool master);

/// End a device's accesses to memory: bus mastering off, read back, then wait up to a second until
/// no request of it waits for its answer (PCIe Base 7.5.3.5: Transactions Pending). The read's
/// answer has pushed the device's writes into memory. @return 0, also if the device is gone (all
/// ones); -EIO: mastering stays on; -ETIMEDOUT: requests stay under way; or -errno; not logged.
[[nodiscard]] int end_bus_mastering(ConfigSpace& config);

/// The first word of a BAR. While it reads all ones, as while the device is being reset, ask again
/// for up to a second. @param nap lets a millisecond pass.
template <class Nap>
[[nodiscard]] uint32_t await_magic(Mmio bar, Nap&& nap) {
  constexpr int kNapsMax = 1000;
  uint32_t magic = bar.read32(regs::id::magic());
  for (int i = 0; i < kNapsMax && magic == regs::kAllOnes; ++i) {
    nap();
    magic = bar.read32(regs::id::magic());
  }
  return magic;
}

}  // namespace rio::pmd::vfio
