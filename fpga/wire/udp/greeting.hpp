/// @file
/// Messages of two members about a connection: hello, accept, farewell, and the question whether it
/// is known.
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
  kTaken = 2,    ///< another member has said before that it has this destID
  kTooMany = 3,  ///< no room for another member
  kUnknown = 4,  ///< the sender has no such connection; answers kKindAsk
};
inline constexpr uint32_t kReasons = 5;

/// A statement of a member about a connection.
struct Greeting {
  uint8_t kind = kKindHello;
  uint32_t to_session = 0;      ///< of the receiver; 0: it has none yet
  Random member{};              ///< a random name of the process's card: another life, another name
  Random challenge{};           ///< drawn by the sender for this connection
  Random echo{};                ///< the receiver's challenge, as proof that this is an answer to it
  uint32_t session = 0;         ///< what datagrams to the sender bear
  uint32_t first_id = 0;        ///< the destID that the sender claims; 0: it does not matter
  uint32_t ids = 1;             ///< destIDs of its card, 1 to kIdsMax
  uint32_t datagram_bytes = 0;  ///< longest that was seen to come through, this one included
  uint64_t fabric = 0;          ///< fabric_mark() of its name
  Reason reason = Reason::kLeaving;

  [[nodiscard]] bool operator==(const Greeting&) const = default;
};

inline constexpr uint32_t kIdsMax = 32;
inline constexpr size_t kGreetingBytes = 112;
/// The shortest datagram that a path has to take: 1280 bytes of IPv6's least, without its headers.
inline constexpr uint32_t kDatagramMin = 1232;
/// Longer ones are not tried: two messages of 4 KiB.
inline constexpr uint32_t kDatagramMax = 2 * 4128 + kHeaderBytes + kTagBytes;

/// Tells fabrics apart by their names.
[[nodiscard]] uint64_t fabric_mark(std::string_view name);

/// Write it, sealed where there is a key, and as long as a path shall be tried with.
/// @param out at least `bytes`, and not less than kGreetingBytes + kTagBytes. @return bytes
/// written; 0: the system has no random bytes.
[[nodiscard]] size_t encode(const Greeting& greeting, const Key& key, size_t bytes,
                            std::span<uint8_t> out);

/// Read foreign bytes; they are opened in place. Any thread.
/// @return 0; -EPROTO: no greeting of this protocol; -EACCES: sealed by another key.
[[nodiscard]] int decode(std::span<uint8_t> bytes, const Key& key, Greeting* out);

}  // namespace rio::wire::udp
