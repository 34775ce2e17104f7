#include "fpga/sim/udp/datagram.hpp"

#include <cerrno>
#include <cstring>

namespace rio::sim::udp {
namespace {

constexpr uint64_t kMagic = 0x5552;  // "RU"
constexpr uint64_t kVersion = 1;

// Places of the fields.
constexpr size_t kVersionAt = 2;
constexpr size_t kLaneAt = 3;
constexpr size_t kSessionAt = 4;
constexpr size_t kNumberAt = 8;
constexpr size_t kHeardAt = 16;
constexpr size_t kHeardBytes = 16;
constexpr size_t kUnitAt = 48;
constexpr size_t kLengthAt = 52;
static_assert(kHeardAt + kLanes * kHeardBytes == kUnitAt && kLengthAt + 4 == kHeaderBytes);

void put(uint8_t* at, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) {
    at[i] = static_cast<uint8_t>(value >> (8 * i));
  }
}

uint64_t get(const uint8_t* at, size_t bytes) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) {
    value |= uint64_t{at[i]} << (8 * i);
  }
  return value;
}

bool get_heard(const uint8_t* at, Heard* out) {
  *out = {static_cast<uint32_t>(get(at, 4)), static_cast<uint32_t>(get(at + 4, 4)), get(at + 8, 8)};
  return out->window <= kWindowMax;
}

}  // namespace

size_t encode(const Datagram& datagram, std::span<uint8_t> out) {
  const size_t length = datagram.payload.size();
  if (length > kPayloadBytesMax || out.size() < kHeaderBytes + length) {
    return 0;
  }
  uint8_t* at = out.data();
  if (length > 0) {
    std::memmove(at + kHeaderBytes, datagram.payload.data(), length);
  }
  put(at, kMagic, 2);
  put(at + kVersionAt, kVersion, 1);
  put(at + kLaneAt, static_cast<uint8_t>(datagram.lane), 1);
  put(at + kSessionAt, datagram.session, 4);
  put(at + kNumberAt, datagram.number, 8);
  for (size_t i = 0; i < kLanes; ++i) {
    uint8_t* heard = at + kHeardAt + i * kHeardBytes;
    put(heard, datagram.heard[i].next, 4);
    put(heard + 4, datagram.heard[i].window, 4);
    put(heard + 8, datagram.heard[i].seen, 8);
  }
  put(at + kUnitAt, datagram.unit, 4);
  put(at + kLengthAt, length, 4);
  return kHeaderBytes + length;
}

int decode(std::span<const uint8_t> bytes, Datagram* out) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kDatagramBytesMax) {
    return -EPROTO;
  }
  const uint8_t* at = bytes.data();
  if (get(at, 2) != kMagic || at[kVersionAt] != kVersion || at[kLaneAt] >= kLanes ||
      get(at + kLengthAt, 4) != bytes.size() - kHeaderBytes) {
    return -EPROTO;
  }
  Datagram got;
  for (size_t i = 0; i < kLanes; ++i) {
    if (!get_heard(at + kHeardAt + i * kHeardBytes, &got.heard[i])) {
      return -EPROTO;
    }
  }
  got.session = static_cast<uint32_t>(get(at + kSessionAt, 4));
  got.number = get(at + kNumberAt, 8);
  got.lane = static_cast<Lane>(at[kLaneAt]);
  got.unit = static_cast<uint32_t>(get(at + kUnitAt, 4));
  got.payload = bytes.subspan(kHeaderBytes);
  *out = got;
  return 0;
}

}  // namespace rio::sim::udp
