#include "fpga/sim/udp/datagram.hpp"

#include <cerrno>
#include <cstring>

#include "fpga/sim/udp/bytes.hpp"

namespace rio::sim::udp {
namespace {

// Places of the fields.
constexpr size_t kVersionAt = 2;
constexpr size_t kSessionAt = 4;
constexpr size_t kNumberAt = 8;
constexpr size_t kHeardAt = 16;
constexpr size_t kHeardBytes = 16;
constexpr size_t kUnitAt = 48;
constexpr size_t kLengthAt = 52;
static_assert(kHeardAt + kLanes * kHeardBytes == kUnitAt && kLengthAt + 4 == kHeaderBytes);

bool get_heard(const uint8_t* at, Heard* out) {
  *out = {static_cast<uint32_t>(get_field(at, 4)), static_cast<uint32_t>(get_field(at + 4, 4)),
          get_field(at + 8, 8)};
  return out->window <= kWindowMax;
}

}  // namespace

void write_header(const Datagram& datagram, uint8_t* out) {
  put_field(out, kDatagramMagic, 2);
  put_field(out + kVersionAt, kDatagramVersion, 1);
  out[kKindAt] =
      static_cast<uint8_t>(static_cast<uint8_t>(datagram.lane) | (datagram.asks ? kKindAsks : 0));
  put_field(out + kSessionAt, datagram.session, 4);
  put_field(out + kNumberAt, datagram.number, 8);
  for (size_t i = 0; i < kLanes; ++i) {
    uint8_t* heard = out + kHeardAt + i * kHeardBytes;
    put_field(heard, datagram.heard[i].next, 4);
    put_field(heard + 4, datagram.heard[i].window, 4);
    put_field(heard + 8, datagram.heard[i].seen, 8);
  }
  put_field(out + kUnitAt, datagram.unit, 4);
  put_field(out + kLengthAt, datagram.payload.size(), 4);
}

size_t encode(const Datagram& datagram, std::span<uint8_t> out) {
  const size_t length = datagram.payload.size();
  if (length > kPayloadBytesMax || out.size() < kHeaderBytes + length) {
    return 0;
  }
  if (length > 0) {
    std::memmove(out.data() + kHeaderBytes, datagram.payload.data(), length);
  }
  write_header(datagram, out.data());
  return kHeaderBytes + length;
}

int decode(std::span<const uint8_t> bytes, Datagram* out) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kDatagramBytesMax) {
    return -EPROTO;
  }
  const uint8_t* at = bytes.data();
  if (get_field(at, 2) != kDatagramMagic || at[kVersionAt] != kDatagramVersion ||
      at[kKindAt] > (kKindLane | kKindAsks) ||
      get_field(at + kLengthAt, 4) != bytes.size() - kHeaderBytes) {
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
  got.lane = static_cast<Lane>(at[kKindAt] & kKindLane);
  got.asks = (at[kKindAt] & kKindAsks) != 0;
  got.unit = static_cast<uint32_t>(get_field(at + kUnitAt, 4));
  got.payload = bytes.subspan(kHeaderBytes);
  *out = got;
  return 0;
}

}  // namespace rio::sim::udp
