/// @file
/// Bytes of messages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace rio::test {

/// Bytes that depend on the message's number and on their place in it.
[[nodiscard]] inline std::vector<uint8_t> pattern(uint64_t number, uint64_t length_bytes) {
  std::vector<uint8_t> bytes(length_bytes);
  uint64_t word = number * 0x9E3779B97F4A7C15u + 1;
  for (uint64_t i = 0; i < length_bytes; i += sizeof(word)) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    const uint64_t mixed = word ^ word >> 29;  // mixed, since the lower bits alone repeat soon
    std::memcpy(bytes.data() + i, &mixed, std::min<uint64_t>(sizeof(mixed), length_bytes - i));
  }
  return bytes;
}

}  // namespace rio::test
