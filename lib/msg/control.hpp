/// @file
/// Bodies of the control messages of lib/msg, behind its header. See
/// docs/decisions/0015-large-data.md. Little-endian, fixed widths; bytes that mean nothing are 0.
///
/// A body is sent as it lies in memory. read() takes foreign bytes: what it lets through keeps the
/// ranges that stand here; what else must be true (that a transfer exists, that a total grows) is
/// for the objects of grant.hpp, offer.hpp and credit.hpp.
///
/// Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pmd/mem/cut.hpp"

namespace rio::msg {

static_assert(std::endian::native == std::endian::little, "bodies are sent as they lie in memory");

/// Longest transfer.
inline constexpr uint64_t kTransferMax = uint64_t{1} << 39;
/// First bytes that travel in REQUEST.
inline constexpr uint32_t kEdgeMax = 7;

/// How many of a sender's first bytes: the rest begins on 8 bytes, which is what cards ask of it.
/// Both sides then plan (pmd/mem) with a range that begins so much later.
[[nodiscard]] constexpr uint32_t edge_bytes(uint64_t address, uint64_t len_bytes) {
  const uint64_t edge = (8 - address % 8) % 8;
  return static_cast<uint32_t>(edge < len_bytes ? edge : len_bytes);
}

/// REQUEST, and ACCEPT where `offer` is not 0.
struct RequestBody {
  static constexpr uint8_t kSmall = 1;      ///< the payload is small data that lacks credit
  static constexpr uint8_t kImmediate = 2;  ///< `immediate` means something

  uint32_t transfer;        ///< counts up in each session, from 1
  uint32_t offer;           ///< that is accepted; 0: none
  uint64_t len_bytes;       ///< 1 to kTransferMax, edge included; with kSmall 0 too
  uint64_t match_bits;      ///< the layer's above
  uint32_t message_number;  ///< of this peer and context
  uint16_t page_offset;     ///< of the sender's first byte, 0 to 4095
  uint8_t flags;            ///< kSmall, not with an offer; kImmediate
  uint8_t edge_bytes;       ///< 0 to kEdgeMax, up to len_bytes
  uint8_t edge[8];          ///< the first edge_bytes of the payload
  uint64_t immediate;       ///< the layer's above; without kImmediate 0
};
static_assert(sizeof(RequestBody) == 48 && offsetof(RequestBody, len_bytes) == 8 &&
              offsetof(RequestBody, match_bits) == 16 &&
              offsetof(RequestBody, message_number) == 24 &&
              offsetof(RequestBody, page_offset) == 28 && offsetof(RequestBody, flags) == 30 &&
              offsetof(RequestBody, edge_bytes) == 31 && offsetof(RequestBody, edge) == 32 &&
              offsetof(RequestBody, immediate) == 40);

/// GRANT.
struct GrantBody {
  uint32_t transfer;
  uint8_t attempt;  ///< below kAttemptsMax
  uint8_t mailbox;  ///< 1 to 3
  uint16_t zero;
  uint32_t total;                        ///< messages that may be sent, at least 1
  uint8_t cut[pmd::mem::kCutWireBytes];  ///< decode_cut(), with the length less the edge
};
static_assert(sizeof(GrantBody) == 24 && offsetof(GrantBody, attempt) == 4 &&
              offsetof(GrantBody, mailbox) == 5 && offsetof(GrantBody, total) == 8 &&
              offsetof(GrantBody, cut) == 12);

/// EXTEND; DONE, with total 0.
struct TotalBody {
  uint32_t transfer;
  uint32_t total;
  uint8_t attempt;
  uint8_t zero[3];
};
static_assert(sizeof(TotalBody) == 12 && offsetof(TotalBody, total) == 4 &&
              offsetof(TotalBody, attempt) == 8);

/// ABORT, with arrived 0; CLOSED.
struct StopBody {
  uint32_t transfer;
  uint32_t arrived;  ///< messages of this attempt, from the first on, that surely did
  uint8_t attempt;
  uint8_t reason;  ///< 0 exactly where `again` is 1
  uint8_t again;   ///< 0 or 1
  uint8_t zero;
};
static_assert(sizeof(StopBody) == 12 && offsetof(StopBody, arrived) == 4 &&
              offsetof(StopBody, attempt) == 8 && offsetof(StopBody, reason) == 9 &&
              offsetof(StopBody, again) == 10);

/// OFFER.
struct OfferBody {
  uint32_t offer;           ///< counts up for each peer and context, from 1
  uint32_t message_number;  ///< that it is for
  uint64_t len_max;         ///< 1 to kTransferMax
  uint64_t match_bits;
  uint64_t ignore_bits;  ///< bits of match_bits that may differ
  uint16_t head_bytes;   ///< of the cut, 0 to 4095
  uint16_t unit_bytes;   ///< the middle is a multiple of it: power of two, 8 to 256
  uint16_t window;       ///< messages that may follow ACCEPT at once, at least 1
  uint8_t mailbox;       ///< 1 to 3
  uint8_t zero;
};
static_assert(sizeof(OfferBody) == 40 && offsetof(OfferBody, len_max) == 8 &&
              offsetof(OfferBody, match_bits) == 16 && offsetof(OfferBody, ignore_bits) == 24 &&
              offsetof(OfferBody, head_bytes) == 32 && offsetof(OfferBody, unit_bytes) == 34 &&
              offsetof(OfferBody, window) == 36 && offsetof(OfferBody, mailbox) == 38);

/// REVOKE, REVOKED.
struct RevokeBody {
  uint32_t offer;  ///< not 0
};
static_assert(sizeof(RevokeBody) == 4);

/// Read a body. @param bytes foreign, any length, any alignment. @return 0, or -EPROTO for bytes
/// that are no such body; then `out` is as it was.
[[nodiscard]] int read(std::span<const uint8_t> bytes, RequestBody* out);
[[nodiscard]] int read(std::span<const uint8_t> bytes, GrantBody* out);
[[nodiscard]] int read(std::span<const uint8_t> bytes, OfferBody* out);
[[nodiscard]] int read(std::span<const uint8_t> bytes, RevokeBody* out);
[[nodiscard]] int read_extend(std::span<const uint8_t> bytes, TotalBody* out);
[[nodiscard]] int read_done(std::span<const uint8_t> bytes, TotalBody* out);
[[nodiscard]] int read_abort(std::span<const uint8_t> bytes, StopBody* out);
[[nodiscard]] int read_closed(std::span<const uint8_t> bytes, StopBody* out);

/// Both sides of an accepted offer: the cut of the true length. @param len_bytes without the edge.
/// @return as pmd::mem::make_cut().
[[nodiscard]] int offered_cut(const OfferBody& offer, uint64_t len_bytes, pmd::mem::Cut* out);

}  // namespace rio::msg
