/// @file
/// Programs that hold a card, or files of DPDK's.
#pragma once

#include <string>
#include <vector>

#include "pmd/api/pci.hpp"

namespace rio::tool {

/// A program, by proc.
struct Program {
  int pid = 0;
  std::string name;        ///< of proc/PID/comm
  bool secondary = false;  ///< of a DPDK application, and may share cards with its primary
};

/// The files that the programs of a system hold open or have mapped. A snapshot: made once, then
/// constant. Programs of other users are seen by root only. Control path.
class OpenFiles {
 public:
  explicit OpenFiles(const pci::PciPaths& paths);

  /// Programs that hold a file whose name ends in one of these ways, in the order of their pids.
  /// The name is the one that the system itself has for it ("/dev/vfio/7"), whatever --root is.
  [[nodiscard]] std::vector<Program> holders_of_any(const std::vector<std::string>& endings) const;

  /// Programs that hold a card: its VFIO group, its UIO node, a BAR of it through sysfs.
  [[nodiscard]] std::vector<Program> holders_of(const pci::PciCard& card) const;

  /// Whether a program holds a file in whose name `part` is.
  [[nodiscard]] bool touches(const std::string& part) const;

  /// Whether all programs could be looked at.
  [[nodiscard]] bool complete() const { return complete_; }

 private:
  struct Process {
    Program program;
    std::vector<std::string> files;
  };
  void look_at(const std::string& folder, int pid);

  pci::PciPaths paths_;
  std::vector<Process> processes_;
  bool complete_ = true;
};

/// Name of a card's UIO node ("uio3"), empty if it has none.
[[nodiscard]] std::string uio_node(const pci::PciPaths& paths, const std::string& address);

/// "rio-testpmd (pid 812), xdma (pid 90)".
[[nodiscard]] std::string names_of(const std::vector<Program>& programs);

}  // namespace rio::tool
