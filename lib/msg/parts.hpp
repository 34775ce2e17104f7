/// @file
/// A message in several parts: kFirst and kMore are full, kLast has the rest; nothing else of its
/// sender's context stands between them. The sender has credits for all parts before the first
/// goes.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/msg/header.hpp"

namespace rio::msg {

/// Before the bytes of kFirst, as it travels: little-endian.
struct FirstHeader {
  uint64_t bits;         ///< the layer's above; of a context's message 0
  uint64_t total_bytes;  ///< of the message: more than kFirstBytesMax
  uint64_t immediate;    ///< of kFirstImmediate; else 0
};
static_assert(sizeof(FirstHeader) == 24);

/// Bytes of the user in a first part, and in any other.
inline constexpr uint32_t kFirstBytesMax = kPartBytesMax - sizeof(FirstHeader);
inline constexpr uint32_t kMoreBytesMax = kPartBytesMax;

/// How many parts, and credits. More than any peer has where it is too long for that.
/// @param whole_bytes_max of a message that goes in one.
[[nodiscard]] constexpr uint32_t parts_of(uint64_t length_bytes, uint32_t whole_bytes_max) {
  if (length_bytes <= whole_bytes_max) {
    return 1;
  }
  const uint64_t more = (length_bytes - kFirstBytesMax + kMoreBytesMax - 1) / kMoreBytesMax;
  return static_cast<uint32_t>(std::min<uint64_t>(1 + more, UINT32_MAX));
}

/// The parts that have come of such a message. Lengths and kinds are the peer's word: only one part
/// can be next.
class Assembly {
 public:
  /// kFirst came. @param bytes behind its FirstHeader. @param total_bytes_max of any message.
  /// @return false: the peer has broken the rules, and nothing has changed.
  [[nodiscard]] bool begin(uint64_t total_bytes, uint64_t bytes, uint64_t total_bytes_max) {
    if (active() || bytes != kFirstBytesMax || total_bytes <= bytes ||
        total_bytes > total_bytes_max) {
      return false;
    }
    total_bytes_ = total_bytes;
    got_bytes_ = bytes;
    return true;
  }
  /// kMore or kLast came. @return as begin().
  [[nodiscard]] bool add(Kind kind, uint64_t bytes) {
    const uint64_t left = total_bytes_ - got_bytes_;
    const bool last = left <= kMoreBytesMax;
    if (!active() || bytes != (last ? left : kMoreBytesMax) ||
        kind != (last ? Kind::kLast : Kind::kMore)) {
      return false;
    }
    got_bytes_ += bytes;
    return true;
  }

  /// Something has come, and not been forgotten.
  [[nodiscard]] bool active() const { return total_bytes_ != 0; }
  [[nodiscard]] bool whole() const { return got_bytes_ == total_bytes_; }
  [[nodiscard]] uint64_t total_bytes() const { return total_bytes_; }
  [[nodiscard]] uint64_t got_bytes() const { return got_bytes_; }

 private:
  uint64_t total_bytes_ = 0;
  uint64_t got_bytes_ = 0;
};

}  // namespace rio::msg
