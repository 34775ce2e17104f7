/// @file
/// The unit that travels between two cards: a header of 32 bytes and a payload. It has the fields
/// of RapidIO packets, but not their bit format.
#pragma once

#include <cstdint>
#include <cstring>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

enum class FrameType : uint8_t {
  kSkip = 0,      ///< filler at the end of a ring
  kMessage,       ///< a whole type 11 message (fast mode)
  kSegment,       ///< a segment of a type 11 message
  kAcks,          ///< type 13 responses to messages: `length` / 2 words of Ack
  kDoorbell,      ///< type 10; `address` is the information
  kRequest,       ///< NREAD, NWRITE, NWRITE_R, SWRITE, atomic
  kResponse,      ///< type 13 response to a doorbell or request, by `tid`
  kMaintRequest,  ///< type 8; `address` is the offset
  kMaintResponse,
  kPortWrite,
  /// A run of whole messages of one sender and mailbox without their bytes: `length` / 16
  /// PullParts. The receiver pulls the bytes out of the sender's process. With `op` kBytesBehind,
  /// for a receiver that may not read the sender's memory: `segments` PullParts, followed by the
  /// bytes.
  kPull,
  /// A kPull that its sender has revoked: the bytes are no longer there.
  kRevoked,
  /// The answer to a kPull: `ssize` messages were taken; `op` answers the next one, if any.
  kPulled,
};

/// Status of a type 13 response. RIO Part 2 §3.3.3
enum class Answer : uint8_t { kDone = 0, kRetry = 3, kError = 7 };

/// The header of a frame. It begins at a multiple of 32 bytes, and the payload follows directly.
struct Frame {
  uint32_t bytes;  ///< header, payload and padding; a multiple of 32
  FrameType type;
  uint8_t op;    ///< regs::DmaOp, regs::MaintOp, Answer, or kBytesBehind
  uint8_t tid;   ///< transaction ID of requests and their responses
  uint8_t hops;  ///< hop count of maintenance
  uint32_t source;
  uint32_t dest;
  uint16_t length;   ///< payload bytes, or bytes requested
  uint8_t place;     ///< mailbox (with xmbox) | letter << 6
  uint8_t segment;   ///< number of this segment
  uint8_t segments;  ///< segments of the message: msglen + 1
  uint8_t unused;    ///< zero
  uint16_t ssize;    ///< bytes of all segments but the last
  /// In a segment: a number that differs for successive messages of one {source, place}. Real
  /// packets need no such field, because no segment waits in a link for longer than its letter
  /// rests; here one may, while the card is not stepped.
  uint64_t address;

  /// Clear all fields except `bytes`, which belongs to the ring.
  void clear() {
    static_assert(static_cast<uint8_t>(FrameType::kSkip) == 0);
    std::memset(reinterpret_cast<uint8_t*>(this) + sizeof(bytes), 0, sizeof(Frame) - sizeof(bytes));
  }
  /// Clear all fields except `bytes`, then set these.
  void begin(FrameType new_type, uint32_t from, uint32_t to) {
    clear();
    type = new_type;
    source = from;
    dest = to;
  }
  [[nodiscard]] uint32_t mbox() const { return place & 63u; }
  [[nodiscard]] uint8_t* payload() { return reinterpret_cast<uint8_t*>(this) + sizeof(Frame); }
};
static_assert(sizeof(Frame) == 32);

/// A frame that has arrived. Its writer may be another process, which may change it at any time.
/// The header is a copy, so what is checked is what is used. The payload stays in the ring, and
/// must be read only once.
struct InFrame : Frame {
  const uint8_t* at;  ///< address in the ring

  [[nodiscard]] const uint8_t* payload() const { return at + sizeof(Frame); }
};

/// One message of a kPull.
struct PullPart {
  uint64_t
      address;  ///< address of the bytes in the sender's process, or their offset in the payload
  uint32_t length;
  uint32_t zero;
};
static_assert(sizeof(PullPart) == 16);
inline constexpr uint32_t kPullPartsMax = 64;
inline constexpr uint8_t kBytesBehind = 1;  ///< PullPart::address is an offset in the frame's
                                            ///< payload

inline constexpr uint32_t kFrameAlign = 32;

/// Size of a frame with a given payload.
[[nodiscard]] constexpr uint32_t frame_bytes(uint32_t payload_bytes) {
  return (static_cast<uint32_t>(sizeof(Frame)) + payload_bytes + kFrameAlign - 1) &
         ~(kFrameAlign - 1);
}

/// Length of a message payload on the link: padded with zeros to a multiple of 8.
[[nodiscard]] constexpr uint32_t padded(uint32_t bytes) {
  return (bytes + 7) & ~7u;
}

/// Payload bytes of a frame. @param length Frame::length: it may count bytes requested.
[[nodiscard]] inline uint32_t payload_bytes(FrameType type, uint8_t op, uint32_t length) {
  const auto dma_op = static_cast<regs::DmaOp>(op);
  switch (type) {
    case FrameType::kMessage:
    case FrameType::kSegment:
      return padded(length);
    case FrameType::kRequest:
      if (dma_op == regs::DmaOp::kAtomicCswap) {
        return 2 * length;  // two operands
      }
      return dma_op == regs::DmaOp::kNwrite || dma_op == regs::DmaOp::kNwriteR ||
                     dma_op == regs::DmaOp::kSwrite || dma_op == regs::DmaOp::kAtomicSwap
                 ? length
                 : 0;
    case FrameType::kMaintRequest:
      return static_cast<regs::MaintOp>(op) == regs::MaintOp::kWrite ? length : 0;
    default:
      return type == FrameType::kDoorbell ? 0 : length;
  }
}

/// Whether the payload length fits the frame. Frames from other processes are untrusted.
[[nodiscard]] inline bool whole(const Frame& frame) {
  return frame_bytes(payload_bytes(frame.type, frame.op, frame.length)) <= frame.bytes;
}

/// One answered segment: target_info and status of a type 13 packet.
struct Ack {
  uint8_t place;   ///< mailbox | letter << 6
  uint8_t result;  ///< segment | Answer << 4

  [[nodiscard]] static Ack of(uint32_t place, uint32_t segment, Answer answer) {
    return {static_cast<uint8_t>(place),
            static_cast<uint8_t>(segment | static_cast<uint32_t>(answer) << 4)};
  }
  /// The two bytes as they are sent.
  [[nodiscard]] uint32_t word() const { return place | static_cast<uint32_t>(result) << 8; }
  [[nodiscard]] uint32_t segment() const { return result & 15u; }
  [[nodiscard]] Answer answer() const { return static_cast<Answer>(result >> 4); }
};
static_assert(sizeof(Ack) == 2);

[[nodiscard]] constexpr uint32_t place_of(uint32_t mbox, uint32_t letter) {
  return mbox | letter << 6;
}

}  // namespace rio::model
