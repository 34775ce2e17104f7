/// @file
/// What stands behind lib/msg's header, as it travels: little-endian.
///
/// A message that fits, and that nobody waits for: kData, match bits, bytes; its length is implied.
/// All others begin with kFirst and a FirstHeader. If its total is not there yet, parts follow,
/// with nothing between them but acks: kFirst and kMore are full, kLast has the rest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "lib/msg/control.hpp"
#include "lib/msg/header.hpp"

namespace rio::tag {

/// Before the bytes of kFirst.
struct FirstHeader {
  uint64_t bits;         ///< of an ack: 0
  uint64_t total_flags;  ///< length of the message, and flags
  uint64_t sync_id;      ///< of the message that wants an ack, or that is acknowledged; else 0

  static constexpr uint64_t kSync = uint64_t{1} << 63;  ///< the sender waits for an ack
  static constexpr uint64_t kAck = uint64_t{1} << 62;   ///< this is one
  static constexpr uint64_t kTotal = (uint64_t{1} << 48) - 1;

  [[nodiscard]] uint64_t total() const { return total_flags & kTotal; }
  [[nodiscard]] bool wants_ack() const { return (total_flags & kSync) != 0; }
  [[nodiscard]] bool is_ack() const { return (total_flags & kAck) != 0; }
  /// Whether a message, or an ack, may say this.
  [[nodiscard]] bool good() const {
    if ((total_flags & ~(kTotal | kSync | kAck)) != 0 || sync_id > UINT32_MAX) {
      return false;
    }
    return is_ack() ? total_flags == kAck && bits == 0 : wants_ack() || sync_id == 0;
  }
};
static_assert(sizeof(FirstHeader) == 24);

inline constexpr uint32_t kBitsBytes = sizeof(uint64_t);
/// Bytes of the user in a message of one part, in a first part, in any other.
inline constexpr uint32_t kDataBytesMax = msg::kPartBytesMax - kBitsBytes;
inline constexpr uint32_t kFirstBytesMax = msg::kPartBytesMax - sizeof(FirstHeader);
inline constexpr uint32_t kMoreBytesMax = msg::kPartBytesMax;
/// The longest message.
inline constexpr uint64_t kLengthMax = msg::kTransferMax;

[[nodiscard]] inline uint64_t load_bits(const void* at) {
  uint64_t bits;
  std::memcpy(&bits, at, sizeof(bits));
  return bits;
}

}  // namespace rio::tag
