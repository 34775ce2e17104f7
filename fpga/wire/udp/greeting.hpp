/// @file
/// Messages about a connection: hello, accept, farewell, and the question whether it is known.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fpga/wire/udp/datagram.hpp"
#include "fpga/wire/udp/key.hpp"

namespace rio::wire::udp {

enum class Reason : uint32_t {
  kLeaving = 0,
  kOtherFabric = 1,
  kTaken = 2,    ///< another member has claimed this destID before
  kTooMany = 3,  ///< no room for another member
  kUnknown = 4,  ///< the sender has no such connection; the answer to kKindAsk
};
inline constexpr uint32_t kReasons = 5;

/// A message of a member about a connection, as it is sent.
struct Greeting {
  uint16_t magic = kDatagramMagic;
  uint8_t version = kDatagramVersion;
  uint8_t kind = kKindHello;
  uint32_t to_session = 0;          ///< of the receiver; 0: it has none yet
  std::array<uint8_t, 24> nonce{};  ///< drawn by encode(), zero after decode()
  Random member{};                  ///< a random name of the process's card; differs in each life
  Random challenge{};               ///< drawn by the sender for this connection
  Random echo{};          ///< the receiver's challenge, as proof that this is an answer to it
  uint32_t session = 0;   ///< session number in datagrams to the sender
  uint32_t first_id = 0;  ///< the destID that the sender claims; 0: the receiver chooses by itself
  uint32_t ids = 1;       ///< destIDs of its card, 1 to kIdsMax
  uint32_t datagram_bytes = 0;  ///< longest that has come through, including this one
  uint64_t fabric = 0;          ///< fabric_mark() of the fabric's name
  Reason reason = Reason::kLeaving;
  uint32_t zero = 0;

  [[nodiscard]] bool operator==(const Greeting&) const = default;
};
inline constexpr size_t kGreetingBytes = sizeof(Greeting);
static_assert(kGreetingBytes == 112);

inline constexpr uint32_t kIdsMax = 32;
/// The shortest datagram that a path must carry: IPv6's minimum of 1280 bytes less headers.
inline constexpr uint32_t kDatagramMin = 1232;
/// The longest datagram that is tried: two messages of 4 KiB.
inline constexpr uint32_t kDatagramMax = 2 * 4128 + kHeaderBytes + kTagBytes;

/// Hash of a fabric's name, to tell fabrics apart.
[[nodiscard]] uint64_t fabric_mark(std::string_view name);

/// Write a greeting, sealed if there is a key, padded to the length with which the path is tested.
/// @param out at least `bytes`, and not less than kGreetingBytes + kTagBytes. @return bytes
/// written; 0: the system has no random bytes.
[[nodiscard]] size_t encode(const Greeting& greeting, const Key& key, size_t bytes,
                            std::span<uint8_t> out);

/// Read foreign bytes, which are decrypted in place. Any thread. @return 0; -EPROTO: not a greeting
/// of this protocol; -EACCES: sealed by another key.
[[nodiscard]] int decode(std::span<uint8_t> bytes, const Key& key, Greeting* out);

}  // namespace rio::wire::udp
