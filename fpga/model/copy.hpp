/// @file
/// Short copies without a call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rio::model {

/// 32 bytes at any address: one vector register if the machine has such, else two. The attributes
/// must stand before the equals sign: behind it clang ignores aligned(1) and emits aligned moves.
using Bytes32 [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = uint64_t;
static_assert(alignof(Bytes32) == 1);
using Bytes16 [[gnu::vector_size(16), gnu::aligned(1), gnu::may_alias]] = uint64_t;

inline void copy32(uint8_t* to, const uint8_t* from) {
  *reinterpret_cast<Bytes32*>(to) = *reinterpret_cast<const Bytes32*>(from);
}
inline void zero32(uint8_t* to) {
  *reinterpret_cast<Bytes32*>(to) = Bytes32{};
}

/// Copy the first `len` of 16 bytes, at least 1, and write zeros for the others. It loads 16 bytes
/// at once, so that a store of 16 bytes by the host can be forwarded.
[[gnu::always_inline]] inline void copy16_kept(uint8_t* to, const uint8_t* from, uint32_t len) {
  // A window into this gives `len` ones, then zeros.
  static constexpr struct {
    alignas(32) uint8_t bytes[32] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
                                     0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
  } kOnes{};
  const uint8_t* const kept = kOnes.bytes + 16 - (len < 16 ? len : 16);
  *reinterpret_cast<Bytes16*>(to) =
      *reinterpret_cast<const Bytes16*>(from) & *reinterpret_cast<const Bytes16*>(kept);
}

inline void copy16(uint8_t* to, const uint8_t* from) {
  *reinterpret_cast<Bytes16*>(to) = *reinterpret_cast<const Bytes16*>(from);
}

/// Copy `len` bytes, at least 1, and write zeros up to a multiple of 16; `from` must be readable up
/// to there. The first 32 bytes are written last. It loads pieces of 16 bytes, so that stores of 16
/// bytes by the host can be forwarded.
[[gnu::always_inline]] inline void copy_first_last(uint8_t* to, const uint8_t* from, size_t len) {
  const size_t whole = len & ~size_t{15};
  if (len != whole) [[unlikely]] {
    copy16_kept(to + whole, from + whole, static_cast<uint32_t>(len - whole));
  }
#pragma GCC unroll 1
  for (size_t at = 32; at < whole; at += 16) {
    copy16(to + at, from + at);
  }
  if (whole >= 32) [[likely]] {
    copy16(to + 16, from + 16);
  }
  if (whole >= 16) [[likely]] {
    copy16(to, from);
  }
}

/// Copy exactly `len` bytes, fewer than 32.
inline void copy_rest(uint8_t* to, const uint8_t* from, uint32_t len) {
  const auto piece = [&]<uint32_t kBytes>() {
    if ((len & kBytes) != 0) {
      std::memcpy(to, from, kBytes);
      to += kBytes;
      from += kBytes;
    }
  };
  piece.operator()<16>();
  piece.operator()<8>();
  piece.operator()<4>();
  piece.operator()<2>();
  piece.operator()<1>();
}

/// Copy pieces of 32 bytes that begin at `at`, up to `end`; the last one may end behind it.
[[gnu::always_inline]] inline void copy_32s(uint8_t* to, const uint8_t* from, uint32_t at,
                                            uint32_t end) {
  for (; at + 32 < end; at += 64) {
    copy32(to + at, from + at);
    copy32(to + at + 32, from + at + 32);
  }
  if (at < end) {
    copy32(to + at, from + at);
  }
}

/// Copy exactly `len` bytes in pieces of 32, so that a load can be forwarded from the store of the
/// same piece that the other side of the host's memory has just made; the ranges must not overlap.
[[gnu::always_inline]] inline void copy_pieces(uint8_t* to, const uint8_t* from, uint32_t len) {
  for (; len >= 64; len -= 64, to += 64, from += 64) {
    copy32(to, from);
    copy32(to + 32, from + 32);
  }
  if (len == 0) [[likely]] {
    return;
  }
  if (len >= 32) {
    copy32(to, from);
    to += 32;
    from += 32;
    len -= 32;
  }
  copy_rest(to, from, len);
}

/// Copy exactly `len` bytes, 1 to 4096; the ranges must not overlap. From about 512 bytes on memcpy
/// is faster, unless the bytes were written just before.
inline void copy_bytes(uint8_t* to, const uint8_t* from, uint32_t len) {
  if (len > 512) [[unlikely]] {
    std::memcpy(to, from, len);
    return;
  }
  copy_pieces(to, from, len);
}

/// Copy and pad with zeros to a multiple of 8.
inline void copy_padded(uint8_t* to, const uint8_t* from, uint32_t len) {
  if ((len & 7) != 0) [[unlikely]] {
    std::memset(to + (len & ~7u), 0, 8);
  }
  copy_bytes(to, from, len);
}

/// Write a last segment of 72 to 248 bytes as land_full_256() does. It first zeroes all 256
/// bytes: eight stores cost less than finding out which are needed.
[[gnu::always_inline]] inline void land_long_256(uint8_t* to, const uint8_t* from, uint32_t len) {
#pragma GCC unroll 8
  for (uint32_t at = 0; at < 256; at += 32) {
    zero32(to + at);
  }
  // Jump to the case that copies all whole pieces of 32 bytes.
  switch (len / 32) {
    case 7:
      copy32(to + 192, from + 192);
      [[fallthrough]];
    case 6:
      copy32(to + 160, from + 160);
      [[fallthrough]];
    case 5:
      copy32(to + 128, from + 128);
      [[fallthrough]];
    case 4:
      copy32(to + 96, from + 96);
      [[fallthrough]];
    case 3:
      copy32(to + 64, from + 64);
      [[fallthrough]];
    case 2:
      copy32(to + 32, from + 32);
      [[fallthrough]];
    case 1:
      copy32(to, from);
      [[fallthrough]];
    default:
      break;
  }
  if ((len & 16) != 0) {
    copy16(to + (len & ~31u), from + (len & ~31u));
  }
  if ((len & 8) != 0) {
    std::memcpy(to + (len & ~15u), from + (len & ~15u), 8);
  }
}

/// Write zeros to the bytes 64 to 255 of `to`, unless they are there.
[[gnu::always_inline]] inline void clear_behind_64(uint8_t* to) {
  Bytes32 any{};
#pragma GCC unroll 6
  for (uint32_t at = 64; at < 256; at += 32) {
    any |= *reinterpret_cast<const Bytes32*>(to + at);
  }
#if defined(__AVX__)
  using Words [[gnu::vector_size(32)]] = long long;
  const bool is_clear = __builtin_ia32_ptestz256(Words(any), Words(any)) != 0;
#else
  const bool is_clear = ((any[0] | any[1]) | (any[2] | any[3])) == 0;
#endif
  if (!is_clear) [[unlikely]] {
#pragma GCC unroll 6
    for (uint32_t at = 64; at < 256; at += 32) {
      zero32(to + at);
    }
  }
}

/// Write a last segment as a card with the landing quirk does: `len` bytes, 8 to 256 and a multiple
/// of 8, and zeros up to 256. A short message mostly finds zeros that an earlier message has left,
/// and does not write them again: stores leave a core in order, so a reply would wait for each of
/// their cache lines (docs/decisions/0060-zeros-that-are-there.md).
[[gnu::always_inline]] inline void land_full_256(uint8_t* to, const uint8_t* from, uint32_t len) {
  if (len >= 64) {
    if (len == 256) {
#pragma GCC unroll 8
      for (uint32_t at = 0; at < 256; at += 32) {
        copy32(to + at, from + at);
      }
      return;
    }
    if (len != 64) {
      land_long_256(to, from, len);
      return;
    }
    clear_behind_64(to);
    copy32(to, from);
    copy32(to + 32, from + 32);
    return;
  }
  clear_behind_64(to);
  zero32(to);
  zero32(to + 32);
  if ((len & 32) != 0) {
    copy32(to, from);
  }
  if ((len & 16) != 0) {
    copy16(to + (len & 32u), from + (len & 32u));
  }
  if ((len & 8) != 0) {
    std::memcpy(to + (len & 48u), from + (len & 48u), 8);
  }
}

inline void store32(uint8_t* to, uint32_t value) {
  std::memcpy(to, &value, sizeof(value));
}
inline void store64(uint8_t* to, uint64_t value) {
  std::memcpy(to, &value, sizeof(value));
}
[[nodiscard]] inline uint32_t load32(const uint8_t* from) {
  uint32_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
[[nodiscard]] inline uint64_t load64(const uint8_t* from) {
  uint64_t value = 0;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

}  // namespace rio::model
