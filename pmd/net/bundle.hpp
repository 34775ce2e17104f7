/// @file
/// Bundles: messages with several frames, or with parts of one. All numbers are little-endian.
///
/// A bundle is a header of 8 bytes and items; an item is a header of 8 bytes and bytes of a frame,
/// padded with zeros to a multiple of 8.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::pmd {

static_assert(std::endian::native == std::endian::little);

inline constexpr uint32_t kBundleHeaderBytes = 8;
inline constexpr uint32_t kItemHeaderBytes = 8;
/// Both, where there is one item.
inline constexpr uint32_t kBundleBytesBefore = kBundleHeaderBytes + kItemHeaderBytes;
inline constexpr uint32_t kBundleBytesMax = regs::kMessageBytesMax;
/// Longest item of a bundle.
inline constexpr uint32_t kItemBytesMax = kBundleBytesMax - kBundleBytesBefore;

[[nodiscard]] constexpr uint32_t padded_to_8(uint32_t bytes) {
  return (bytes + 7) & ~7u;
}
/// Bytes of a bundle that an item of that length takes.
[[nodiscard]] constexpr uint32_t item_bytes(uint32_t length_bytes) {
  return kItemHeaderBytes + padded_to_8(length_bytes);
}

/// Bits 0–15 the mark, 16–23 the count of items, 24–31 zero, 32–47 the epoch, 48–63 the number.
struct BundleHeader {
  static constexpr uint16_t kMark = 0xB1E5;

  uint8_t items;    ///< at least 1
  uint16_t epoch;   ///< of the sending queue: another one each time that it is started
  uint16_t number;  ///< of the message: counts those of a queue to a destID

  [[nodiscard]] uint64_t encode() const {
    return kMark | uint64_t{items} << 16 | uint64_t{epoch} << 32 | uint64_t{number} << 48;
  }
  /// Foreign bytes. @return false: no header.
  [[nodiscard]] static bool decode(uint64_t word, BundleHeader* out) {
    out->items = static_cast<uint8_t>(word >> 16);
    out->epoch = static_cast<uint16_t>(word >> 32);
    out->number = static_cast<uint16_t>(word >> 48);
    return (word & 0xFF00FFFFu) == kMark && out->items != 0;
  }
};

/// Bits 0–15 the length, 16–31 zero, 32–47 the length of the whole frame or 0, 48–63 the offset.
struct ItemHeader {
  uint16_t length_bytes;  ///< 1 to kItemBytesMax
  uint16_t total_bytes;   ///< 0: the item is a frame; else the item is a part of one
  uint16_t offset_bytes;  ///< of the part

  [[nodiscard]] uint64_t encode() const {
    return length_bytes | uint64_t{total_bytes} << 32 | uint64_t{offset_bytes} << 48;
  }
  /// Foreign bytes. @param room_bytes behind the header. @return false: impossible.
  [[nodiscard]] static bool decode(uint64_t word, uint64_t room_bytes, ItemHeader* out) {
    out->length_bytes = static_cast<uint16_t>(word);
    out->total_bytes = static_cast<uint16_t>(word >> 32);
    out->offset_bytes = static_cast<uint16_t>(word >> 48);
    return (word >> 16 & 0xFFFF) == 0 && out->length_bytes != 0 &&
           padded_to_8(out->length_bytes) <= room_bytes;
  }
};

[[nodiscard]] inline uint64_t load_word(const uint8_t* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}
inline void store_word(uint8_t* to, uint64_t word) {
  std::memcpy(to, &word, sizeof(word));
}

[[gnu::always_inline]] inline void copy_64(uint8_t* to, const uint8_t* from) {
  // Vectors, or the compiler moves 16 bytes at once though the machine has instructions for 32.
  typedef uint8_t Chunk __attribute__((vector_size(32)));
  Chunk chunks[2];
  std::memcpy(&chunks[0], from, sizeof(Chunk));
  std::memcpy(&chunks[1], from + sizeof(Chunk), sizeof(Chunk));
  std::memcpy(to, &chunks[0], sizeof(Chunk));
  std::memcpy(to + sizeof(Chunk), &chunks[1], sizeof(Chunk));
}

}  // namespace rio::pmd
