#include "pmd/bus/eal/zones.hpp"

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_memzone.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/log.hpp"

namespace rio::pmd {

Zones::~Zones() {
  for (const auto& [va, zone] : zones_) {
    rte_memzone_free(zone);
  }
}

int Zones::alloc(size_t len_bytes, size_t align_bytes, DmaMemory* out) {
  if (len_bytes == 0 || !std::has_single_bit(align_bytes) || align_bytes > UINT32_MAX ||
      tag_.size() > kZoneTagMax) {
    return -EINVAL;
  }
  char name[RTE_MEMZONE_NAMESIZE];
  std::snprintf(name, sizeof(name), "%s.%x", tag_.c_str(), next_++);
  const rte_memzone* zone = rte_memzone_reserve_aligned(
      name, len_bytes, SOCKET_ID_ANY, RTE_MEMZONE_IOVA_CONTIG, static_cast<unsigned>(align_bytes));
  if (zone == nullptr) {
    base::log_error(
        "memzone %s: cannot have %zu contiguous bytes (%s): give EAL more memory, see -m and "
        "dpdk-hugepages.py%s",
        name, len_bytes, rte_strerror(rte_errno),
        rte_eal_iova_mode() == RTE_IOVA_PA
            ? "; with physical addresses more than a hugepage is seldom contiguous unless EAL "
              "sorts "
              "its pages: --legacy-mem (without --in-memory), or hugepages of 1 GiB"
            : "");
    return -ENOMEM;
  }
  if (zone->iova == RTE_BAD_IOVA) {
    base::log_error("memzone %s has no bus address: start EAL with --iova-mode=va", name);
    rte_memzone_free(zone);
    return -ENOTSUP;
  }
  std::memset(zone->addr, 0, zone->len);
  zones_.emplace(zone->addr, zone);
  *out = {.va = zone->addr, .iova = zone->iova, .len_bytes = len_bytes};
  return 0;
}

void Zones::free(const DmaMemory& memory) {
  if (left_) {
    return;
  }
  const auto it = zones_.find(memory.va);
  if (it == zones_.end()) {
    base::log_error("memory at %p is not of %s: not freed", memory.va, tag_.c_str());
    return;
  }
  rte_memzone_free(it->second);
  zones_.erase(it);
}

void* eal_shared_alloc(size_t len_bytes, size_t align_bytes) {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    return own_alloc(len_bytes, align_bytes);
  }
  void* const memory =
      rte_zmalloc_socket("rio", len_bytes, static_cast<unsigned>(align_bytes), SOCKET_ID_ANY);
  if (memory == nullptr) {
    base::log_error(
        "cannot have %zu bytes of EAL's memory: give it more, see -m and dpdk-hugepages.py",
        len_bytes);
  }
  return memory;
}

void eal_shared_free(void* memory) {
  if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
    std::free(memory);
    return;
  }
  rte_free(memory);
}

uint32_t free_zones(std::string_view tag) {
  struct Wanted {
    std::string prefix;
    std::vector<const rte_memzone*> found;
  } wanted{std::string(tag) + ".", {}};
  const auto collect = [](const rte_memzone* zone, void* arg) {
    auto& [prefix, found] = *static_cast<Wanted*>(arg);
    if (std::string_view(zone->name).starts_with(prefix)) {
      found.push_back(zone);
    }
  };
  rte_memzone_walk(collect, &wanted);  // holds a lock that rte_memzone_free takes, hence two steps
  uint32_t count = 0;
  for (const rte_memzone* zone : wanted.found) {
    count += rte_memzone_free(zone) == 0 ? 1 : 0;
  }
  return count;
}

}  // namespace rio::pmd
