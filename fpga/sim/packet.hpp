/// @file
/// The units that travel through a simulated network, and the timers of its nodes.
#pragma once

#include <cstdint>

namespace rio::sim {

/// Kinds of packets, 0 to kPacketKindMax; these two have names.
inline constexpr uint8_t kRequest = 0;
inline constexpr uint8_t kResponse = 1;
inline constexpr uint8_t kPacketKindMax = 13;

/// The network reads source, destination and length, and carries the rest.
struct Packet {
  uint32_t source = 0;       ///< a node
  uint32_t destination = 0;  ///< a node, perhaps the source itself
  uint32_t tag = 0;          ///< of the sender's choice
  uint16_t info = 0;
  uint16_t len_bytes = 0;  ///< counts on links with a rate in bytes
  uint8_t kind = kRequest;
};

/// A node's timer, as it was set.
struct NodeTimer {
  uint32_t node = 0;
  uint32_t tag = 0;
  uint32_t word = 0;
  uint16_t info = 0;
};

}  // namespace rio::sim
