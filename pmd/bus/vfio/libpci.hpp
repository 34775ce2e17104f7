/// @file
/// Runs libpci on a sysfs tree, with errors as return values: libpci itself would end the program.
/// Internal to pmd/bus/vfio.
#pragma once

#include "pmd/bus/vfio/kernel.hpp"

struct pci_access;

namespace rio::pmd::vfio {

/// An instance of libpci, which is not thread-safe: one at a time. Control path.
class LibPci {
 public:
  /// A function that uses libpci. An error leaves it by longjmp, so no object with a destructor may
  /// live in it.
  using Step = void (*)(pci_access* access, void* arg);

  explicit LibPci(const PciPaths& paths);
  ~LibPci();
  LibPci(const LibPci&) = delete;
  LibPci& operator=(const LibPci&) = delete;

  /// Run `step`. @return 0, -ENODEV (no such tree), -EIO (libpci's message is logged).
  [[nodiscard]] int run(Step step, void* arg);
  /// For reading results after a step; owned by this object.
  [[nodiscard]] pci_access* access() const { return access_; }

 private:
  std::string folder_;
  pci_access* access_;
  bool ready_ = false;
};

}  // namespace rio::pmd::vfio
