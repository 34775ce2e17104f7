/// @file
/// Arguments and results of the bursts. Plain structs, equal in C (riopmd.h mirrors them).
#pragma once

#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::pmd {

using regs::Status;

/// The latest end of a time-out of the card. docs/card.md
[[nodiscard]] constexpr uint64_t latest_ns(uint64_t time_out_ns) {
  return time_out_ns + time_out_ns / 16 + 1'000'000;
}
/// How long a stop may take, in ms: a card stops a ring or closes a window within about three
/// response time-outs, each as late as latest_ns() (docs/card.md, Rings). @param
/// response_timeout_us in force, regs: ID.RESPONSE_US; more than a minute counts as a minute.
/// @param slack_ms for the machine.
[[nodiscard]] constexpr uint32_t stop_limit_ms(uint32_t response_timeout_us, uint32_t slack_ms) {
  constexpr uint64_t kMostUs = 60'000'000;
  const uint64_t us = response_timeout_us < kMostUs ? response_timeout_us : kMostUs;
  return static_cast<uint32_t>(3 * latest_ns(us * 1000) / 1'000'000 + slack_ms);
}
/// The slack for callers that have none of their own.
inline constexpr uint32_t kStopSlackMs = 1000;

/// Bits of TxMessage::flags.
struct TxFlags {
  static constexpr uint8_t kPrioMask = 0x03;  ///< priority 0 to 2
  static constexpr uint8_t kOrder = 0x04;     ///< start after all responses to this (dest, mbox)
  static constexpr uint8_t kInline = 0x08;    ///< `data` points to the bytes; copied by the burst
  static constexpr uint8_t kDoorbell =
      0x10;  ///< type 10; `info` is sent, the rest is not looked at
  /// Segment size code of the specification (9: 8 bytes … 14: 256 bytes) << 5 would not fit beside
  /// the others, so the code minus 8; 0 means 256 bytes.
  static constexpr uint8_t kSsizeShift = 5;
};

/// A message to send.
struct TxMessage {
  union {
    uint64_t iova;     ///< bus address of the bytes, aligned as Caps::tx_addr_align says
    const void* data;  ///< with kInline: where the bytes are; free again when the burst returns
    uint64_t info;     ///< with kDoorbell: 16 bits of information
  };
  uint64_t cookie;        ///< comes back in TxDone, any value
  uint32_t dest_id;       ///< destination
  uint16_t length_bytes;  ///< 1 to 4096; inline 1 to Caps::inline_bytes_max()
  uint8_t mbox;           ///< 0 to 3, or 0 to 63 if one segment holds the message
  uint8_t flags;          ///< TxFlags
};
static_assert(sizeof(TxMessage) == 24);

/// A sent message: delivered (kOk), refused, or in doubt (kResponseTimeout).
struct TxDone {
  uint64_t cookie;
  uint32_t time_ticks;  ///< card's time of the last response
  Status status;
  uint8_t retries;  ///< RETRY answers, at most 255 are counted
};

/// A buffer for the shared receive queue: kMessageBytes long.
struct RxBuffer {
  uint64_t iova;    ///< aligned as Caps::shared_addr_align says
  uint64_t cookie;  ///< comes back in RxMessage, any value
};

/// A message from the shared receive queue. The buffer is the caller's again.
struct RxMessage {
  uint64_t cookie;
  uint32_t source;        ///< destID of the sender
  uint32_t dest_id;       ///< own ID that it was sent to
  uint32_t arrival;       ///< counts messages by their first segment
  uint32_t time_ticks;    ///< card's time; 0 unless QueuePairConfig::receive_times is set
  uint16_t length_bytes;  ///< landed, padded to a multiple of 8
  uint8_t mbox;
  uint8_t letter;
  uint8_t segments;
  Status status;  ///< kOk, kReceiveTimeout, kFormat, kFlushed
};

/// An entry for a dedicated receive queue.
struct DedicatedEntry {
  uint64_t iova;        ///< aligned as Caps::dedicated_addr_align says
  uint64_t cookie;      ///< comes back in EntryDone, any value
  uint32_t size_bytes;  ///< of the message, aligned as Caps::dedicated_size_align says; up to 4096
};

/// A completed dedicated, DMA or maintenance entry.
struct EntryDone {
  uint64_t cookie;
  uint32_t bytes;  ///< landed or moved
  Status status;
  uint8_t retries;
};

/// A received doorbell.
struct DoorbellEvent {
  uint32_t source;
  uint32_t dest_id;
  uint32_t time_ticks;
  uint16_t info;
};

/// A remote read, write or atomic.
struct DmaRequest {
  uint64_t rio_addr;  ///< RapidIO address; key in the top 16 bits
  uint64_t iova;      ///< local bytes
  uint64_t cookie;    ///< comes back in EntryDone, any value
  uint32_t dest_id;
  uint32_t length_bytes;  ///< up to Caps::dma_bytes; atomics 1, 2 or 4
  regs::DmaOp op;
  uint8_t prio;  ///< 0 to 2
};

/// A barrier to join, to load or to cancel. [S1]
struct BarrierRequest {
  /// Notifications to send and to await; copied by post(), which replaces its `epoch` and `cookie`.
  const regs::BarrierDesc* desc;
  uint64_t cookie;  ///< comes back in BarrierDone, any value
  uint32_t epoch;   ///< number of the barrier in its group
};

/// A barrier that has ended. kOk: all members have arrived.
struct BarrierDone {
  uint64_t cookie;  ///< of the request, or of the slot
  uint32_t epoch;   ///< as it was posted
  uint16_t resent;  ///< notifications sent again, at most 65535 are counted
  uint8_t slot;     ///< the slot that ran it, or kBarrierNoSlot
  Status status;    ///< kOk, kPeerFailed, kResponseTimeout, kErrorResponse, kFlushed …
  uint8_t round;    ///< where it ended unless kOk: round of the descriptor, 0 to 19
  uint8_t peer;     ///< which of the round's two peers, 0 or 1
  uint8_t retries;  ///< RETRY answers, at most 255 are counted
};
/// BarrierDone::slot of a barrier that was posted.
inline constexpr uint8_t kBarrierNoSlot = 0xFF;

/// An event of the card: regs::EventCpl without its phase.
struct CardEvent {
  regs::EventType type;
  uint32_t source;
  uint32_t info;
  uint32_t data[4];
};

/// Why a burst took fewer than it was given though there was room.
enum class Reject : uint8_t {
  kNone = 0,
  kLength,     ///< 0, above 4096, above the inline limit, or no multiple of the size alignment
  kAlignment,  ///< bus address not aligned as the card demands
  kMailbox,    ///< mailbox outside of 0 to 3 (several segments) or 0 to 63
  kOperation,  ///< operation, segment size or priority that the card does not know; of a barrier
               ///< also group, rounds, or a slot that is not loaded or still runs
};

/// Counts of a queue. Written by the owning thread only.
struct QueueStats {
  uint64_t messages = 0;         ///< completed with kOk
  uint64_t bytes = 0;            ///< of those
  uint64_t failed = 0;           ///< completed with another status
  uint64_t rejected = 0;         ///< refused by the burst, never given to the card
  uint64_t bad_completions = 0;  ///< completions that name no entry of ours: the card is broken
};

}  // namespace rio::pmd
