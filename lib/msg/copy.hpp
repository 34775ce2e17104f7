/// @file
/// Copies the bytes of a message between a user's memory and a card's, inline.
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

/// Copy more than kTinyBytesMax bytes; the ranges must not overlap. Memory that an emulated card
/// reads next, or has just written, is accessed in pieces at multiples of 32 bytes, as the card
/// does: a load that spans two recent stores waits until both have left the store buffer.
/// @param by the one of the two addresses that is in the card's memory.
inline void copy_long(uint8_t* to, const uint8_t* from, size_t bytes, const uint8_t* by) {
  using Piece [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = uint64_t;
  constexpr size_t kPiece = sizeof(Piece);
  const auto move = [=](size_t at) {
    *reinterpret_cast<Piece*>(to + at) = *reinterpret_cast<const Piece*>(from + at);
  };
  move(0);
  // The first and the last piece overlap with their neighbours.
  size_t at = -reinterpret_cast<uintptr_t>(by) & (kPiece - 1);
  for (; bytes - at >= 2 * kPiece; at += 2 * kPiece) {
    move(at);
    move(at + kPiece);
  }
  if (bytes - at >= kPiece) {
    move(at);
  }
  move(bytes - kPiece);
}

/// Copy any number of bytes by copy_tiny() or copy_long(). @param by as in copy_long().
inline void copy_any(uint8_t* to, const uint8_t* from, size_t bytes, const uint8_t* by) {
  if (bytes <= kTinyBytesMax) {
    copy_tiny(to, from, bytes);
  } else {
    copy_long(to, from, bytes, by);
  }
}

}  // namespace rio::msg
