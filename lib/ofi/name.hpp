/// @file
/// What an endpoint is called: what fi_getname() gives and fi_av_insert() takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/tag/request.hpp"

namespace rio::ofi {

class Domain;

/// Contexts of an endpoint: all lib/tag's.
inline constexpr uint32_t kContextsOfEndpoint = 4;
inline constexpr uint32_t kTaggedContext = 0;
inline constexpr uint32_t kPlainContext = 1;
inline constexpr uint32_t kRemoteContext = 2;  ///< what is asked of each other's memory
/// The context of answers: an endpoint that waits for room to ask more does not keep others from
/// being answered.
inline constexpr uint32_t kReplyContext = 3;
/// Endpoints of a domain.
inline constexpr uint32_t kEndpoints = 16;

/// As it travels, by whatever the launcher has: little-endian, 64 bytes:
/// launchers have room for no more (FI_NAME_MAX).
struct Name {
  uint32_t magic;     ///< kNameMagic
  uint32_t dest_id;   ///< of the card, below 2^24; where it has an address, what it calls itself
  uint32_t owner;     ///< msg::Port::instance() of the domain: tells apart processes that have one
                      ///< destID at the same time, or one after the other
  uint16_t fabric;    ///< fabric_mark() of the fabric's name
  uint16_t endpoint;  ///< below kEndpoints
  /// msg::Port::address() of the card, with zeros behind it; empty: it is found by its destID.
  char address[48];
};
static_assert(sizeof(Name) == 64 && offsetof(Name, address) == 16 && offsetof(Name, dest_id) == 4 &&
              offsetof(Name, owner) == 8 && offsetof(Name, fabric) == 12 &&
              offsetof(Name, endpoint) == 14);

/// "riof", and the release of this format.
inline constexpr uint32_t kNameMagic = 0x666F6905;

/// Tells fabrics apart: those who are on different ones cannot reach each other.
[[nodiscard]] uint16_t fabric_mark(const std::string& fabric);

/// Our own name. @return false: the card's address is too long for it.
[[nodiscard]] bool make_name(const Domain& domain, uint32_t endpoint, Name* out);

/// Foreign bytes. @param fabric mark of ours. @return 0; -EINVAL: no such name; -EHOSTUNREACH: one
/// of another fabric.
[[nodiscard]] int read_name(const void* bytes, uint16_t fabric, Name* out);

/// Its context of tagged messages. @param dest_id by which messages go there.
[[nodiscard]] inline tag::Address context_of(const Name& name, uint32_t dest_id) {
  return tag::address(dest_id, name.endpoint * kContextsOfEndpoint + kTaggedContext);
}

/// "rio://DESTID/ENDPOINT", or "rio://HOST:PORT/ENDPOINT". @return as snprintf().
int print_name(const Name& name, char* out, size_t bytes);

}  // namespace rio::ofi
