#include "pmd/bus/vfio/dma_space.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/log.hpp"
#include "pmd/bus/vfio/backend.hpp"

namespace rio::pmd::vfio {
namespace {

constexpr uint64_t kSmallAlign = 65536;

/// The first number from `from` on that lies `offset` behind a multiple of `align`; 0: there is
/// none.
uint64_t align_up(uint64_t from, uint64_t align, uint64_t offset) {
  const uint64_t at = ((from - offset + align - 1) & ~(align - 1)) + offset;
  return from != 0 && at >= from ? at : 0;  // 0: past the last number
}

/// The remedy for a failed mapping.
const char* map_remedy(int rc) {
  switch (-rc) {
    case ENOMEM:
      return ": more memory is locked than `ulimit -l` allows: ulimit -l unlimited, or in "
             "/etc/security/limits.conf: * - memlock unlimited (systemd: LimitMEMLOCK=infinity)";
    case ENOSPC:
      return ": too many mappings: register fewer, larger ranges, or raise "
             "/sys/module/vfio_iommu_type1/parameters/dma_entry_limit";
    case EFAULT:
      return ": some of it is not mapped, or read-only: register memory that can be written";
    default:
      return "";
  }
}

}  // namespace

void DmaSpace::set_ranges(std::vector<vfio_iova_range> ranges) {
  const std::lock_guard lock(mutex_);
  ranges_ = std::move(ranges);
}

bool DmaSpace::addressable(uint64_t iova, size_t len_bytes) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const auto& range) {
    return range.start <= iova && iova <= range.end && range.end - iova >= len_bytes - 1;
  });
}

/// Find free addresses from `from` on. @param offset of the address within 2 MiB, so that the IOMMU
/// can use its large pages; 0 for memory below 2 MiB.
bool DmaSpace::find_gap(uint64_t from, uint64_t offset, size_t len_bytes, uint64_t* iova) const {
  const uint64_t align = len_bytes >= kHugeBytes ? kHugeBytes : kSmallAlign;
  for (const vfio_iova_range& range : ranges_) {
    // Keep 0: it looks like "none".
    uint64_t at = align_up(std::max<uint64_t>({range.start, from, kHugeBytes}), align, offset);
    while (at != 0 && at <= range.end && range.end - at >= len_bytes - 1) {
      auto next = pieces_.upper_bound(at);
      if (next != pieces_.begin() &&
          at - std::prev(next)->first < std::prev(next)->second.len_bytes) {
        --next;
      } else if (next == pieces_.end() || next->first - at >= len_bytes) {
        *iova = at;
        return true;
      }
      at = align_up(next->first + next->second.len_bytes, align, offset);
    }
  }
  return false;
}

int DmaSpace::map(const char* who, void* va, size_t len_bytes, bool iova_is_va, uint64_t* iova) {
  const std::lock_guard lock(mutex_);
  uint64_t at = reinterpret_cast<uintptr_t>(va);
  if (iova_is_va) {
    if (!addressable(at, len_bytes)) {
      base::log_error("%s: the IOMMU cannot address %p: open the card with allocated bus addresses",
                      who, va);
      return -ERANGE;
    }
    const auto same = pieces_.find(at);
    if (same != pieces_.end() && same->second.va == va && same->second.len_bytes == len_bytes &&
        same->second.users != 0) {
      ++same->second.users;
      *iova = at;
      return 0;
    }
  } else {
    const uint64_t offset = len_bytes >= kHugeBytes ? at % kHugeBytes : 0;
    if (!find_gap(next_, offset, len_bytes, &at) && !find_gap(0, offset, len_bytes, &at)) {
      base::log_error("%s: no bus addresses left for %zu bytes: register less memory", who,
                      len_bytes);
      return -ENOSPC;
    }
  }
  if (const int rc = map_at(at, va, len_bytes); rc < 0) {
    base::log_error("%s: cannot map %zu bytes at %p for DMA: %s%s", who, len_bytes, va,
                    std::strerror(-rc), map_remedy(rc));
    return rc;
  }
  pieces_.insert_or_assign(at, Piece{va, len_bytes, 1});
  next_ = iova_is_va ? next_ : at + len_bytes;
  *iova = at;
  return 0;
}

int DmaSpace::unmap(const char* who, void* va, size_t len_bytes, uint64_t iova) {
  const std::lock_guard lock(mutex_);
  const auto piece = pieces_.find(iova);
  if (piece == pieces_.end() || piece->second.users == 0 || --piece->second.users != 0) {
    return 0;
  }
  if (const int rc = unmap_at(iova, len_bytes); rc < 0) {
    // The bus address stays taken: the card may still reach the memory behind it.
    base::log_error(
        "%s: cannot unmap %zu bytes at %p: %s; close the card before the memory is freed", who,
        len_bytes, va, rc == -EIO ? "in part only" : std::strerror(-rc));
    return rc;
  }
  pieces_.erase(piece);
  return 0;
}

}  // namespace rio::pmd::vfio
