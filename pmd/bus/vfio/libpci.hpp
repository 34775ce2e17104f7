/// @file
/// libpci on a tree of sysfs, with errors as return values: its own way is to end the program.
/// Internal to pmd/bus/vfio.
#pragma once

#include "pmd/bus/vfio/kernel.hpp"

struct pci_access;

namespace rio::pmd::vfio {

/// libpci is not thread-safe: one of these at a time. Control path.
class LibPci {
 public:
  /// Uses libpci; left by longjmp on an error, so no object with a destructor may live in it.
  using Step = void (*)(pci_access* access, void* arg);

  explicit LibPci(const PciPaths& paths);
  ~LibPci();
  LibPci(const LibPci&) = delete;
  LibPci& operator=(const LibPci&) = delete;

  /// Run `step`. @return 0, -ENODEV (no such tree), -EIO (what libpci said is in the log).
  [[nodiscard]] int run(Step step, void* arg);
  /// For what is looked at after a step; owned by this object.
  [[nodiscard]] pci_access* access() const { return access_; }

 private:
  std::string folder_;
  pci_access* access_;
  bool ready_ = false;
};

}  // namespace rio::pmd::vfio
