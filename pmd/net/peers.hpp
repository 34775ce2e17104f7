/// @file
/// Who has joined, as Linux's rionet does it: by doorbells.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "pmd/net/addresses.hpp"

namespace rio::pmd {

inline constexpr uint16_t kJoinDoorbell = 0x1000;
inline constexpr uint16_t kLeaveDoorbell = 0x1001;

/// A set of destIDs. Any thread.
class DestIdSet {
 public:
  [[nodiscard]] bool has(uint32_t dest_id) const {
    return (words_[dest_id / kBits].load(std::memory_order_relaxed) >> dest_id % kBits & 1) != 0;
  }
  /// @return whether it was there.
  bool add(uint32_t dest_id) {
    return (words_[dest_id / kBits].fetch_or(bit(dest_id)) & bit(dest_id)) != 0;
  }
  /// The same.
  bool remove(uint32_t dest_id) {
    return (words_[dest_id / kBits].fetch_and(~bit(dest_id)) & bit(dest_id)) != 0;
  }
  void clear() {
    for (auto& word : words_) {
      word.store(0, std::memory_order_relaxed);
    }
  }
  /// In ascending order, as they are now. @param each returns false to end it.
  template <class Each>
  void for_each(Each&& each) const {
    for (uint32_t i = 0; i < words_.size(); ++i) {
      for (uint64_t left = words_[i].load(std::memory_order_relaxed); left != 0; left &= left - 1) {
        if (!each(i * kBits + static_cast<uint32_t>(std::countr_zero(left)))) {
          return;
        }
      }
    }
  }

 private:
  static constexpr uint32_t kBits = 64;
  static uint64_t bit(uint32_t dest_id) { return uint64_t{1} << dest_id % kBits; }
  std::array<std::atomic<uint64_t>, kNetDestIds / kBits> words_{};
};

/// Who is there, as far as a port knows. Its receiving thread and its sending one change it.
struct Peers {
  DestIdSet joined;  ///< get broadcasts
  /// Get what is for them: they have joined, or were invited when the port was started. Who does
  /// not answer is taken away until he joins.
  DestIdSet reachable;
};

}  // namespace rio::pmd
