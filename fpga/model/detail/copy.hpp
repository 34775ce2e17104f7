/// @file
/// Short copies without a call.
#pragma once

#include <cstdint>
#include <cstring>

namespace rio::model {

struct Bytes16 {
  uint64_t word[2];
};

inline void copy16(uint8_t* to, const uint8_t* from) {
  Bytes16 value;
  std::memcpy(&value, from, sizeof(value));
  std::memcpy(to, &value, sizeof(value));
}

/// Copy exactly `len` bytes, 1 to 4096; the ranges do not overlap. Calls beat it from about 512
/// bytes on.
inline void copy_bytes(uint8_t* to, const uint8_t* from, uint32_t len) {
  if (len > 512) {
    std::memcpy(to, from, len);
    return;
  }
  while (len >= 64) {
    copy16(to, from);
    copy16(to + 16, from + 16);
    copy16(to + 32, from + 32);
    copy16(to + 48, from + 48);
    to += 64;
    from += 64;
    len -= 64;
  }
  while (len >= 16) {
    copy16(to, from);
    to += 16;
    from += 16;
    len -= 16;
  }
  if (len >= 8) {
    std::memcpy(to, from, 8);
    to += 8;
    from += 8;
    len -= 8;
  }
  while (len > 0) {
    *to++ = *from++;
    --len;
  }
}

/// Copy and pad with zeros to a multiple of 8.
inline void copy_padded(uint8_t* to, const uint8_t* from, uint32_t len) {
  if ((len & 7) != 0) {
    std::memset(to + (len & ~7u), 0, 8);
  }
  copy_bytes(to, from, len);
}

}  // namespace rio::model
