/// @file
/// Requests of an endpoint on a peer's memory, as they travel on contexts of their own: a message
/// without immediate data that holds kAskBits, an AskHeader, and data. Data too long for it follows
/// as a separate message (data_bits()). The answer (reply_bits()) has contexts of its own and holds
/// the bytes read; if there are none, its immediate data is the error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/msg/config.hpp"
#include "lib/ofi/arithmetic.hpp"
#include "lib/tag/wire.hpp"

namespace rio::ofi {

struct AskHeader {
  static constexpr uint8_t kFollows = 1;    ///< the bytes are a message of their own
  static constexpr uint8_t kImmediate = 2;  ///< `immediate` is for the owner of the memory
  /// Of a write: the card of the asking side may still write there. The owner first closes the
  /// window of its rail `type`.
  static constexpr uint8_t kFences = 4;

  Verb verb;
  uint8_t flags;
  uint8_t type;      ///< fi_datatype of atomics; with kFences a rail of the owner
  uint8_t op;        ///< fi_op of atomics
  uint32_t id;       ///< of this endpoint's operation; tells answers apart
  uint64_t address;  ///< of Verb::kWindow: rails_of()
  uint64_t key;
  uint64_t bytes;  ///< to be written or read
  uint64_t immediate;
};
static_assert(sizeof(AskHeader) == 40 && offsetof(AskHeader, id) == 4 &&
              offsetof(AskHeader, address) == 8 && offsetof(AskHeader, immediate) == 32);

/// Where the cards of peers reach a region. `rio_addr` is the RapidIO address of its first byte,
/// with the window's key in the top 16 bits; 0: there is no window, use messages.
struct WindowReply {
  uint64_t rio_addr;
  uint64_t first;   ///< address that peers use for that byte in their requests
  uint64_t bytes;   ///< at least 1
  uint64_t rights;  ///< FI_REMOTE_READ, FI_REMOTE_WRITE
};
static_assert(sizeof(WindowReply) == 32 && offsetof(WindowReply, rights) == 24);

/// AskHeader::address of a request for a window: which rail of the owner is to open it, and which
/// rail of the asking side will use it. 0: the first ones, as of a side that has one rail.
[[nodiscard]] constexpr uint64_t rails_of(uint32_t owner, uint32_t asking) {
  return owner | uint64_t{asking} << 8;
}
[[nodiscard]] constexpr uint32_t owner_rail(uint64_t rails) {
  return rails & 0xFF;
}
[[nodiscard]] constexpr uint64_t asking_rail(uint64_t rails) {
  return rails >> 8;
}

/// The longest request.
inline constexpr size_t kAskBytesMax = tag::kDataBytesMax;
inline constexpr size_t kInlineMax = kAskBytesMax - sizeof(AskHeader);
/// Operands of an atomic operation, or what they are compared with.
inline constexpr size_t kAtomicBytesMax = kInlineMax / 2 / sizeof(uint64_t) * sizeof(uint64_t);

inline constexpr uint64_t kAskBits = 0;
[[nodiscard]] constexpr uint64_t reply_bits(uint32_t id) {
  return uint64_t{id} << 2 | 1;
}
[[nodiscard]] constexpr uint64_t data_bits(uint32_t id) {
  return uint64_t{id} << 2 | 2;
}

/// Parses foreign bytes. @param rest set to the bytes behind the header. @return 0, -EPROTO.
[[nodiscard]] int read_ask(std::span<const uint8_t> bytes, AskHeader* out,
                           std::span<const uint8_t>* rest);
/// Checks foreign numbers. @return whether they describe a window.
[[nodiscard]] bool is_window(const WindowReply& reply);

}  // namespace rio::ofi
