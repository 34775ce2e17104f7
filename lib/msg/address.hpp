/// @file
/// Address of a context: its port's destID in the high bits, the context's number in the low bits.
/// Pure functions; any thread may call them.
#pragma once

#include <cstdint>

namespace rio::msg {

inline constexpr uint32_t kAddressNumberBits = 8;

[[nodiscard]] constexpr uint32_t make_address(uint32_t dest_id, uint32_t number) {
  return dest_id << kAddressNumberBits | number;
}
[[nodiscard]] constexpr uint32_t dest_id_of(uint32_t address) {
  return address >> kAddressNumberBits;
}
[[nodiscard]] constexpr uint32_t number_of(uint32_t address) {
  return address & ((1u << kAddressNumberBits) - 1);
}

}  // namespace rio::msg
