/// @file
/// What stands behind lib/msg's header, as it travels: little-endian.
///
/// A message that fits: kData, match bits, bytes; its length is implied. One of several parts
/// begins with kFirst and a FirstHeader, and the parts follow with nothing between them: kFirst and
/// kMore are full, kLast has the rest. All others are asked for by kRequest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lib/msg/control.hpp"
#include "lib/msg/header.hpp"

namespace rio::tag {

/// Before the bytes of kFirst.
struct FirstHeader {
  uint64_t bits;
  uint64_t total_bytes;  ///< of the message: more than kFirstBytesMax, kLengthMax at most
};
static_assert(sizeof(FirstHeader) == 16);

inline constexpr uint32_t kBitsBytes = sizeof(uint64_t);
/// Bytes of the user in a message of one part, in a first part, in any other.
inline constexpr uint32_t kDataBytesMax = msg::kPartBytesMax - kBitsBytes;
inline constexpr uint32_t kFirstBytesMax = msg::kPartBytesMax - sizeof(FirstHeader);
inline constexpr uint32_t kMoreBytesMax = msg::kPartBytesMax;
/// The longest message.
inline constexpr uint64_t kLengthMax = msg::kTransferMax;
/// How many parts, and credits, a message takes that is not asked for. More than any peer has where
/// it is too long for that.
[[nodiscard]] constexpr uint32_t parts_of(uint64_t length_bytes) {
  if (length_bytes <= kDataBytesMax) {
    return 1;
  }
  const uint64_t more = (length_bytes - kFirstBytesMax + kMoreBytesMax - 1) / kMoreBytesMax;
  return static_cast<uint32_t>(std::min<uint64_t>(1 + more, UINT32_MAX));
}

[[nodiscard]] inline uint64_t load_bits(const void* at) {
  uint64_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

}  // namespace rio::tag
