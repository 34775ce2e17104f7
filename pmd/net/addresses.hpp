/// @file
/// Ethernet addresses of cards, as Linux's rionet gives them: 00:01:00:01, then the destID.
#pragma once

#include <rte_ether.h>

#include <bit>
#include <cstdint>
#include <cstring>

namespace rio::pmd {

/// destIDs that have an address.
inline constexpr uint32_t kNetDestIds = 1u << 16;
/// A number that is no destID.
inline constexpr uint32_t kNoNetDestId = UINT32_MAX;

/// The six bytes of an address as the lower ones of a word, the first lowest.
using Mac = uint64_t;
inline constexpr Mac kMacMask = (uint64_t{1} << 48) - 1;
/// Of no frame.
inline constexpr Mac kNoMac = UINT64_MAX;

/// Hot. Reads eight bytes.
[[nodiscard]] inline Mac load_mac(const uint8_t* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof(word));
  return word & kMacMask;
}

[[nodiscard]] constexpr bool is_multicast(Mac mac) {
  return (mac & 1) != 0;
}

[[nodiscard]] constexpr Mac mac_of(uint32_t dest_id) {
  constexpr Mac kPrefix = 0x01000100;
  return kPrefix | Mac{dest_id >> 8 & 0xFF} << 32 | Mac{dest_id & 0xFF} << 40;
}

/// Hot. @return kNoNetDestId: of no card.
[[nodiscard]] constexpr uint32_t dest_id_of(Mac mac) {
  const auto id = static_cast<uint32_t>((mac >> 32 & 0xFF) << 8 | (mac >> 40 & 0xFF));
  return mac == mac_of(id) ? id : kNoNetDestId;
}

[[nodiscard]] inline rte_ether_addr address_of(uint32_t dest_id) {
  return {{0, 1, 0, 1, static_cast<uint8_t>(dest_id >> 8), static_cast<uint8_t>(dest_id)}};
}

}  // namespace rio::pmd
