/// @file
/// Requests of an endpoint on another's memory, as they travel on their contexts for this: a
/// message without immediate data, kAskBits, an AskHeader, and bytes. Bytes that are too long for
/// that follow as a message of its own (data_bits()). The answer (reply_bits()), on contexts of
/// their own, has the bytes read; immediate data there says why there are none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/ofi/arithmetic.hpp"
#include "lib/tag/wire.hpp"

namespace rio::ofi {

enum class Verb : uint8_t {
  kWrite = 1,
  kRead = 2,
  kUpdate = 3,   ///< Atomic::kUpdate
  kFetch = 4,    ///< Atomic::kFetch
  kCompare = 5,  ///< Atomic::kCompare
  kWindow = 6,   ///< where the card's window onto the region is; answered by a WindowReply
};
[[nodiscard]] constexpr bool is_atomic(Verb verb) {
  return verb >= Verb::kUpdate && verb <= Verb::kCompare;
}
/// @pre is_atomic(verb)
[[nodiscard]] constexpr Atomic atomic_of(Verb verb) {
  return static_cast<Atomic>(static_cast<uint8_t>(verb) - static_cast<uint8_t>(Verb::kUpdate));
}

struct AskHeader {
  static constexpr uint8_t kFollows = 1;    ///< the bytes are a message of their own
  static constexpr uint8_t kImmediate = 2;  ///< `immediate` is for the owner of the memory

  Verb verb;
  uint8_t flags;
  uint8_t type;  ///< fi_datatype of atomics
  uint8_t op;    ///< fi_op of atomics
  uint32_t id;   ///< of this endpoint's operation; tells answers apart
  uint64_t address;
  uint64_t key;
  uint64_t bytes;  ///< that are written or read there
  uint64_t immediate;
};
static_assert(sizeof(AskHeader) == 40 && offsetof(AskHeader, id) == 4 &&
              offsetof(AskHeader, address) == 8 && offsetof(AskHeader, immediate) == 32);

/// Where the cards of peers reach a region. `rio_addr` is the RapidIO address of its first byte,
/// the window's key in the top 16 bits; 0: there is no window, only messages.
struct WindowReply {
  uint64_t rio_addr;
  uint64_t first;   ///< what peers call that byte in their asks
  uint64_t bytes;   ///< at least 1
  uint64_t rights;  ///< FI_REMOTE_READ, FI_REMOTE_WRITE
};
static_assert(sizeof(WindowReply) == 32 && offsetof(WindowReply, rights) == 24);

/// The longest ask, and what it has room for.
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

/// Foreign bytes. @param rest what stands behind the header. @return 0, -EPROTO.
[[nodiscard]] int read_ask(std::span<const uint8_t> bytes, AskHeader* out,
                           std::span<const uint8_t>* rest);
/// Foreign numbers. @return whether there is such a window.
[[nodiscard]] bool is_window(const WindowReply& reply);

}  // namespace rio::ofi
