#include "fpga/cardsim/iommu_walk.hpp"

#include <algorithm>

namespace rio::cardsim {
namespace {

constexpr uint64_t kAddress = 0x000F'FFFF'FFFF'F000;  // bits 51:12 of each entry
constexpr uint64_t kPresent = 1;                      // root and context entries
constexpr uint64_t kRead = 1;                         // page table entries
constexpr uint64_t kWrite = 2;
constexpr uint64_t kLargePage = 1u << 7;
constexpr uint64_t kTableMode = 3u << 10;  // of RTADDR; 0: legacy
constexpr uint64_t kPassThrough = 2;       // of a context entry's translation type
constexpr uint32_t kPageShift = 12;
constexpr uint32_t kLevelShift = 9;
constexpr uint32_t kLargestPageLevel = 3;  // 1 GiB

[[nodiscard]] bool read_entry(GuestRam& ram, uint64_t address, TableWords* words, uint64_t* out) {
  const uint64_t* const word = ram.word(address);
  if (word == nullptr) {
    return false;
  }
  *out = __atomic_load_n(word, __ATOMIC_RELAXED);  // the guest may be writing the word
  words->add(word, *out);
  return true;
}

/// Walks down from the top table. @param levels 3 or 4 (5 if the guest has so many).
[[nodiscard]] bool walk_pages(GuestRam& ram, uint64_t table, uint32_t levels, uint64_t iova,
                              TableWords* words, IommuPage* out) {
  uint64_t rights = kRead | kWrite;
  for (uint32_t level = levels; level > 0; --level) {
    const uint32_t shift = kPageShift + kLevelShift * (level - 1);
    const uint64_t index = iova >> shift & ((1u << kLevelShift) - 1);
    uint64_t entry = 0;
    if (!read_entry(ram, table + 8 * index, words, &entry)) {
      return false;
    }
    rights &= entry;
    if (rights == 0) {
      return false;
    }
    table = entry & kAddress;
    if (level == 1 || (entry & kLargePage) != 0) {
      if (level > kLargestPageLevel) {
        return false;
      }
      const uint64_t len = 1ull << shift;
      *out = {iova & ~(len - 1), len, table & ~(len - 1), (rights & kRead) != 0,
              (rights & kWrite) != 0};
      return true;
    }
  }
  return false;
}

}  // namespace

void TableWords::add(const uint64_t* word, uint64_t value) {
  if (known_.insert(word).second) {
    words_.push_back({word, value});
  }
}

void TableWords::clear() {
  words_.clear();
  known_.clear();
}

bool TableWords::hold() const {
  return words_.size() <= kMost && std::all_of(words_.begin(), words_.end(), [](const Word& one) {
           return __atomic_load_n(one.word, __ATOMIC_RELAXED) == one.value;
         });
}

bool walk_iommu(GuestRam& ram, uint64_t root, uint16_t bdf, uint64_t iova, TableWords* words,
                IommuPage* out) {
  uint64_t entry = 0;
  if ((root & kTableMode) != 0 ||
      !read_entry(ram, (root & kAddress) + 16ull * (bdf >> 8), words, &entry) ||
      (entry & kPresent) == 0) {
    return false;
  }
  const uint64_t context = (entry & kAddress) + 16ull * (bdf & 0xFF);
  uint64_t high = 0;
  if (!read_entry(ram, context, words, &entry) || (entry & kPresent) == 0 ||
      !read_entry(ram, context + 8, words, &high)) {
    return false;
  }
  if ((entry >> 2 & 3) == kPassThrough) {
    constexpr uint64_t kBytes = 1u << kPageShift;
    *out = {iova & ~(kBytes - 1), kBytes, iova & ~(kBytes - 1), true, true};
    return true;
  }
  const uint32_t levels = static_cast<uint32_t>(high & 7) + 2;  // 1: 39 bits, 2: 48, 3: 57
  if (levels < 3 || levels > 5 || iova >> (kPageShift + kLevelShift * levels) != 0) {
    return false;
  }
  return walk_pages(ram, entry & kAddress, levels, iova, words, out);
}

}  // namespace rio::cardsim
