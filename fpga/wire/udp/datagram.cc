#include "fpga/wire/udp/datagram.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/hash.hpp"

namespace rio::wire::udp {
namespace {

constexpr size_t kNonceAt = offsetof(Greeting, nonce);
constexpr size_t kSealedAt = offsetof(Greeting, member);

template <class Kind>
[[nodiscard]] Kind read(std::span<const uint8_t> bytes) {
  Kind kind;
  std::memcpy(&kind, bytes.data(), sizeof(kind));
  return kind;
}

}  // namespace

DatagramHeader header_of(std::span<const uint8_t> bytes) {
  return read<DatagramHeader>(bytes);
}

size_t encode(const Datagram& datagram, std::span<uint8_t> out) {
  size_t used = kHeaderBytes;
  for (const Part& part : datagram.parts) {
    used += part.payload.size();
  }
  if (used > kDatagramBytesMax || out.size() < used) {
    return 0;
  }
  DatagramHeader header{.kind = datagram.asks ? kKindAsks : uint8_t{0},
                        .session = datagram.session,
                        .number = datagram.number,
                        .heard = datagram.heard};
  uint8_t* at = out.data() + kHeaderBytes;
  for (size_t i = 0; i < kLanes; ++i) {
    const Part& part = datagram.parts[i];
    header.parts[i] = {part.unit, static_cast<uint32_t>(part.payload.size())};
    at = std::copy(part.payload.begin(), part.payload.end(), at);
  }
  std::memcpy(out.data(), &header, sizeof(header));
  return used;
}

int decode(std::span<const uint8_t> bytes, Datagram* out) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kDatagramBytesMax) {
    return -EPROTO;
  }
  const DatagramHeader header = header_of(bytes);
  if (header.magic != kDatagramMagic || header.version != kDatagramVersion ||
      header.kind > kKindAsks || std::ranges::any_of(header.heard, [](const Heard& heard) {
        return heard.window > kWindowMax;
      })) {
    return -EPROTO;
  }
  Datagram got{header.session, header.number, header.kind != 0, header.heard, {}};
  bytes = bytes.subspan(kHeaderBytes);
  for (size_t i = 0; i < kLanes; ++i) {
    const auto& part = header.parts[i];
    if (part.length > bytes.size()) {
      return -EPROTO;
    }
    got.parts[i] = {part.unit, bytes.first(part.length)};
    bytes = bytes.subspan(part.length);
  }
  if (!bytes.empty()) {
    return -EPROTO;
  }
  *out = got;
  return 0;
}

uint64_t fabric_mark(std::string_view name) {
  return base::fnv1a<uint64_t>(name);
}

size_t encode(const Greeting& greeting, const Key& key, size_t bytes, std::span<uint8_t> out) {
  const size_t used = std::max(bytes - std::min(bytes, key.tag_bytes()), kGreetingBytes);
  std::fill_n(out.begin(), used, uint8_t{0});
  std::memcpy(out.data(), &greeting, sizeof(greeting));
  if (draw(out.subspan(kNonceAt, kSealedAt - kNonceAt)) != 0) {
    return 0;
  }
  return key.seal(out, used, kSealedAt, kNonceAt);
}

int decode(std::span<uint8_t> bytes, const Key& key, Greeting* out) {
  if (bytes.size() < kGreetingBytes) {
    return -EPROTO;
  }
  const auto clear = read<Greeting>(bytes);
  if (clear.magic != kDatagramMagic || clear.version != kDatagramVersion ||
      clear.kind < kKindHello || clear.kind > kKindAsk) {
    return -EPROTO;
  }
  const size_t opened = key.open(bytes, kSealedAt, kNonceAt);
  if (opened == 0) {
    return -EACCES;
  }
  auto got = read<Greeting>(bytes);
  if (opened < kGreetingBytes || got.ids < 1 || got.ids > kIdsMax ||
      static_cast<uint32_t>(got.reason) >= kReasons || got.first_id > 0xFFFFFFFFu - kIdsMax ||
      got.zero != 0) {
    return -EPROTO;
  }
  got.nonce = {};
  *out = got;
  return 0;
}

}  // namespace rio::wire::udp
