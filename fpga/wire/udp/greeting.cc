#include "fpga/wire/udp/greeting.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/hash.hpp"

namespace rio::wire::udp {
namespace {

constexpr size_t kNonceAt = offsetof(Greeting, nonce);
constexpr size_t kSealedAt = offsetof(Greeting, member);

[[nodiscard]] Greeting read(std::span<const uint8_t> bytes) {
  Greeting greeting;
  std::memcpy(&greeting, bytes.data(), sizeof(greeting));
  return greeting;
}

}  // namespace

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
  const Greeting clear = read(bytes);
  if (clear.magic != kDatagramMagic || clear.version != kDatagramVersion ||
      clear.kind < kKindHello || clear.kind > kKindAsk) {
    return -EPROTO;
  }
  const size_t opened = key.open(bytes, kSealedAt, kNonceAt);
  if (opened == 0) {
    return -EACCES;
  }
  Greeting got = read(bytes);
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
