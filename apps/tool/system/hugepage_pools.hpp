/// @file
/// The kernel's hugepages: how many of which size, on which node.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pmd/api/pci.hpp"

namespace rio::tool {

struct HugepagePool {
  uint64_t page_bytes = 0;
  int node = -1;  ///< -1: of the whole machine
  uint64_t total = 0;
  uint64_t free = 0;
  std::string folder;  ///< in sysfs, with nr_hugepages
};

/// The pools of the machine and those of its nodes, by node, then by size. A file that cannot be
/// read, or holds no number, counts as 0.
[[nodiscard]] std::vector<HugepagePool> read_hugepage_pools(const pci::PciPaths& paths);

}  // namespace rio::tool
