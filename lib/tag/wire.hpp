/// @file
/// What stands behind lib/msg's header, as it travels: little-endian.
///
/// A message that fits: kData, match bits, bytes; its length is implied. One of several parts
/// begins with kFirst and a FirstHeader, and the parts follow with nothing between them: kFirst and
/// kMore are full, kLast has the rest. All others are asked for by kRequest.
#pragma once

#include <cstdint>
#include <cstring>

#include "lib/msg/control.hpp"
#include "lib/msg/header.hpp"
#include "lib/msg/parts.hpp"

namespace rio::tag {

using msg::FirstHeader;
using msg::kFirstBytesMax;
using msg::kMoreBytesMax;

inline constexpr uint32_t kBitsBytes = sizeof(uint64_t);
/// Bytes of the user in a message of one part.
inline constexpr uint32_t kDataBytesMax = msg::kPartBytesMax - kBitsBytes;
/// The longest message.
inline constexpr uint64_t kLengthMax = msg::kTransferMax;
/// How many parts, and credits, a message takes that is not asked for.
[[nodiscard]] constexpr uint32_t parts_of(uint64_t length_bytes) {
  return msg::parts_of(length_bytes, kDataBytesMax);
}

[[nodiscard]] inline uint64_t load_bits(const void* at) {
  uint64_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

}  // namespace rio::tag
