/// @file
/// Messages in several parts: kFirst and kMore are full, kLast has the rest. The sender's context
/// sends nothing else between them to the same context, and takes credits for all parts before the
/// first.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lib/msg/header.hpp"

namespace rio::tag {

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

/// Checks the parts of a message as they arrive. Lengths and kinds come from the peer and are
/// untrusted: at each point only one kind and length is valid.
class Assembly {
 public:
  /// kFirst arrived. @param bytes payload behind FirstHeader. @param total_bytes_max longest
  /// message accepted. @return false: the peer broke the protocol, and nothing has changed.
  [[nodiscard]] bool begin(uint64_t total_bytes, uint64_t bytes, uint64_t total_bytes_max) {
    if (active() || bytes != kFirstBytesMax || total_bytes <= bytes ||
        total_bytes > total_bytes_max) {
      return false;
    }
    total_bytes_ = total_bytes;
    got_bytes_ = bytes;
    return true;
  }
  /// kMore or kLast arrived. @return as begin().
  [[nodiscard]] bool add(msg::Kind kind, uint64_t bytes) {
    const uint64_t left = total_bytes_ - got_bytes_;
    const bool last = left <= kMoreBytesMax;
    if (!active() || bytes != (last ? left : kMoreBytesMax) ||
        kind != (last ? msg::Kind::kLast : msg::Kind::kMore)) {
      return false;
    }
    got_bytes_ += bytes;
    return true;
  }

  /// Whether a message has begun and is not complete or forgotten.
  [[nodiscard]] bool active() const { return total_bytes_ != 0; }
  [[nodiscard]] bool whole() const { return got_bytes_ == total_bytes_; }
  [[nodiscard]] uint64_t total_bytes() const { return total_bytes_; }
  [[nodiscard]] uint64_t got_bytes() const { return got_bytes_; }

 private:
  uint64_t total_bytes_ = 0;
  uint64_t got_bytes_ = 0;
};

}  // namespace rio::tag
