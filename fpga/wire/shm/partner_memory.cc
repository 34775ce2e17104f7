#include "fpga/wire/shm/partner_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace rio::wire::shm {
namespace {

constexpr uint64_t kPageBytes = 4096;

/// Whether windows are ranges of pages, none too long, and no two overlap.
[[nodiscard]] bool are_apart(std::span<const GreetedWindow> windows) {
  for (size_t i = 0; i < windows.size(); ++i) {
    const GreetedWindow& one = windows[i];
    if (one.len_bytes == 0 || one.len_bytes > kWindowBytesMax ||
        ((one.from | one.len_bytes) & (kPageBytes - 1)) != 0 ||
        one.from + one.len_bytes < one.from) {
      return false;
    }
    for (const GreetedWindow& other : windows.first(i)) {
      if (one.from - other.from < other.len_bytes || other.from - one.from < one.len_bytes) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

void Offer::choose(const base::ReadableAreas* areas) {
  areas_.clear();
  if (areas != nullptr) {
    areas_ = areas->largest(model::Windows::kMost);
    std::erase_if(areas_, [](const auto& area) { return area.len_bytes > kWindowBytesMax; });
  }
}

uint32_t Offer::tell(std::span<GreetedWindow> out, std::vector<int>* fds) const {
  for (size_t i = 0; i < areas_.size(); ++i) {
    out[i] = {reinterpret_cast<uintptr_t>(areas_[i].va), areas_[i].len_bytes};
    fds->push_back(areas_[i].fd.get());
  }
  return static_cast<uint32_t>(areas_.size());
}

void Offer::close() {
  for (auto& area : areas_) {
    area.fd.reset();
  }
}

void Offer::list(const base::ReadableAreas& areas, model::Windows* out) const {
  out->clear();
  for (const auto& area : areas_) {
    if (areas.has(area.number)) {
      out->add({reinterpret_cast<uintptr_t>(area.va), area.len_bytes, area.va});
    }
  }
}

std::vector<base::Fd> split_off(std::vector<base::Fd>& fds, size_t first) {
  const auto begin = fds.begin() + static_cast<ptrdiff_t>(first);
  std::vector<base::Fd> off(std::make_move_iterator(begin), std::make_move_iterator(fds.end()));
  fds.resize(first);
  return off;
}

base::Trouble PartnerMemory::map(std::span<const GreetedWindow> windows,
                                 std::span<const base::Fd> fds, bool* sound) {
  *sound = windows.size() == fds.size() && are_apart(windows);
  for (size_t i = 0; *sound && i < windows.size(); ++i) {
    if (const base::Trouble trouble = base::check_lasting(fds[i], windows[i].len_bytes, sound)) {
      *sound = true;
      return trouble;
    }
  }
  for (size_t i = 0; *sound && i < windows.size(); ++i) {
    const GreetedWindow& window = windows[i];
    // A forked child reads nothing of its parent's partners.
    void* const at = base::map_shared(nullptr, window.len_bytes, PROT_READ, MAP_SHARED,
                                      fds[i].get(), base::ChildFinds::kZeros);
    if (at == MAP_FAILED) {
      const base::Trouble trouble = base::failed("mmap of a partner's memory");
      windows_.clear();
      mapped_.clear();
      return trouble;
    }
    mapped_.emplace_back(static_cast<uint8_t*>(at));
    windows_.add({window.from, window.len_bytes, static_cast<uint8_t*>(at)});
  }
  return {};
}

}  // namespace rio::wire::shm
