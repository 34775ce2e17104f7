/// @file
/// Address of a context: its port's destID in the upper 24 bits, the context's number in the lower
/// 8. Peers whose destID has more bits cannot be told apart here. Any thread may call the
/// functions.
#pragma once

#include <cstdint>

namespace rio::msg {

using Address = uint32_t;
inline constexpr uint32_t kContextBits = 8;

[[nodiscard]] constexpr Address address(uint32_t dest_id, uint32_t context) {
  return dest_id << kContextBits | context;
}
[[nodiscard]] constexpr uint32_t dest_id_of(Address address) {
  return address >> kContextBits;
}
[[nodiscard]] constexpr uint32_t context_of(Address address) {
  return address & ((1u << kContextBits) - 1);
}

}  // namespace rio::msg
