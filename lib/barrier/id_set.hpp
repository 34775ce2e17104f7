/// @file
/// Numbers of groups on the card, and which of them a card has free.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "lib/barrier/schedule.hpp"

namespace rio::barrier {

/// In the place of a number: the group has none, since it runs in software.
inline constexpr uint32_t kNoId = 0xFF;
/// In the place of a number: the members are on one machine, and meet in memory that they share.
inline constexpr uint32_t kMemoryId = 0xFE;
inline constexpr uint32_t kIds = kGroupMax + 1;

/// A set of numbers, 0 to kGroupMax. Plain data, as it is sent to peers.
struct IdSet {
  std::array<uint64_t, 2> words{};

  [[nodiscard]] constexpr bool has(uint32_t id) const {
    return (words[id / 64] >> id % 64 & 1) != 0;
  }
  constexpr void add(uint32_t id) { words[id / 64] |= uint64_t{1} << id % 64; }
  constexpr void remove(uint32_t id) { words[id / 64] &= ~(uint64_t{1} << id % 64); }
  [[nodiscard]] constexpr bool empty() const { return words[0] == 0 && words[1] == 0; }
  [[nodiscard]] constexpr uint32_t count() const {
    return static_cast<uint32_t>(std::popcount(words[0]) + std::popcount(words[1]));
  }
  constexpr IdSet& operator&=(const IdSet& other) {
    words[0] &= other.words[0];
    words[1] &= other.words[1];
    return *this;
  }
  /// The first number at or after `start`, and behind kGroupMax again from 0 on. @param start below
  /// kIds. @return kNoId: the set is empty.
  [[nodiscard]] constexpr uint32_t first_from(uint32_t start) const {
    for (uint32_t i = 0; i < kIds; ++i) {
      const uint32_t id = (start + i) % kIds;
      if (has(id)) {
        return id;
      }
    }
    return kNoId;
  }
  bool operator==(const IdSet& other) const = default;
};

/// The numbers of one card. A number that a group has used rests before it is free again, so that
/// no late notification of that group is taken for one of the next. Times are in ns of any clock
/// that does not go back. One thread.
class IdPool {
 public:
  [[nodiscard]] IdSet free(uint64_t now_ns) const {
    IdSet set;
    for (uint32_t id = 0; id < kIds; ++id) {
      if (free_from_ns_[id] <= now_ns) {
        set.add(id);
      }
    }
    return set;
  }
  /// @param id 0 to kGroupMax. @return false: it is not free.
  [[nodiscard]] bool take(uint32_t id, uint64_t now_ns) {
    if (free_from_ns_[id] > now_ns) {
      return false;
    }
    free_from_ns_[id] = kTaken;
    return true;
  }
  /// Give a number back. @param free_from_ns time until which it rests.
  void give_back(uint32_t id, uint64_t free_from_ns) { free_from_ns_[id] = free_from_ns; }

 private:
  static constexpr uint64_t kTaken = UINT64_MAX;

  std::array<uint64_t, kIds> free_from_ns_{};
};

}  // namespace rio::barrier
