#include "pmd/cores/placement.hpp"

#include <hwloc.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/formatted.hpp"
#include "base/log.hpp"
#include "pmd/cores/cpu_list.hpp"

namespace rio::pmd::cores {
namespace {

constexpr unsigned kCountMax = 4096;
constexpr unsigned kFar = 1u << 20;
constexpr unsigned kSameNode = 10;  // ACPI 6.5 §5.2.17

struct BitmapFree {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapFree>;

hwloc_obj_t node_of(hwloc_topology_t topology, unsigned cpu) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    if (hwloc_bitmap_isset(node->cpuset, cpu) != 0) {
      return node;
    }
  }
  return nullptr;
}

hwloc_obj_t node_numbered(hwloc_topology_t topology, int number) {
  return number < 0 ? nullptr
                    : hwloc_get_numanode_obj_by_os_index(topology, static_cast<unsigned>(number));
}

/// Distance of two nodes by the firmware's table; kFar if it has no entry.
unsigned node_distance(hwloc_topology_t topology, hwloc_obj_t from, hwloc_obj_t to) {
  if (from == to) {
    return 0;
  }
  unsigned count = 1;
  hwloc_distances_s* table = nullptr;
  if (hwloc_distances_get_by_type(topology, HWLOC_OBJ_NUMANODE, &count, &table,
                                  HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0) != 0 ||
      count == 0) {
    return kFar;
  }
  hwloc_uint64_t there = kFar;
  hwloc_uint64_t back = 0;
  const bool known = hwloc_distances_obj_pair_values(table, from, to, &there, &back) == 0;
  hwloc_distances_release(topology, table);
  return known ? static_cast<unsigned>(std::min<hwloc_uint64_t>(there, kFar)) : kFar;
}

}  // namespace

Placement::Placement(hwloc_topology* topology) : topology_(topology) {}

Placement::~Placement() {
  hwloc_topology_destroy(topology_);
}

int Placement::create(std::unique_ptr<Placement>* out, const std::string& fs_root) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    base::log_error("hwloc: no topology: %s", std::strerror(errno));
    return -EIO;
  }
  std::unique_ptr<Placement> placement(new Placement(topology));
  if (const int rc = placement->load(fs_root); rc != 0) {
    return rc;
  }
  *out = std::move(placement);
  return 0;
}

int Placement::load(const std::string& fs_root) {
  // Keep disallowed CPUs, so that a list that names one gets the right error.
  hwloc_topology_set_flags(topology_, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  hwloc_topology_set_type_filter(topology_, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  // sysfs tells where devices are. The plugin, if present, would also read their names: 0.6 MB that
  // it does not free.
  (void)hwloc_topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "pci");
  // hwloc reads this variable while it loads; there is no other way to tell it. cpuid would
  // describe the machine that we run on.
  if (!fs_root.empty()) {
    setenv("HWLOC_FSROOT", fs_root.c_str(), 1);
    (void)hwloc_topology_set_components(topology_, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
  }
  const int loaded = hwloc_topology_load(topology_);
  if (!fs_root.empty()) {
    unsetenv("HWLOC_FSROOT");
  }
  if (loaded != 0) {
    base::log_error("hwloc: cannot read the topology: %s: see lstopo", std::strerror(errno));
    return -EIO;
  }
  const Bitmap allowed(hwloc_bitmap_dup(hwloc_topology_get_allowed_cpuset(topology_)));
  const Bitmap affinity(hwloc_bitmap_alloc());
  if (hwloc_topology_is_thissystem(topology_) != 0 &&
      hwloc_get_cpubind(topology_, affinity.get(), HWLOC_CPUBIND_THREAD) == 0) {
    hwloc_bitmap_and(allowed.get(), allowed.get(), affinity.get());
  }
  hwloc_bitmap_and(allowed.get(), allowed.get(), hwloc_topology_get_topology_cpuset(topology_));
  for (int cpu = -1; (cpu = hwloc_bitmap_next(allowed.get(), cpu)) >= 0;) {
    usable_.push_back(static_cast<unsigned>(cpu));
  }
  if (usable_.empty()) {
    base::log_error("no CPU may be used: see taskset -p $$ and the container's cpuset");
    return -EINVAL;
  }
  return 0;
}

unsigned Placement::core_of(unsigned cpu) const {
  const hwloc_obj_t pu = hwloc_get_pu_obj_by_os_index(topology_, cpu);
  const hwloc_obj_t core =
      pu == nullptr ? nullptr : hwloc_get_ancestor_obj_by_type(topology_, HWLOC_OBJ_CORE, pu);
  // Without cores in the topology each CPU counts as one; such numbers are kept apart.
  return core != nullptr ? core->logical_index : kFar + cpu;
}

unsigned Placement::distance(const Near& near, unsigned cpu) const {
  const hwloc_obj_t own = node_of(topology_, cpu);
  const auto distance_of = [this, own](hwloc_obj_t node) {
    return node == nullptr || own == nullptr ? kFar : node_distance(topology_, node, own);
  };
  const hwloc_obj_t card = near.pci_address.empty() ? nullptr
                                                    : hwloc_get_pcidev_by_busidstring(
                                                          topology_, near.pci_address.c_str());
  const hwloc_obj_t place =
      card == nullptr ? nullptr : hwloc_get_non_io_ancestor_obj(topology_, card);
  if (place != nullptr && place->cpuset != nullptr &&
      hwloc_bitmap_isequal(place->cpuset, hwloc_topology_get_topology_cpuset(topology_)) == 0) {
    if (hwloc_bitmap_isset(place->cpuset, cpu) != 0) {
      return 0;
    }
    const hwloc_obj_t node =
        node_of(topology_, static_cast<unsigned>(hwloc_bitmap_first(place->cpuset)));
    // 1: the card's node, but not its part of it
    return own == node ? 1 : std::max(2u, distance_of(node));
  }
  const hwloc_obj_t node = node_numbered(topology_, near.numa_node);
  return node == nullptr ? 0 : distance_of(node);
}

std::vector<unsigned> Placement::nearest(const Near& near) const {
  std::map<unsigned, std::vector<unsigned>> by_distance;
  for (const unsigned cpu : usable_) {
    by_distance[distance(near, cpu)].push_back(cpu);
  }
  return by_distance.begin()->second;
}

int Placement::choose(const Near& near, unsigned count, std::span<const unsigned> taken,
                      std::vector<unsigned>* out) const {
  if (count == 0 || count > kCountMax) {
    base::log_error("%u pollers asked for: take 1 to %u", count, kCountMax);
    return -EINVAL;
  }
  std::set<unsigned> taken_cores;
  for (const unsigned cpu : taken) {
    taken_cores.insert(core_of(cpu));
  }
  // Nearest first; equally near ones in the order of the cores.
  std::vector<std::tuple<unsigned, unsigned, unsigned>> order;
  for (const unsigned cpu : usable_) {
    order.emplace_back(distance(near, cpu), core_of(cpu), cpu);
  }
  std::sort(order.begin(), order.end());
  std::vector<unsigned> all;  // on free cores, then second hyperthreads, then taken ones
  std::vector<unsigned> second;
  std::vector<unsigned> used;
  for (const auto& [far, core, cpu] : order) {
    const bool is_taken = std::find(taken.begin(), taken.end(), cpu) != taken.end();
    (is_taken ? used : taken_cores.insert(core).second ? all : second).push_back(cpu);
  }
  all.insert(all.end(), second.begin(), second.end());
  all.insert(all.end(), used.begin(), used.end());
  std::vector<unsigned> chosen;
  for (unsigned i = 0; i < count; ++i) {
    chosen.push_back(all[i % all.size()]);
  }
  *out = std::move(chosen);
  return 0;
}

int Placement::parse_list(const std::string& text, std::vector<unsigned>* out) const {
  const std::string usable = format_cpu_list(usable_);
  std::vector<unsigned> list;
  std::string problem;
  if (!parse_cpu_list(text, &list, &problem)) {
    base::log_error("\"%s\" is not a list of CPUs: %s; write 1,3-5; usable: %s", text.c_str(),
                    problem.c_str(), usable.c_str());
    return -EINVAL;
  }
  std::set<unsigned> seen;
  for (const unsigned cpu : list) {
    if (!std::binary_search(usable_.begin(), usable_.end(), cpu)) {
      const bool exists = hwloc_get_pu_obj_by_os_index(topology_, cpu) != nullptr;
      base::log_error("CPU %u of \"%s\" %s; usable: %s%s", cpu, text.c_str(),
                      exists ? "may not be used" : "does not exist", usable.c_str(),
                      exists ? " (see taskset -p $$ and the container's cpuset)" : "");
      return -EINVAL;
    }
    if (!seen.insert(cpu).second) {
      base::log_error("CPU %u is named twice in \"%s\": name each once; usable: %s", cpu,
                      text.c_str(), usable.c_str());
      return -EINVAL;
    }
  }
  *out = std::move(list);
  return 0;
}

std::string Placement::sharing_warning(std::span<const unsigned> cpus) const {
  std::string text;
  for (size_t i = 0; i < cpus.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      std::string line;
      if (cpus[i] == cpus[j]) {
        line = base::formatted("pollers %zu and %zu share CPU %u: each slows the other", j, i,
                               cpus[i]);
      } else if (core_of(cpus[i]) == core_of(cpus[j])) {
        line =
            base::formatted("pollers %zu and %zu share a core: CPUs %u and %u are its hyperthreads",
                            j, i, cpus[j], cpus[i]);
      } else {
        continue;
      }
      text += (text.empty() ? "" : "; ") + line;
      break;  // one line for each poller
    }
  }
  return text;
}

int Placement::numa_node_of(unsigned cpu) const {
  const hwloc_obj_t node = node_of(topology_, cpu);
  return node == nullptr ? -1 : static_cast<int>(node->os_index);
}

unsigned Placement::numa_distance(int from, int to) const {
  const hwloc_obj_t a = node_numbered(topology_, from);
  const hwloc_obj_t b = node_numbered(topology_, to);
  if (a == nullptr || b == nullptr) {
    return 0;
  }
  const unsigned distance = a == b ? kSameNode : node_distance(topology_, a, b);
  return distance == kFar ? 0 : distance;
}

int pin_this_thread(unsigned cpu) {
  if (cpu >= CPU_SETSIZE) {
    base::log_error("cannot pin to CPU %u: numbers go to %d", cpu, CPU_SETSIZE - 1);
    return -EINVAL;
  }
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (const int rc = pthread_setaffinity_np(pthread_self(), sizeof(set), &set); rc != 0) {
    base::log_error("cannot pin to CPU %u: %s: it must exist and be in the container's cpuset", cpu,
                    std::strerror(rc));
    return -rc;
  }
  return 0;
}

}  // namespace rio::pmd::cores
