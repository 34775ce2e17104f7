#include "lib/msg/registrations.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

namespace rio::msg {
namespace {

/// Ask the kernel for huge pages, if it has any. Processes with emulated cards read each other's
/// memory page by page, and huge pages make that twice as fast.
void ask_for_huge_pages(const pmd::mem::Region& region) {
  constexpr uintptr_t kHugeBytes = 2u << 20;
#ifdef MADV_COLLAPSE  // Linux 6.1
  constexpr int kCollapse = MADV_COLLAPSE;
#else
  constexpr int kCollapse = 25;
#endif
  const auto at = reinterpret_cast<uintptr_t>(region.va);
  const uintptr_t begin = (at + kHugeBytes - 1) & ~(kHugeBytes - 1);
  const uintptr_t end = (at + region.len_bytes) & ~(kHugeBytes - 1);
  if (begin < end) {
    static_cast<void>(madvise(region.va + (begin - at), end - begin, kCollapse));
  }
}

}  // namespace

const pmd::IovaRun* run_of(const pmd::mem::Region& region, const void* va) {
  const auto behind =
      std::upper_bound(region.runs.begin(), region.runs.end(), va,
                       [](const void* at, const pmd::IovaRun& run) { return at < run.va; });
  return &*(behind - 1);
}

Registrations::Registrations(Endpoint& endpoint)
    : endpoint_(endpoint), kept_max_(endpoint.card().bus().maps_addresses() ? kKeptMax : 0) {}

const pmd::mem::Region* Registrations::get(void* va, uint64_t len_bytes) {
  const auto* const begin = static_cast<const uint8_t*>(va);
  for (Entry& entry : entries_) {
    const pmd::mem::Region& region = *entry.region;
    if (begin >= region.va && begin + len_bytes <= region.va + region.len_bytes) {
      kept_ -= entry.users == 0 ? 1 : 0;
      ++entry.users;
      if (!entry.again && kept_max_ != 0) {
        ask_for_huge_pages(region);
      }
      entry.again = true;
      return entry.region;
    }
  }
  Range all = {static_cast<uint8_t*>(va), len_bytes};
  for (Range joined = join_kept(all); joined.len_bytes != all.len_bytes; joined = join_kept(all)) {
    all = joined;
  }
  const pmd::mem::Region* region = nullptr;
  if (all.len_bytes == len_bytes ||
      endpoint_.register_memory(all.va, all.len_bytes, &region) != 0) {
    while (endpoint_.register_memory(va, len_bytes, &region) != 0) {
      if (kept_ == 0) {
        return nullptr;
      }
      drop_oldest();  // the card may be out of registrations
    }
  }
  entries_.push_back({region, 1, false, 0});
  return region;
}

/// End the registrations that are kept of some of the pages of a range, since they would cut it
/// into pieces, each of which is a request of its own for the card. @return the range with theirs,
/// if that is not too long, so that buffers side by side do not end each other's registrations.
Registrations::Range Registrations::join_kept(Range range) {
  uint8_t* const first = range.va - reinterpret_cast<uintptr_t>(range.va) % pmd::mem::kMessagePage;
  uint8_t* const end = range.va + range.len_bytes;
  uint8_t* all_first = range.va;
  uint8_t* all_end = end;
  kept_ -= static_cast<uint32_t>(std::erase_if(entries_, [&](const Entry& entry) {
    uint8_t* const other = entry.region->va;
    uint8_t* const other_end = other + entry.region->len_bytes;
    if (entry.users != 0 || other >= end || first >= other_end ||
        endpoint_.unregister_memory(entry.region) != 0) {
      return false;
    }
    all_first = std::min(all_first, other);
    all_end = std::max(all_end, other_end);
    return true;
  }));
  const auto all_bytes = static_cast<uint64_t>(all_end - all_first);
  return all_bytes <= kJoinedBytesMax ? Range{all_first, all_bytes} : range;
}

void Registrations::put(const pmd::mem::Region* region) {
  if (region == nullptr) {
    return;
  }
  const auto entry = std::find_if(entries_.begin(), entries_.end(),
                                  [=](const Entry& each) { return each.region == region; });
  entry->used = ++clock_;
  if (--entry->users != 0) {
    return;
  }
  if (++kept_ > kept_max_) {
    drop_oldest();
  }
}

/// Drops the oldest registration that is not in use.
void Registrations::drop_oldest() {
  const auto oldest = std::ranges::min_element(
      entries_, {}, [](const Entry& entry) { return std::pair(entry.users != 0, entry.used); });
  static_cast<void>(endpoint_.unregister_memory(oldest->region));
  entries_.erase(oldest);
  --kept_;
}

}  // namespace rio::msg
