/// @file
/// The name by which the processes of a job find each other's cards.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/hash.hpp"
#include "lib/msg/address.hpp"
#include "lib/msg/header.hpp"

namespace rio::job {

/// Number of contexts of an endpoint, all served by lib/tag.
inline constexpr uint32_t kContextsOfEndpoint = 4;
inline constexpr uint32_t kTaggedContext = 0;
/// Largest number of endpoints of a port.
inline constexpr uint32_t kEndpoints = 15;
/// The context of a port's barriers, behind those of its endpoints.
inline constexpr uint32_t kBarrierContext = kEndpoints * kContextsOfEndpoint;
static_assert(kBarrierContext < msg::kContexts);

/// A name as launchers carry it between processes: little-endian, 64 bytes, since launchers have no
/// room for more (FI_NAME_MAX).
struct Name {
  uint32_t magic;    ///< kNameMagic
  uint32_t dest_id;  ///< of the card, below 2^24; of a card with an address, the number that it has
                     ///< given itself
  uint32_t owner;    ///< msg::MessagePort::instance() of the port: tells apart processes that use
                     ///< one destID at the same time, or one after the other
  uint16_t fabric;   ///< fabric_mark() of the fabric's name
  uint16_t endpoint;  ///< below kEndpoints
  /// msg::MessagePort::address() of the card, padded with zeros; empty: the card is reached by its
  /// destID.
  char address[48];
};
static_assert(sizeof(Name) == 64 && offsetof(Name, address) == 16 && offsetof(Name, dest_id) == 4 &&
              offsetof(Name, owner) == 8 && offsetof(Name, fabric) == 12 &&
              offsetof(Name, endpoint) == 14);

/// "riof", and the release of this format.
inline constexpr uint32_t kNameMagic = 0x666F6905;

/// Hash of a fabric's name. Endpoints on different fabrics cannot reach each other.
[[nodiscard]] inline uint16_t fabric_mark(const std::string& fabric) {
  const auto mark = base::fnv1a<uint32_t>(fabric);
  constexpr uint32_t kHalf = 16;
  return static_cast<uint16_t>(mark ^ mark >> kHalf);
}

/// Parses foreign bytes. @param fabric mark of ours. @return 0; -EINVAL: not a name; -EHOSTUNREACH:
/// a name of another fabric.
[[nodiscard]] inline int read_name(const void* bytes, uint16_t fabric, Name* out) {
  Name name;
  std::memcpy(&name, bytes, sizeof(name));
  const size_t length = strnlen(name.address, sizeof(name.address));
  if (name.magic != kNameMagic || name.endpoint >= kEndpoints ||
      name.dest_id >= 1u << (32 - msg::kContextBits) || length == sizeof(name.address)) {
    return -EINVAL;
  }
  if (name.fabric != fabric) {
    return -EHOSTUNREACH;
  }
  *out = name;
  return 0;
}

/// Context of a name's tagged messages. @param dest_id the destID to which they go.
[[nodiscard]] inline msg::Address tagged_address(const Name& name, uint32_t dest_id) {
  return msg::address(dest_id, name.endpoint * kContextsOfEndpoint + kTaggedContext);
}

}  // namespace rio::job
