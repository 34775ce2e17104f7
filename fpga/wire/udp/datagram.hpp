/// @file
/// The datagrams of the wire between machines, for writing and for reading foreign bytes: units of
/// a connection, and greetings about a connection.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "fpga/wire/udp/key.hpp"

namespace rio::wire::udp {

/// Requests and responses are numbered apart, so that a response never waits behind a request.
enum class UnitKind : uint8_t { kRequests = 0, kResponses = 1 };
inline constexpr size_t kLanes = 2;

/// How much of a lane has arrived. Numbers wrap at 2^32.
struct Heard {
  uint32_t next = 0;    ///< the first unit that is missing
  uint32_t window = 0;  ///< units from `next` on that the receiver accepts
  uint64_t seen = 0;    ///< bit i: unit next + 1 + i has arrived

  [[nodiscard]] bool operator==(const Heard&) const = default;
};

/// A unit of a lane.
struct Part {
  uint32_t unit = 0;                 ///< its number
  std::span<const uint8_t> payload;  ///< its frames; empty: there is none
};

/// Acknowledgements of both lanes, and at most one unit of each.
struct Datagram {
  uint32_t session = 0;  ///< receiver's number for the connection; new at each start of a member
  uint64_t number = 0;   ///< of this datagram: never used twice within a session
  bool asks = false;     ///< the sender wants an answer
  std::array<Heard, kLanes> heard;
  std::array<Part, kLanes> parts;
};

/// Values of each datagram's byte 3: flags of a unit's, or the kind of a greeting.
inline constexpr uint8_t kKindAsks = 1;  ///< flag
inline constexpr uint8_t kKindHello = 16;
inline constexpr uint8_t kKindAccept = 17;
inline constexpr uint8_t kKindFarewell = 18;
inline constexpr uint8_t kKindAsk = 19;  ///< asks whether a connection is still known
inline constexpr size_t kKindAt = 3;
inline constexpr uint16_t kDatagramMagic = 0x5552;  ///< "RU"
inline constexpr uint8_t kDatagramVersion = 1;
inline constexpr uint32_t kWindowMax = 1u << 15;  ///< units

/// The header as it is sent, before the payloads of both lanes.
struct DatagramHeader {
  uint16_t magic = kDatagramMagic;
  uint8_t version = kDatagramVersion;
  uint8_t kind = 0;
  uint32_t session = 0;
  uint64_t number = 0;
  std::array<Heard, kLanes> heard{};
  struct {
    uint32_t unit;
    uint32_t length;
  } parts[kLanes] = {};
};
static_assert(std::endian::native == std::endian::little && sizeof(DatagramHeader) == 64);
inline constexpr size_t kHeaderBytes = sizeof(DatagramHeader);
/// The part that says which connection a datagram belongs to; never encrypted.
inline constexpr size_t kClearBytes = offsetof(DatagramHeader, heard);
/// Longest payload of a datagram over IPv4.
inline constexpr size_t kDatagramBytesMax = 65507;
inline constexpr size_t kPayloadBytesMax = kDatagramBytesMax - kHeaderBytes;

/// The header of foreign bytes, unchecked. @param bytes at least kHeaderBytes.
[[nodiscard]] DatagramHeader header_of(std::span<const uint8_t> bytes);

/// Write header and payloads. Any thread. @param out at least kHeaderBytes and the
/// payloads; must not overlap them. @return bytes written; 0: `out` is too short, or the payloads
/// are longer than kPayloadBytesMax.
[[nodiscard]] size_t encode(const Datagram& datagram, std::span<uint8_t> out);

/// Read foreign bytes. Any thread. Accepted bytes equal their own re-encoding. @param out set only
/// on success; its payloads point into `bytes`. @return 0, or -EPROTO: not a datagram of this
/// protocol.
[[nodiscard]] int decode(std::span<const uint8_t> bytes, Datagram* out);

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
