/// @file
/// Standard capability and command/status registers of RapidIO devices that an enumeration uses.
/// Bit 0 of the specification is the most significant. RIO Part 1 §5, Part 3 §3, Part 6 §6, Part 8
#pragma once

#include <cstdint>

#include "lib/enumerate/fabric_map.hpp"

namespace rio::enumerate {

struct Csr {
  static constexpr uint32_t kDeviceIdentity = 0x00;
  static constexpr uint32_t kAssemblyInformation = 0x0C;
  static constexpr uint32_t kFeatures = 0x10;
  static constexpr uint32_t kSwitchPort = 0x14;
  static constexpr uint32_t kTableLimit = 0x34;
  static constexpr uint32_t kBaseDeviceId = 0x60;
  static constexpr uint32_t kHostLock = 0x68;
  static constexpr uint32_t kComponentTag = 0x6C;
  static constexpr uint32_t kRouteDestId = 0x70;
  static constexpr uint32_t kRoutePort = 0x74;
};

/// Bits of Csr::kFeatures.
inline constexpr uint32_t kSwitchFeature = 0x10000000;
inline constexpr uint32_t kExtendedFeatures = 0x8;

/// Port of a destID without a route, as Linux writes it.
inline constexpr uint32_t kNoRoute = 0xFF;
/// Hop count that no way is long enough for: the endpoint answers, not a switch.
inline constexpr uint32_t kToEndpoint = 0xFF;

/// Extended feature blocks, by the low half of their header.
inline constexpr uint32_t kErrorManagementBlock = 0x0007;
[[nodiscard]] constexpr bool is_lp_serial(uint32_t block) {
  return (block >= 0x0001 && block <= 0x0003) || block == 0x0009;
}
/// Of an LP-Serial block: error and status of a port, and its bit for a link that works.
[[nodiscard]] constexpr uint32_t port_status(uint32_t block, uint32_t port) {
  return block + 0x58 + 0x20 * port;
}
inline constexpr uint32_t kPortOk = 0x2;
/// Of an error management block.
inline constexpr uint32_t kPortWriteTarget = 0x28;
inline constexpr uint32_t kTargetIsLarge = 0x8000;

}  // namespace rio::enumerate
