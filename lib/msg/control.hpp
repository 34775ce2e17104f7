/// @file
/// Bodies of the control messages of lib/msg. A body follows the message header (header.hpp). See
/// docs/decisions/0015-large-data.md. Little-endian, fixed widths; unused bytes are 0.
///
/// A body is sent as it lies in memory. read() validates bytes from a peer: every field of an
/// accepted body is within the range stated here. Whether the message makes sense now (the transfer
/// exists, the total grows) is checked by the objects of grant.hpp, offer.hpp and credit.hpp.
///
/// Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "lib/msg/header.hpp"
#include "pmd/mem/cut.hpp"

namespace rio::msg {

static_assert(std::endian::native == std::endian::little, "bodies are sent as they lie in memory");

/// Length of the longest transfer, in bytes.
inline constexpr uint64_t kTransferMax = uint64_t{1} << 39;
/// Most stripes of one transfer.
inline constexpr uint32_t kStripesMax = 250;
/// Most bytes of the payload that travel inside REQUEST.
inline constexpr uint32_t kEdgeMax = 7;

/// Number of a sender's first bytes that go inside REQUEST, so that the rest starts at a multiple
/// of 8 bytes, as cards require. Both sides plan (pmd/mem) with the range behind the edge.
[[nodiscard]] constexpr uint32_t edge_bytes(uint64_t address, uint64_t len_bytes) {
  const uint64_t edge = (0 - address) & kEdgeMax;
  return static_cast<uint32_t>(edge < len_bytes ? edge : len_bytes);
}

/// REQUEST; if `offer` is not 0, ACCEPT.
struct RequestBody {
  static constexpr uint8_t kSmall = 1;      ///< the payload is small data that lacks credit
  static constexpr uint8_t kImmediate = 2;  ///< `immediate` is valid

  uint32_t transfer;        ///< counts up in each session, from 1
  uint32_t offer;           ///< number of the accepted offer; 0: none
  uint64_t len_bytes;       ///< 1 to kTransferMax, edge included; 0 is allowed with kSmall
  uint64_t match_bits;      ///< meaning defined by the layer above
  uint32_t message_number;  ///< number for this peer and context
  uint16_t page_offset;     ///< page offset of the sender's first byte, 0 to 4095
  uint8_t flags;            ///< kSmall (never with an offer), kImmediate
  uint8_t edge_bytes;       ///< 0 to kEdgeMax, at most len_bytes
  uint8_t edge[8];          ///< the first edge_bytes of the payload
  uint64_t immediate;       ///< meaning defined by the layer above; 0 without kImmediate
  /// RapidIO address where the receiver may read the bytes behind the edge, a multiple of 8; 0:
  /// nowhere, as with kSmall or an offer.
  uint64_t shown_at;
};
static_assert(sizeof(RequestBody) == 56 && offsetof(RequestBody, len_bytes) == 8 &&
              offsetof(RequestBody, match_bits) == 16 &&
              offsetof(RequestBody, message_number) == 24 &&
              offsetof(RequestBody, page_offset) == 28 && offsetof(RequestBody, flags) == 30 &&
              offsetof(RequestBody, edge_bytes) == 31 && offsetof(RequestBody, edge) == 32 &&
              offsetof(RequestBody, immediate) == 40 && offsetof(RequestBody, shown_at) == 48);

/// GRANT.
struct GrantBody {
  uint32_t transfer;
  uint8_t attempt;                       ///< below kAttemptsMax
  uint8_t mailbox;                       ///< 1 to 3
  uint8_t rail;                          ///< of the receiver, below kRailsMax
  uint8_t stripe;                        ///< 0; in StripeBody 1 to kStripesMax
  uint32_t total;                        ///< total of messages that may be sent, at least 1
  uint8_t cut[pmd::mem::kCutWireBytes];  ///< for decode_cut(), of the bytes behind the edge
};
static_assert(sizeof(GrantBody) == 24 && offsetof(GrantBody, attempt) == 4 &&
              offsetof(GrantBody, mailbox) == 5 && offsetof(GrantBody, total) == 8 &&
              offsetof(GrantBody, cut) == 12);

/// STRIPE: GRANT for a stripe, a part of a transfer that one rail brings. Its cut, attempts,
/// EXTEND, DONE, ABORT and CLOSED are its own.
struct StripeBody {
  GrantBody grant;
  uint64_t first_byte;   ///< where the stripe begins, counted behind the edge
  uint64_t whole_bytes;  ///< bytes of all stripes, up to kTransferMax
};
static_assert(sizeof(StripeBody) == 40 && offsetof(StripeBody, first_byte) == 24);

/// EXTEND; or DONE, with total 0.
struct TotalBody {
  uint32_t transfer;
  uint32_t total;
  uint8_t attempt;
  uint8_t stripe;  ///< 0: the whole transfer
  uint8_t zero[2];
};
static_assert(sizeof(TotalBody) == 12 && offsetof(TotalBody, total) == 4 &&
              offsetof(TotalBody, attempt) == 8);

/// ABORT, with arrived 0; or CLOSED.
struct StopBody {
  static constexpr uint8_t kDoubtful = 2;  ///< again, and messages of the attempt may still arrive

  uint32_t transfer;
  uint32_t arrived;  ///< leading messages of this attempt that certainly arrived
  uint8_t attempt;
  uint8_t reason;  ///< 0 if and only if `again` is not
  uint8_t again;   ///< 0, 1 or, in CLOSED only, kDoubtful
  uint8_t stripe;  ///< 0: the whole transfer
};
static_assert(sizeof(StopBody) == 12 && offsetof(StopBody, arrived) == 4 &&
              offsetof(StopBody, attempt) == 8 && offsetof(StopBody, reason) == 9 &&
              offsetof(StopBody, again) == 10);

/// OFFER.
struct OfferBody {
  uint32_t offer;           ///< counts up for each peer and context, from 1
  uint32_t message_number;  ///< number of the message that the offer is for
  uint64_t len_max;         ///< 1 to kTransferMax
  uint64_t match_bits;
  uint64_t ignore_bits;  ///< bits of match_bits to ignore in the comparison
  uint16_t head_bytes;   ///< bytes of the cut's head, 0 to 4095
  uint16_t unit_bytes;   ///< the cut's middle is a multiple of this: power of two, 8 to 256
  uint16_t window;       ///< messages that may follow ACCEPT immediately, at least 1
  uint8_t mailbox;       ///< 1 to 3
  uint8_t zero;
};
static_assert(sizeof(OfferBody) == 40 && offsetof(OfferBody, len_max) == 8 &&
              offsetof(OfferBody, match_bits) == 16 && offsetof(OfferBody, ignore_bits) == 24 &&
              offsetof(OfferBody, head_bytes) == 32 && offsetof(OfferBody, unit_bytes) == 34 &&
              offsetof(OfferBody, window) == 36 && offsetof(OfferBody, mailbox) == 38);

/// REVOKE; or REVOKED.
struct RevokeBody {
  uint32_t offer;  ///< not 0
};
static_assert(sizeof(RevokeBody) == 4);

/// Read and validate a body. @param bytes from a peer; any length, any alignment. @return 0, or
/// -EPROTO if they are not a valid body; then `out` is unchanged.
[[nodiscard]] int read(std::span<const uint8_t> bytes, RequestBody* out);
[[nodiscard]] int read(std::span<const uint8_t> bytes, GrantBody* out);
[[nodiscard]] int read(std::span<const uint8_t> bytes, StripeBody* out);
[[nodiscard]] int read(std::span<const uint8_t> bytes, OfferBody* out);
[[nodiscard]] int read(std::span<const uint8_t> bytes, RevokeBody* out);
/// Read and validate the body of a message of `kind`, kExtend or kDone. @return 0, -EPROTO.
[[nodiscard]] int read(std::span<const uint8_t> bytes, Kind kind, TotalBody* out);
/// Read and validate the body of a message of `kind`, kAbort or kClosed. @return 0, -EPROTO.
[[nodiscard]] int read(std::span<const uint8_t> bytes, Kind kind, StopBody* out);

/// Compute the cut of an accepted offer for the true length; both sides call this. @param len_bytes
/// length without the edge.
/// @return as pmd::mem::make_cut().
[[nodiscard]] int offered_cut(const OfferBody& offer, uint64_t len_bytes, pmd::mem::Cut* out);

}  // namespace rio::msg
