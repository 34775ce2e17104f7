/// @file
/// What an endpoint is called: what fi_getname() gives and fi_av_insert() takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "lib/tag/request.hpp"

namespace rio::ofi {

/// Contexts of an endpoint: all lib/tag's.
inline constexpr uint32_t kContextsOfEndpoint = 4;
inline constexpr uint32_t kTaggedContext = 0;
inline constexpr uint32_t kPlainContext = 1;
inline constexpr uint32_t kRemoteContext = 2;  ///< what is asked of each other's memory
/// Endpoints of a domain.
inline constexpr uint32_t kEndpoints = 16;

/// As it travels, by whatever the launcher has: little-endian, 16 bytes.
struct Name {
  uint32_t magic;     ///< kNameMagic
  uint32_t dest_id;   ///< of the card, below 2^24
  uint32_t endpoint;  ///< below kEndpoints
  uint32_t fabric;    ///< fabric_mark() of the fabric's name
};
static_assert(sizeof(Name) == 16 && offsetof(Name, dest_id) == 4 && offsetof(Name, endpoint) == 8 &&
              offsetof(Name, fabric) == 12);

/// "riof", and the release of this format.
inline constexpr uint32_t kNameMagic = 0x666F6901;

/// Tells fabrics apart: those who are on different ones cannot reach each other.
[[nodiscard]] uint32_t fabric_mark(const std::string& fabric);

/// Foreign bytes. @param fabric mark of ours. @param out context of tagged messages. @return 0;
/// -EINVAL: no such name; -EHOSTUNREACH: one of another fabric.
[[nodiscard]] int read_name(const void* bytes, uint32_t fabric, tag::Address* out);

/// "rio://DESTID/ENDPOINT". @return as snprintf().
int print_name(const Name& name, char* out, size_t bytes);

}  // namespace rio::ofi
