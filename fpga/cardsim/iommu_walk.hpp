/// @file
/// Walks a guest's IOMMU tables like the hardware (Intel VT-d specification, chapter 9, legacy
/// mode). The tables are foreign: every address in them is checked.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "fpga/cardsim/guest_ram.hpp"

namespace rio::cardsim {

/// Table words that translations used, with their values: the translations are valid while the
/// words keep them. One thread.
class TableWords {
 public:
  /// With more words than this it is cheaper to start anew.
  static constexpr size_t kMost = 4096;

  void add(const uint64_t* word, uint64_t value);
  void clear();
  /// Whether all words still have their values, and there is room for more.
  [[nodiscard]] bool hold() const;

 private:
  struct Word {
    const uint64_t* word;
    uint64_t value;
  };
  std::vector<Word> words_;
  std::unordered_set<const uint64_t*> known_;
};

/// A page and its address.
struct IommuPage {
  uint64_t iova = 0;       ///< where it begins
  uint64_t len_bytes = 0;  ///< 4096, 2 MiB or 1 GiB
  uint64_t address = 0;    ///< guest-physical address of its first byte
  bool readable = false;
  bool writable = false;
};

/// Find the page of `iova` for device `bdf`. @param root the register RTADDR. @param words gets the
/// words read. @return false: not mapped, or the tables make no sense.
[[nodiscard]] bool walk_iommu(GuestRam& ram, uint64_t root, uint16_t bdf, uint64_t iova,
                              TableWords* words, IommuPage* out);

}  // namespace rio::cardsim
