#include "lib/ofi/name.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/hash.hpp"

namespace rio::ofi {

uint16_t fabric_mark(const std::string& fabric) {
  const auto mark = base::fnv1a<uint32_t>(fabric);
  constexpr uint32_t kHalf = 16;
  return static_cast<uint16_t>(mark ^ mark >> kHalf);
}

int read_name(const void* bytes, uint16_t fabric, Name* out) {
  Name name;
  std::memcpy(&name, bytes, sizeof(name));
  const size_t length = strnlen(name.address, sizeof(name.address));
  if (name.magic != kNameMagic || name.endpoint >= kEndpoints ||
      name.dest_id >= 1u << (32 - tag::kContextBits) || length == sizeof(name.address)) {
    return -EINVAL;
  }
  if (name.fabric != fabric) {
    return -EHOSTUNREACH;
  }
  *out = name;
  return 0;
}

int print_name(const Name& name, char* out, size_t bytes) {
  const auto length = static_cast<int>(strnlen(name.address, sizeof(name.address)));
  return length > 0
             ? std::snprintf(out, bytes, "rio://%.*s/%u", length, name.address, name.endpoint)
             : std::snprintf(out, bytes, "rio://%u/%u", name.dest_id, name.endpoint);
}

}  // namespace rio::ofi
