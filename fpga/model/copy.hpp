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

/// Copy exactly `len` bytes, 1 to 4096; the ranges must not overlap. From about 512 bytes on memcpy
/// is faster.
inline void copy_bytes(uint8_t* to, const uint8_t* from, uint32_t len) {
  if (len > 512) [[unlikely]] {
    std::memcpy(to, from, len);
    return;
  }
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

/// Copy and pad with zeros to a multiple of 8.
inline void copy_padded(uint8_t* to, const uint8_t* from, uint32_t len) {
  if ((len & 7) != 0) [[unlikely]] {
    std::memset(to + (len & ~7u), 0, 8);
  }
  copy_bytes(to, from, len);
}

/// Write a last segment as a card with the landing quirk does: `len` bytes, a multiple of 8, and
/// zeros up to 256. It first zeroes all 256 bytes: eight stores cost less than finding out which
/// are needed.
[[gnu::always_inline]] inline void land_full_256(uint8_t* to, const uint8_t* from, uint32_t len) {
  for (uint32_t at = 0; at < 256; at += 32) {
    zero32(to + at);
  }
  // Jump to the case that copies all whole pieces of 32 bytes.
  switch (len / 32) {
    case 8:
      copy32(to + 224, from + 224);
      [[fallthrough]];
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
