/// @file
/// Copies of a few bytes, without a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rio::msg {

inline constexpr size_t kTinyBytesMax = 64;

/// Reads and writes not a byte beyond the ends. @param bytes 0 to kTinyBytesMax.
[[gnu::always_inline]] inline void copy_tiny(uint8_t* to, const uint8_t* from, size_t bytes) {
  struct Sixteen {
    uint64_t words[2];
  };
  const auto move = [&]<class Piece>(Piece piece, size_t at) {
    std::memcpy(&piece, from + at, sizeof(piece));
    std::memcpy(to + at, &piece, sizeof(piece));
  };
  // First and last of each size: they meet or overlap.
  if (bytes >= 16) {
    if (bytes > 32) {
      move(Sixteen{}, 16);
      move(Sixteen{}, bytes - 32);
    }
    move(Sixteen{}, 0);
    move(Sixteen{}, bytes - 16);
  } else if (bytes >= 8) {
    move(uint64_t{}, 0);
    move(uint64_t{}, bytes - 8);
  } else if (bytes >= 4) {
    move(uint32_t{}, 0);
    move(uint32_t{}, bytes - 4);
  } else if (bytes != 0) {
    to[0] = from[0];
    to[bytes / 2] = from[bytes / 2];
    to[bytes - 1] = from[bytes - 1];
  }
}

}  // namespace rio::msg
