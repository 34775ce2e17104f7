#include "apps/tool/system/hugepage_pools.hpp"

#include <algorithm>
#include <tuple>

#include "apps/tool/system/files.hpp"

namespace rio::tool {
namespace {

/// Bytes of a folder's name "hugepages-2048kB"; 0 if it is none.
uint64_t page_bytes_of(const std::string& name) {
  if (name.size() < 2 || name.substr(name.size() - 2) != "kB") {
    return 0;
  }
  return uint64_t{1024} * number_after(name.substr(0, name.size() - 2), "hugepages-").value_or(0);
}

void add_pools(const std::string& folder, int node, std::vector<HugepagePool>* pools) {
  for (const std::string& name : names_in(folder)) {
    HugepagePool pool;
    pool.page_bytes = page_bytes_of(name);
    pool.node = node;
    pool.folder = joined(folder, name);
    pool.total = number_of(pool.folder + "/nr_hugepages").value_or(0);
    pool.free = number_of(pool.folder + "/free_hugepages").value_or(0);
    if (pool.page_bytes != 0) {
      pools->push_back(pool);
    }
  }
}

}  // namespace

std::vector<HugepagePool> read_hugepage_pools(const pci::PciPaths& paths) {
  std::vector<HugepagePool> pools;
  add_pools(paths.sysfs + "/kernel/mm/hugepages", -1, &pools);
  const std::string nodes = paths.sysfs + "/devices/system/node";
  for (const std::string& name : names_in(nodes)) {
    if (const auto node = number_after(name, "node")) {
      add_pools(joined(nodes, name).append("/hugepages"), static_cast<int>(*node), &pools);
    }
  }
  std::sort(pools.begin(), pools.end(), [](const HugepagePool& a, const HugepagePool& b) {
    return std::tie(a.node, a.page_bytes) < std::tie(b.node, b.page_bytes);
  });
  return pools;
}

}  // namespace rio::tool
