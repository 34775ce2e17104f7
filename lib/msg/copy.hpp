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
  // Of registers where there are such long ones; of structures compilers make a detour by the
  // stack, and for those of 32 bytes they align it.
  using Sixteen [[gnu::vector_size(16)]] = uint64_t;
  const auto move = [&]<class Piece>(size_t at) {
    Piece piece;
    std::memcpy(&piece, from + at, sizeof(piece));
    std::memcpy(to + at, &piece, sizeof(piece));
  };
  // First and last of each size: they meet or overlap.
  if (bytes >= 32) {
    move.template operator()<Sixteen>(0);
    move.template operator()<Sixteen>(16);
    move.template operator()<Sixteen>(bytes - 32);
    move.template operator()<Sixteen>(bytes - 16);
  } else if (bytes >= 16) {
    move.template operator()<Sixteen>(0);
    move.template operator()<Sixteen>(bytes - 16);
  } else if (bytes >= 8) {
    move.template operator()<uint64_t>(0);
    move.template operator()<uint64_t>(bytes - 8);
  } else if (bytes >= 4) {
    move.template operator()<uint32_t>(0);
    move.template operator()<uint32_t>(bytes - 4);
  } else if (bytes != 0) {
    to[0] = from[0];
    to[bytes / 2] = from[bytes / 2];
    to[bytes - 1] = from[bytes - 1];
  }
}

}  // namespace rio::msg
