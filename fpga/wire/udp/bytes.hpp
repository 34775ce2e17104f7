/// @file
/// Little-endian fields of datagrams.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rio::wire::udp {

inline void put_field(uint8_t* at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    at[i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

[[nodiscard]] inline uint64_t get_field(const uint8_t* at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value |= uint64_t{at[i]} << (8 * i);
  }
  return value;
}

}  // namespace rio::wire::udp
