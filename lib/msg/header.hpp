/// @file
/// The header before the bytes of each message of this library, as sent on the wire: little-endian,
/// 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fpga/regs/gen/rio_regs.hpp"
#include "lib/msg/config.hpp"

namespace rio::msg {

/// Kind of a message. Any other value is foreign, or from a later release: the port ends the
/// session with its sender.
enum class Kind : uint8_t {
  // Numbered messages for a context. Each takes a credit.
  kData = 0,            ///< a whole message
  kFirst = 1,           ///< first part of a message in several parts: lib/tag/parts.hpp
  kMore = 2,            ///< another part
  kLast = 3,            ///< the last part
  kDataImmediate = 4,   ///< as kData, after eight extra bytes for the layer above
  kFirstImmediate = 5,  ///< as kFirst, with the eight extra bytes in FirstHeader
  // Numbered message for a context. It takes a record there, and a control credit.
  kRequest = 8,  ///< asks to send large data: RequestBody
  // Numbered messages between libraries. They may use the ring's reserved entries.
  kOpen = 16,     ///< asks to send to this context
  kOpened = 17,   ///< grants kOpen; Header::credit is the first limit
  kRefused = 18,  ///< no such context, or not any more; Header::credit: messages that it received
  kCredit = 19,   ///< carries only Header::credit
  // About large data; control.hpp has the bodies. They take control credits, and Header::credit is
  // a total of control credits.
  kGrant = 20,
  kExtend = 21,
  kDone = 22,
  kAbort = 23,
  kClosed = 24,
  kOffer = 25,    ///< `from` is the context that offers
  kRevoke = 26,   ///< `from` is the context that offered
  kRevoked = 27,  ///< `to` is the context that offered
  kRecords = 28,  ///< carries only Header::credit, a total of requests
  kControl = 29,  ///< carries only Header::credit, a total of control messages
  kStripe = 30,   ///< as kGrant, for a stripe of a transfer over several rails
  kAlive = 31,    ///< carries nothing; a peer that has lost the session answers kReset
  // Not numbered: they set up the numbers of a session.
  kHello = 32,
  kWelcome = 33,
  kReset = 34,  ///< a message of the receiver's belonged to no known session
  // Not numbered: which rails reach which. paths.hpp
  kRails = 35,  ///< RailsBody: the sender's rails
  kFind = 36,   ///< RailBody: asks whether a rail reaches the peer
  kFound = 37,  ///< RailBody: answers kFind, by the rail that it came by
  kLost = 38,   ///< RailBody: the sender's rail `asking` has lost its card
  kLeft = 39,   ///< RailBody: messages that rail `asking` sent are not answered
};

/// Most contexts of a port; ids are 0 to kContexts - 1.
inline constexpr uint32_t kContexts = 64;

struct Header {
  uint32_t key;     ///< session key that the receiver chose; 0 in a hello
  uint32_t number;  ///< number of the message, counted over the numbered messages of the session
  uint16_t to;      ///< the receiver's context
  uint16_t from;    ///< the sender's context
  uint16_t credit;  ///< limit: messages that `to` may have sent to `from` since it was opened,
                    ///< modulo 2^16; see Kind for other meanings
  Kind kind;
  uint8_t padding;  ///< bytes that the card added at the end, 0 to 7
};
static_assert(sizeof(Header) == 16);
static_assert(offsetof(Header, number) == 4 && offsetof(Header, to) == 8 &&
              offsetof(Header, from) == 10 && offsetof(Header, credit) == 12 &&
              offsetof(Header, kind) == 14 && offsetof(Header, padding) == 15);

inline constexpr uint32_t kHeaderBytes = sizeof(Header);
/// Payload bytes that fit into one message of the card.
inline constexpr uint32_t kPartBytesMax = regs::kMessageBytesMax - kHeaderBytes;

/// Body of kHello, kWelcome and kReset, behind the header.
struct SessionBody {
  uint32_t magic;    ///< kMagic
  uint32_t session;  ///< key that the receiver has to use; in kReset: the unknown key
  uint32_t peer;     ///< key that the receiver chose; 0 in a first hello
  uint32_t first;    ///< number that the receiver has to begin with; in kReset: number of the first
                     ///< message not received
  uint32_t instance;  ///< MessagePort::instance() of the sender
  uint32_t rails;     ///< rails of the sender; 0: one
};
static_assert(sizeof(SessionBody) == 24 && offsetof(SessionBody, instance) == 16);

/// Body of kFind, kFound, kLost and kLeft, behind the header.
struct RailBody {
  static constexpr uint16_t kNone = 0xFFFF;

  uint32_t magic;      ///< kMagic
  uint32_t session;    ///< key that the receiver chose
  uint32_t peer;       ///< key that the receiver has to use
  uint16_t asking;     ///< rail that sent kFind; kFound repeats it
  uint16_t answering;  ///< rail that kFind came to; kNone in the others
};
static_assert(sizeof(RailBody) == 16);

/// Body of kRails, behind the header.
struct RailsBody {
  static constexpr uint32_t kAddressBytes = 60;

  struct Rail {
    uint32_t dest_id;
    /// Endpoint::address(), and zeros; empty: the rail is reached by its destID.
    char address[kAddressBytes];
  };

  uint32_t magic;    ///< kMagic
  uint32_t session;  ///< key that the receiver chose
  uint32_t peer;     ///< key that the receiver has to use
  uint32_t is_seen;  ///< 1: the sender has the receiver's rails
  uint32_t count;    ///< of `rails`, 1 to kRailsMax
  uint32_t zero;
  Rail rails[kRailsMax];
};
static_assert(sizeof(RailsBody) == 24 + 8 * 64);

/// Format version in the low byte, then "iom".
inline constexpr uint32_t kMagic = 0x6D6F6904;

[[nodiscard]] constexpr bool takes_credit(Kind kind) {
  return static_cast<uint8_t>(kind) < 8;  // values without a name are rejected by the layer above
}

/// Whether a kind is about large data and has a body.
[[nodiscard]] constexpr bool is_large(Kind kind) {
  return kind == Kind::kRequest || (kind >= Kind::kGrant && kind <= Kind::kRevoked) ||
         kind == Kind::kStripe;
}

/// The header as two words, as it is loaded and stored.
struct HeaderWords {
  uint64_t key_number;
  uint64_t rest;

  [[nodiscard]] uint32_t key() const { return static_cast<uint32_t>(key_number); }
  [[nodiscard]] uint32_t number() const { return static_cast<uint32_t>(key_number >> 32); }
  [[nodiscard]] uint32_t to() const { return static_cast<uint32_t>(rest) & 0xFFFFu; }
  [[nodiscard]] uint32_t from() const { return static_cast<uint32_t>(rest >> 16) & 0xFFFFu; }
  [[nodiscard]] uint16_t credit() const { return static_cast<uint16_t>(rest >> 32); }
  [[nodiscard]] Kind kind() const { return static_cast<Kind>(rest >> 48); }
  [[nodiscard]] uint32_t padding() const { return static_cast<uint32_t>(rest >> 56); }

  /// Bits of the second word that are 0 in every valid message that takes a credit: high bits of
  /// the contexts, the kind and the padding.
  static constexpr uint64_t kNever = 0xF8F8'0000'FFC0'FFC0u;
  [[nodiscard]] bool takes_credit() const { return (rest & kNever) == 0; }

  [[nodiscard]] static uint64_t key_and_number(uint32_t key, uint32_t number) {
    return key | uint64_t{number} << 32;
  }
  [[nodiscard]] static uint64_t rest_of(uint32_t to, uint32_t from, uint32_t credit, Kind kind,
                                        uint32_t padding) {
    return to | from << 16 | uint64_t{credit} << 32 | uint64_t{static_cast<uint8_t>(kind)} << 48 |
           uint64_t{padding} << 56;
  }
};
static_assert(sizeof(HeaderWords) == sizeof(Header) && kContexts == 64);

[[nodiscard]] inline HeaderWords load_header(const uint8_t* at) {
  HeaderWords words;
  std::memcpy(&words, at, sizeof(words));
  return words;
}

/// The header that goes on with a run: it has the contexts and the kind of the first, and the next
/// number. Headers are compared field by field in memory: words would need more registers than a
/// loop over messages has.
class RunHeader {
 public:
  explicit RunHeader(const HeaderWords& first)
      : key_number_(first.key_number),
        contexts_(static_cast<uint32_t>(first.rest)),
        kind_(static_cast<uint8_t>(first.kind())) {}
  [[nodiscard]] bool is_at(const uint8_t* header) const {
    uint64_t key_number = 0;
    uint32_t contexts = 0;
    std::memcpy(&key_number, header, sizeof key_number);
    std::memcpy(&contexts, header + offsetof(Header, to), sizeof contexts);
    return key_number == key_number_ && contexts == contexts_ &&
           header[offsetof(Header, kind)] == kind_;
  }
  [[nodiscard]] static uint32_t padding(const uint8_t* header) {
    return header[offsetof(Header, padding)];
  }
  void next() { key_number_ += uint64_t{1} << 32; }

 private:
  uint64_t key_number_;
  uint32_t contexts_;
  uint8_t kind_;
};

/// Change the kind in the second word of a kData header.
[[nodiscard]] constexpr uint64_t with_kind(uint64_t word, Kind kind) {
  static_assert(static_cast<uint8_t>(Kind::kData) == 0);
  return word | uint64_t{static_cast<uint8_t>(kind)} << 48;
}

/// Number of zero bytes that the card appends to a message of `bytes` bytes.
[[nodiscard]] constexpr uint32_t padding_of(uint32_t bytes) {
  return (0u - bytes) & 7u;
}

}  // namespace rio::msg
