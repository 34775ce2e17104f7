/// @file
/// What stands before the bytes of each message of ours, as it travels: little-endian, 16 bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::msg {

/// Kind of a message. Any other value is not ours, or of a later release: the sender is cut off.
enum class Kind : uint8_t {
  // Numbered, for a context; take a credit.
  kData = 0,            ///< a whole message
  kFirst = 1,           ///< first part of a message of several: parts.hpp
  kMore = 2,            ///< another part
  kLast = 3,            ///< the last part
  kDataImmediate = 4,   ///< as kData, behind eight bytes more for the layer above
  kFirstImmediate = 5,  ///< as kFirst, whose header has them
  // Numbered, for a context; takes a record there, and one of the control credits.
  kRequest = 8,  ///< may I send this? RequestBody
  // Numbered, for the library; from the reserve.
  kOpen = 16,     ///< may I send to this context?
  kOpened = 17,   ///< yes; Header::credit says how much
  kRefused = 18,  ///< there is no such context (any more); Header::credit: messages that it
                  ///< received
  kCredit = 19,   ///< nothing but Header::credit
  // Of large data: control.hpp has the bodies. They take control credits, and Header::credit is a
  // total of these.
  kGrant = 20,
  kExtend = 21,
  kDone = 22,
  kAbort = 23,
  kClosed = 24,
  kOffer = 25,    ///< `from` is the context that offers
  kRevoke = 26,   ///< `from` is the context that offered
  kRevoked = 27,  ///< `to` is the context that offered
  kRecords = 28,  ///< nothing but Header::credit, which is a total of requests
  kControl = 29,  ///< nothing but Header::credit, which is a total of control messages
  kAlive = 31,    ///< nothing; a peer that does not know the session any more says so
  // Not numbered: they make the numbers.
  kHello = 32,
  kWelcome = 33,
  kReset = 34,  ///< I do not know the session of what you sent
};

/// Contexts of a port: ids are below.
inline constexpr uint32_t kContexts = 64;

struct Header {
  uint32_t key;     ///< of the session, as the receiver named it; 0 in a hello
  uint32_t number;  ///< of the message among the numbered ones of this session
  uint16_t to;      ///< receiver's context
  uint16_t from;    ///< sender's context
  uint16_t credit;  ///< messages that `to` may have sent to `from` since it was opened, modulo
                    ///< 2^16; see Kind
  Kind kind;
  uint8_t padding;  ///< bytes at the end that the card added, 0 to 7
};
static_assert(sizeof(Header) == 16);
static_assert(offsetof(Header, number) == 4 && offsetof(Header, to) == 8 &&
              offsetof(Header, from) == 10 && offsetof(Header, credit) == 12 &&
              offsetof(Header, kind) == 14 && offsetof(Header, padding) == 15);

inline constexpr uint32_t kHeaderBytes = sizeof(Header);
/// Bytes of the user that one message of the card holds.
inline constexpr uint32_t kPartBytesMax = regs::kMessageBytesMax - kHeaderBytes;

/// Behind the header of kHello, kWelcome and kReset.
struct SessionBody {
  uint32_t magic;    ///< kMagic
  uint32_t session;  ///< key that the receiver has to use; of kReset: the key that was not known
  uint32_t peer;     ///< key that the receiver named, 0 in a first hello
  uint32_t first;    ///< number that the receiver has to begin with; of kReset: number of the first
                     ///< message that was not taken
  uint32_t instance;  ///< MessagePort::instance() of the sender
  uint32_t zero;
};
static_assert(sizeof(SessionBody) == 24 && offsetof(SessionBody, instance) == 16);

/// "riom", and the release of this format.
inline constexpr uint32_t kMagic = 0x6D6F6903;

[[nodiscard]] constexpr bool takes_credit(Kind kind) {
  return static_cast<uint8_t>(kind) < 8;  // what of them there is not is for the layer above
}

/// Those about large data, which have a body.
[[nodiscard]] constexpr bool is_large(Kind kind) {
  return kind == Kind::kRequest || (kind >= Kind::kGrant && kind <= Kind::kRevoked);
}

/// The header as it is loaded and stored: two words.
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

  /// Bits that no message which takes a credit has: contexts of kContexts, kinds, padding.
  static constexpr uint64_t kNever = 0xF8F8'0000'FFC0'FFC0u;
  /// Contexts and kind.
  static constexpr uint64_t kRoute = 0x00FF'0000'FFFF'FFFFu;
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

/// Second word of a header of kData, for another kind.
[[nodiscard]] constexpr uint64_t with_kind(uint64_t word, Kind kind) {
  static_assert(static_cast<uint8_t>(Kind::kData) == 0);
  return word | uint64_t{static_cast<uint8_t>(kind)} << 48;
}

/// Zeros that the card adds to a message of that many bytes.
[[nodiscard]] constexpr uint32_t padding_of(uint32_t bytes) {
  return (0u - bytes) & 7u;
}

}  // namespace rio::msg
