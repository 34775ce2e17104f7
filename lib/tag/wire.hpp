/// @file
/// Headers that follow lib/msg's on the wire, little-endian.
///
/// A message that fits: kData, match bits, bytes; its length is implied. One of several parts
/// begins with kFirst and a FirstHeader, and the parts follow with nothing between them: kFirst and
/// kMore are full, kLast has the rest. All others are asked for by kRequest. With immediate data:
/// kDataImmediate, match bits, immediate data, bytes; kFirstImmediate; a request that says so.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lib/msg/control.hpp"
#include "lib/msg/header.hpp"

namespace rio::tag {

inline constexpr uint32_t kBitsBytes = sizeof(uint64_t);
/// Bytes of the user in a message of one part.
inline constexpr uint32_t kDataBytesMax = msg::kPartBytesMax - kBitsBytes;
/// The longest message.
inline constexpr uint64_t kLengthMax = msg::kTransferMax;
/// Headers of a message of one part.
[[nodiscard]] constexpr uint32_t head_bytes(bool has_immediate) {
  return has_immediate ? 2 * kBitsBytes : kBitsBytes;
}

/// Header before the payload of kFirst, as sent on the wire: little-endian.
struct FirstHeader {
  uint64_t bits;         ///< for the layer above; 0 in messages of LongMessages
  uint64_t total_bytes;  ///< length of the message, more than kFirstBytesMax
  uint64_t immediate;    ///< the immediate data of kFirstImmediate; else 0
};
static_assert(sizeof(FirstHeader) == 24);

/// Payload bytes of a first part (kFirstBytesMax) and of any other part (kMoreBytesMax).
inline constexpr uint32_t kFirstBytesMax = msg::kPartBytesMax - sizeof(FirstHeader);
inline constexpr uint32_t kMoreBytesMax = msg::kPartBytesMax;

/// Number of parts, and so of credits, for a message. If the length is too large for that, the
/// result is more than any peer has. @param whole_bytes_max length up to which a message goes in
/// one part.
[[nodiscard]] constexpr uint32_t parts_of(uint64_t length_bytes, uint32_t whole_bytes_max) {
  if (length_bytes <= whole_bytes_max) {
    return 1;
  }
  const uint64_t more = (length_bytes - kFirstBytesMax + kMoreBytesMax - 1) / kMoreBytesMax;
  return static_cast<uint32_t>(std::min<uint64_t>(1 + more, UINT32_MAX));
}

/// The bit that kinds with immediate data have, and the others have not.
inline constexpr auto kImmediateBit = static_cast<uint8_t>(msg::Kind::kDataImmediate);
static_assert(static_cast<uint8_t>(msg::Kind::kData) == 0 &&
              static_cast<uint8_t>(msg::Kind::kFirstImmediate) ==
                  (static_cast<uint8_t>(msg::Kind::kFirst) | kImmediateBit));
/// @param kind kData or kFirst.
[[nodiscard]] constexpr msg::Kind kind_of(msg::Kind kind, bool has_immediate) {
  return static_cast<msg::Kind>(static_cast<uint8_t>(kind) | (has_immediate ? kImmediateBit : 0));
}
[[nodiscard]] constexpr bool has_immediate(msg::Kind kind) {
  return (static_cast<uint8_t>(kind) & kImmediateBit) != 0;
}
/// Whether a message is whole.
[[nodiscard]] constexpr bool is_whole(msg::Kind kind) {
  return (static_cast<uint8_t>(kind) & ~kImmediateBit) == 0;
}

[[nodiscard]] inline uint64_t load_bits(const void* at) {
  uint64_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

}  // namespace rio::tag
