#include "fpga/wire/udp/greeting.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/hash.hpp"
#include "fpga/wire/udp/bytes.hpp"

namespace rio::wire::udp {
namespace {

// Places of the fields.
constexpr size_t kVersionAt = 2;
constexpr size_t kToSessionAt = 4;
constexpr size_t kNonceAt = 8;
constexpr size_t kSealedAt = 32;
constexpr size_t kMemberAt = 32;
constexpr size_t kChallengeAt = 48;
constexpr size_t kEchoAt = 64;
constexpr size_t kSessionAt = 80;
constexpr size_t kFirstIdAt = 84;
constexpr size_t kIdsAt = 88;
constexpr size_t kDatagramAt = 92;
constexpr size_t kFabricAt = 96;
constexpr size_t kReasonAt = 104;
constexpr size_t kZeroAt = 108;
static_assert(kZeroAt + 4 == kGreetingBytes);

void put_random(uint8_t* at, const Random& value) {
  std::memcpy(at, value.data(), value.size());
}
[[nodiscard]] Random get_random(const uint8_t* at) {
  Random value{};
  std::memcpy(value.data(), at, value.size());
  return value;
}
[[nodiscard]] uint32_t get_u32(const uint8_t* at) {
  return static_cast<uint32_t>(get_field(at, 4));
}

}  // namespace

uint64_t fabric_mark(std::string_view name) {
  return base::fnv1a<uint64_t>(name);
}

size_t encode(const Greeting& greeting, const Key& key, size_t bytes, std::span<uint8_t> out) {
  const size_t used = std::max(bytes - std::min(bytes, key.tag_bytes()), kGreetingBytes);
  uint8_t* const at = out.data();
  std::fill_n(at, used, uint8_t{0});
  if (draw(out.subspan(kNonceAt, kSealedAt - kNonceAt)) != 0) {
    return 0;
  }
  put_field(at, kDatagramMagic, 2);
  at[kVersionAt] = kDatagramVersion;
  at[kKindAt] = greeting.kind;
  put_field(at + kToSessionAt, greeting.to_session, 4);
  put_random(at + kMemberAt, greeting.member);
  put_random(at + kChallengeAt, greeting.challenge);
  put_random(at + kEchoAt, greeting.echo);
  put_field(at + kSessionAt, greeting.session, 4);
  put_field(at + kFirstIdAt, greeting.first_id, 4);
  put_field(at + kIdsAt, greeting.ids, 4);
  put_field(at + kDatagramAt, greeting.datagram_bytes, 4);
  put_field(at + kFabricAt, greeting.fabric, 8);
  put_field(at + kReasonAt, static_cast<uint32_t>(greeting.reason), 4);
  return key.seal(out, used, kSealedAt, kNonceAt);
}

int decode(std::span<uint8_t> bytes, const Key& key, Greeting* out) {
  const uint8_t* const at = bytes.data();
  if (bytes.size() < kGreetingBytes || get_field(at, 2) != kDatagramMagic ||
      at[kVersionAt] != kDatagramVersion || at[kKindAt] < kKindHello || at[kKindAt] > kKindAsk) {
    return -EPROTO;
  }
  const size_t opened = key.open(bytes, kSealedAt, kNonceAt);
  if (opened == 0) {
    return -EACCES;
  }
  Greeting got;
  got.kind = at[kKindAt];
  got.to_session = get_u32(at + kToSessionAt);
  got.member = get_random(at + kMemberAt);
  got.challenge = get_random(at + kChallengeAt);
  got.echo = get_random(at + kEchoAt);
  got.session = get_u32(at + kSessionAt);
  got.first_id = get_u32(at + kFirstIdAt);
  got.ids = get_u32(at + kIdsAt);
  got.datagram_bytes = get_u32(at + kDatagramAt);
  got.fabric = get_field(at + kFabricAt, 8);
  const uint32_t reason = get_u32(at + kReasonAt);
  if (opened < kGreetingBytes || got.ids < 1 || got.ids > kIdsMax || reason >= kReasons ||
      got.first_id > 0xFFFFFFFFu - kIdsMax || get_u32(at + kZeroAt) != 0) {
    return -EPROTO;
  }
  got.reason = static_cast<Reason>(reason);
  *out = got;
  return 0;
}

}  // namespace rio::wire::udp
