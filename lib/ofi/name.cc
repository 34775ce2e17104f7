#include "lib/ofi/name.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rio::ofi {

// FNV-1a.
uint32_t fabric_mark(const std::string& fabric) {
  uint32_t mark = 2166136261u;
  for (const char c : fabric) {
    mark = (mark ^ static_cast<uint8_t>(c)) * 16777619u;
  }
  return mark;
}

int read_name(const void* bytes, uint32_t fabric, tag::Address* out) {
  Name name;
  std::memcpy(&name, bytes, sizeof(name));
  if (name.magic != kNameMagic || name.endpoint >= kEndpoints ||
      name.dest_id >= 1u << (32 - tag::kContextBits)) {
    return -EINVAL;
  }
  if (name.fabric != fabric) {
    return -EHOSTUNREACH;
  }
  *out = tag::address(name.dest_id, name.endpoint * kContextsOfEndpoint + kTaggedContext);
  return 0;
}

int print_name(const Name& name, char* out, size_t bytes) {
  return std::snprintf(out, bytes, "rio://%u/%u", name.dest_id, name.endpoint);
}

}  // namespace rio::ofi
