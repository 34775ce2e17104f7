#include "pmd/mem/registration.hpp"

#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <optional>

#include "base/fork.hpp"
#include "base/log.hpp"

namespace rio::pmd::mem {
namespace {

uintptr_t address(const void* va) {
  return reinterpret_cast<uintptr_t>(va);
}

void* pointer(uintptr_t va) {
  return reinterpret_cast<void*>(va);
}

/// Checks that a bus covered a range that it mapped, in order.
bool covers(const std::vector<IovaRun>& runs, uintptr_t begin, uintptr_t end) {
  uintptr_t at = begin;
  for (const IovaRun& run : runs) {
    if (address(run.va) != at || run.len_bytes == 0 || run.len_bytes > end - at) {
      return false;
    }
    at += run.len_bytes;
  }
  return at == end;
}

}  // namespace

/// A region whose memory forked children do not have where the card reaches pages and not
/// addresses: when parent and child share a page until one of them writes, kernels before 5.12, and
/// all of them under UIO, may leave the card's page to the child.
struct MemoryMap::HeldRegion : Region {
  std::optional<base::NotInherited> held;
};

void Unregister::operator()(const Region* region) const {
  map->unregister(region);
  delete static_cast<const MemoryMap::HeldRegion*>(region);
}

MemoryMap::MemoryMap(Bus& bus)
    : bus_(bus), page_bytes_(static_cast<uintptr_t>(sysconf(_SC_PAGESIZE))) {}

MemoryMap::~MemoryMap() {
  assert(regions_ == 0 && "a Registration outlives its MemoryMap");
}

MemoryMap::Mappings::const_iterator MemoryMap::find(uintptr_t va) const {
  auto it = mappings_.upper_bound(va);
  if (it == mappings_.begin()) {
    return it;
  }
  const auto before = std::prev(it);
  return before->second.end > va ? before : it;
}

/// A mapping may still hold pages that no region covers any more: by now they may be other memory.
int MemoryMap::check_stale(uintptr_t begin, uintptr_t end) const {
  if (bus_.maps_addresses()) {
    return 0;
  }
  for (auto it = find(begin); it != mappings_.end() && it->first < end; ++it) {
    if (it->second.adopted) {
      continue;
    }
    uintptr_t at = std::max(begin, it->first);
    const uintptr_t stop = std::min(end, it->second.end);
    while (at < stop) {
      uintptr_t covered = at;
      for (const Region* user : it->second.users) {
        if (address(user->va) <= at) {
          covered = std::max<uintptr_t>(covered, address(user->va) + user->len_bytes);
        }
      }
      if (covered == at) {
        base::log_error(
            "%s: memory at %p was unregistered, but its mapping is still in use by a range that "
            "overlapped it: unregister that range first, then register this one",
            bus_.name().c_str(), pointer(at));
        return -EBUSY;
      }
      at = covered;
    }
  }
  return 0;
}

int MemoryMap::map_gaps(uintptr_t begin, uintptr_t end, std::vector<uintptr_t>* made) {
  auto it = find(begin);
  for (uintptr_t at = begin; at < end;) {
    if (it != mappings_.end() && it->first <= at) {
      at = it->second.end;
      ++it;
      continue;
    }
    const uintptr_t stop = it == mappings_.end() ? end : std::min(end, it->first);
    Mapping mapping{stop, {}, {}, false};
    if (const int rc = bus_.dma_map(pointer(at), stop - at, &mapping.runs); rc != 0) {
      return rc;
    }
    if (!covers(mapping.runs, at, stop)) {
      base::log_error("%s: the bus did not map %p, %zu bytes, but another range",
                      bus_.name().c_str(), pointer(at), static_cast<size_t>(stop - at));
      (void)bus_.dma_unmap(pointer(at), stop - at);
      return -EIO;
    }
    mappings_.emplace(at, std::move(mapping));
    made->push_back(at);
    at = stop;
  }
  return 0;
}

void MemoryMap::drop(Mappings::iterator it) {
  // The bus logs a failure; either way the mapping is no longer used.
  (void)bus_.dma_unmap(pointer(it->first), it->second.end - it->first);
  mappings_.erase(it);
}

int MemoryMap::register_range(void* va, uint64_t len_bytes, Registration* out) {
  const uintptr_t first = address(va);
  if (va == nullptr || len_bytes == 0 || len_bytes > UINTPTR_MAX - page_bytes_ - first) {
    base::log_error(
        "%s: cannot register %p, %llu bytes: give a valid address and at least one byte",
        bus_.name().c_str(), va, static_cast<unsigned long long>(len_bytes));
    return -EINVAL;
  }
  const uintptr_t begin = first & ~(page_bytes_ - 1);
  const uintptr_t end = (first + len_bytes + page_bytes_ - 1) & ~(page_bytes_ - 1);
  if (const int rc = check_stale(begin, end); rc != 0) {
    return rc;
  }
  auto region = std::make_unique<HeldRegion>();
  if (!bus_.maps_addresses()) {
    region->held.emplace(va, len_bytes);
  }
  std::vector<uintptr_t> made;
  if (const int rc = map_gaps(begin, end, &made); rc != 0) {
    for (const uintptr_t start : made) {
      drop(mappings_.find(start));
    }
    return rc;
  }
  region->va = static_cast<uint8_t*>(pointer(begin));
  region->len_bytes = end - begin;
  lookup_runs(pointer(begin), end - begin, &region->runs);
  Registration registration(region.release(), {this});
  ++regions_;
  for (auto it = mappings_.lower_bound(find(begin)->first);
       it != mappings_.end() && it->first < end; ++it) {
    it->second.users.push_back(registration.get());
  }
  *out = std::move(registration);
  return 0;
}

void MemoryMap::unregister(const Region* region) {
  const uintptr_t begin = address(region->va);
  const uintptr_t end = begin + region->len_bytes;
  auto it = mappings_.lower_bound(find(begin)->first);
  while (it != mappings_.end() && it->first < end) {
    const auto here = it++;
    std::erase(here->second.users, region);
    if (here->second.users.empty() && !here->second.adopted) {
      drop(here);
    }
  }
  --regions_;
}

int MemoryMap::adopt(const DmaMemory& memory) {
  const uintptr_t begin = address(memory.va);
  if (memory.va == nullptr || memory.len_bytes == 0 || memory.len_bytes > UINTPTR_MAX - begin) {
    return -EINVAL;
  }
  const auto it = find(begin);
  if (it != mappings_.end() && it->first < begin + memory.len_bytes) {
    return -EEXIST;
  }
  mappings_.emplace(
      begin,
      Mapping{begin + memory.len_bytes, {{memory.va, memory.iova, memory.len_bytes}}, {}, true});
  return 0;
}

int MemoryMap::forget(const DmaMemory& memory) {
  const auto it = mappings_.find(address(memory.va));
  if (it == mappings_.end() || !it->second.adopted) {
    return -ENOENT;
  }
  if (!it->second.users.empty()) {
    return -EBUSY;
  }
  mappings_.erase(it);
  return 0;
}

int MemoryMap::lookup(const void* va, uint64_t len_bytes, uint64_t* iova) const {
  std::vector<IovaRun> runs;
  lookup_runs(va, len_bytes, &runs);
  uint64_t found = 0;
  for (const IovaRun& run : runs) {
    found += run.len_bytes;
  }
  if (len_bytes == 0 || found != len_bytes) {
    return -ENOENT;
  }
  if (runs.size() != 1) {
    return -EXDEV;
  }
  *iova = runs[0].iova;
  return 0;
}

void MemoryMap::lookup_runs(const void* va, uint64_t len_bytes, std::vector<IovaRun>* out) const {
  out->clear();
  const uintptr_t begin = address(va);
  const uintptr_t end = len_bytes > UINTPTR_MAX - begin ? UINTPTR_MAX : begin + len_bytes;
  for (auto it = find(begin); it != mappings_.end() && it->first < end; ++it) {
    const std::vector<IovaRun>& runs = it->second.runs;
    auto run = std::partition_point(runs.begin(), runs.end(), [begin](const IovaRun& r) {
      return address(r.va) + r.len_bytes <= begin;
    });
    for (; run != runs.end() && address(run->va) < end; ++run) {
      const uintptr_t from = std::max(address(run->va), begin);
      const uintptr_t to = std::min(address(run->va) + run->len_bytes, end);
      if (from < to) {
        append_run({pointer(from), run->iova + (from - address(run->va)), to - from}, out);
      }
    }
  }
}

}  // namespace rio::pmd::mem
