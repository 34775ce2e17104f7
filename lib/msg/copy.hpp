/// @file
/// Copies a few bytes inline, without a call of memcpy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rio::msg {

inline constexpr size_t kTinyBytesMax = 64;

/// Copy `bytes` bytes; reads and writes nothing beyond them. @param bytes 0 to kTinyBytesMax.
[[gnu::always_inline]] inline void copy_tiny(uint8_t* to, const uint8_t* from, size_t bytes) {
  // A vector type, so that the compiler uses vector registers. With a 16-byte struct it would copy
  // through the stack, and with one of 32 bytes it would also align the stack.
  using Sixteen [[gnu::vector_size(16)]] = uint64_t;
  const auto move = [&]<class Piece>(size_t at) {
    Piece piece;
    std::memcpy(&piece, from + at, sizeof(piece));
    std::memcpy(to + at, &piece, sizeof(piece));
  };
  // For each size, move the first and the last pieces: they meet or overlap.
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
