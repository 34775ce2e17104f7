/// @file
/// Copies of a few bytes, without a call.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace rio::msg {

/// Reads and writes not a byte beyond the ends; pieces may overlap within the destination.
[[gnu::always_inline]] inline void copy_small(uint8_t* to, const uint8_t* from, size_t bytes) {
  struct Sixteen {
    uint64_t words[2];
  };
  const auto move = [&]<class Piece>(Piece /*of that size*/, size_t at) {
    Piece piece;
    std::memcpy(&piece, from + at, sizeof(piece));
    std::memcpy(to + at, &piece, sizeof(piece));
  };
  if (bytes >= 16) {
    if (bytes > 64) {
      std::memcpy(to, from, bytes);
      return;
    }
    // First and last of each size: they meet or overlap.
    Sixteen head, tail;
    std::memcpy(&head, from, 16);
    std::memcpy(&tail, from + bytes - 16, 16);
    if (bytes > 32) {
      move(Sixteen{}, 16);
      move(Sixteen{}, bytes - 32);
    }
    std::memcpy(to, &head, 16);
    std::memcpy(to + bytes - 16, &tail, 16);
    return;
  }
  if (bytes >= 8) {
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
