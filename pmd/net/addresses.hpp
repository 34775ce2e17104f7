/// @file
/// Ethernet addresses of cards, as Linux's rionet gives them: 00:01:00:01, then the destID.
#pragma once

#include <rte_ether.h>

#include <cstdint>
#include <cstring>

namespace rio::pmd {

/// destIDs that have an address.
inline constexpr uint32_t kNetDestIds = 1u << 16;
/// What is no destID.
inline constexpr uint32_t kNoNetDestId = UINT32_MAX;

[[nodiscard]] inline rte_ether_addr address_of(uint32_t dest_id) {
  return {{0, 1, 0, 1, static_cast<uint8_t>(dest_id >> 8), static_cast<uint8_t>(dest_id)}};
}

/// Hot. @return kNoNetDestId: of no card.
[[nodiscard]] inline uint32_t dest_id_of(const rte_ether_addr& address) {
  const uint8_t* const bytes = address.addr_bytes;
  uint32_t prefix;
  std::memcpy(&prefix, bytes, sizeof(prefix));
  constexpr uint8_t kPrefix[] = {0, 1, 0, 1};
  uint32_t wanted;
  std::memcpy(&wanted, kPrefix, sizeof(wanted));
  return prefix == wanted ? uint32_t{bytes[4]} << 8 | bytes[5] : kNoNetDestId;
}

}  // namespace rio::pmd
