/// @file
/// Hugepages in files that outlive the process, for a card that no IOMMU keeps from memory.
/// Internal to pmd/bus/vfio.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "pmd/bus/vfio/kernel.hpp"

namespace rio::pmd::vfio {

/// The files of one card, in the first hugetlbfs of 2 MiB pages of the machine. A process that is
/// killed cannot stop its card, which goes on writing; pages with a name stay out of use until the
/// next process has silenced the card (docs/decisions/0033). The caller has the card locked, so
/// files of its name that are not of this object are of processes that ended. Control path, one
/// thread.
class HugeFiles {
 public:
  /// @param card address of it, for names and messages. @param kernel outlives the object.
  HugeFiles(Kernel& kernel, const PciPaths& paths, std::string card)
      : kernel_(kernel), paths_(paths), card_(std::move(card)) {}

  /// Create a file. @param len_bytes a multiple of 2 MiB. @param path set to its name. @param fd
  /// the caller's. @return 0 or -errno, logged (-ENOENT: no such file system is mounted).
  [[nodiscard]] int create(size_t len_bytes, std::string* path, KernelFd* fd);
  /// Remove a file of create(): the card has no address of it, or has stopped using it. @param path
  /// any other: nothing is done.
  void remove(const std::string& path);
  /// Remove the files of processes that ended. Only once the card is silent.
  void remove_leftovers();

 private:
  [[nodiscard]] std::string folder() const;
  [[nodiscard]] std::string prefix() const { return "riopmd-" + card_ + "-"; }

  Kernel& kernel_;
  const PciPaths paths_;
  const std::string card_;
  std::vector<std::string> own_;
  unsigned next_ = 0;
};

}  // namespace rio::pmd::vfio
