#include "fpga/wire/udp/datagram.hpp"

#include <algorithm>
#include <cerrno>

#include "fpga/wire/udp/bytes.hpp"

namespace rio::wire::udp {
namespace {

// Offsets of the fields.
constexpr size_t kVersionAt = 2;
constexpr size_t kSessionAt = 4;
constexpr size_t kNumberAt = 8;
constexpr size_t kHeardAt = 16;
constexpr size_t kHeardBytes = 16;
constexpr size_t kPartsAt = 48;
constexpr size_t kPartBytes = 8;
static_assert(kHeardAt + kLanes * kHeardBytes == kPartsAt &&
              kPartsAt + kLanes * kPartBytes == kHeaderBytes);

bool get_heard(const uint8_t* at, Heard* out) {
  *out = {static_cast<uint32_t>(get_field(at, 4)), static_cast<uint32_t>(get_field(at + 4, 4)),
          get_field(at + 8, 8)};
  return out->window <= kWindowMax;
}

}  // namespace

void write_header(const Datagram& datagram, uint8_t* out) {
  put_field(out, kDatagramMagic, 2);
  put_field(out + kVersionAt, kDatagramVersion, 1);
  out[kKindAt] = datagram.asks ? kKindAsks : 0;
  put_field(out + kSessionAt, datagram.session, 4);
  put_field(out + kNumberAt, datagram.number, 8);
  for (size_t i = 0; i < kLanes; ++i) {
    uint8_t* heard = out + kHeardAt + i * kHeardBytes;
    put_field(heard, datagram.heard[i].next, 4);
    put_field(heard + 4, datagram.heard[i].window, 4);
    put_field(heard + 8, datagram.heard[i].seen, 8);
  }
  for (size_t i = 0; i < kLanes; ++i) {
    uint8_t* part = out + kPartsAt + i * kPartBytes;
    put_field(part, datagram.parts[i].unit, 4);
    put_field(part + 4, datagram.parts[i].payload.size(), 4);
  }
}

size_t encode(const Datagram& datagram, std::span<uint8_t> out) {
  size_t used = kHeaderBytes;
  for (const Part& part : datagram.parts) {
    used += part.payload.size();
  }
  if (used > kDatagramBytesMax || out.size() < used) {
    return 0;
  }
  write_header(datagram, out.data());
  uint8_t* at = out.data() + kHeaderBytes;
  for (const Part& part : datagram.parts) {
    at = std::copy(part.payload.begin(), part.payload.end(), at);
  }
  return used;
}

int decode(std::span<const uint8_t> bytes, Datagram* out) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kDatagramBytesMax) {
    return -EPROTO;
  }
  const uint8_t* at = bytes.data();
  if (get_field(at, 2) != kDatagramMagic || at[kVersionAt] != kDatagramVersion ||
      at[kKindAt] > kKindAsks) {
    return -EPROTO;
  }
  Datagram got;
  for (size_t i = 0; i < kLanes; ++i) {
    if (!get_heard(at + kHeardAt + i * kHeardBytes, &got.heard[i])) {
      return -EPROTO;
    }
  }
  got.session = static_cast<uint32_t>(get_field(at + kSessionAt, 4));
  got.number = get_field(at + kNumberAt, 8);
  got.asks = (at[kKindAt] & kKindAsks) != 0;
  bytes = bytes.subspan(kHeaderBytes);
  for (size_t i = 0; i < kLanes; ++i) {
    const uint8_t* part = at + kPartsAt + i * kPartBytes;
    const uint64_t length = get_field(part + 4, 4);
    if (length > bytes.size()) {
      return -EPROTO;
    }
    got.parts[i] = {static_cast<uint32_t>(get_field(part, 4)), bytes.first(length)};
    bytes = bytes.subspan(length);
  }
  if (!bytes.empty()) {
    return -EPROTO;
  }
  *out = got;
  return 0;
}

}  // namespace rio::wire::udp
