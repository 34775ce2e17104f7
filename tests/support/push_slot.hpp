/// @file
/// The words of a slot of push mode, as the contract has them.
#pragma once

#include <array>
#include <cstdint>

namespace rio::test {

/// @param entry its first 60 bytes. @param number of the slot since the start, free-running.
[[nodiscard]] inline std::array<uint32_t, 16> slot_words(const std::array<uint32_t, 15>& entry,
                                                         uint32_t index, uint32_t number,
                                                         uint32_t slots_log2) {
  const uint32_t phase = (number >> slots_log2) % 2 == 0 ? 0x80000000u : 0;
  std::array<uint32_t, 16> words{phase | (index & 0xFFFF) << 15};
  for (uint32_t i = 0; i < 15; ++i) {
    words[0] |= entry[i] >> 31 << i;
    words[i + 1] = (entry[i] & 0x7FFFFFFFu) | phase;
  }
  return words;
}

}  // namespace rio::test
