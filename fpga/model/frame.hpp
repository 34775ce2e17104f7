/// @file
/// The unit that travels between two cards: a header of 32 bytes and a payload. It has the fields
/// of RapidIO packets, but not their bit format.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/tsan.hpp"
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
  /// PullParts, up to kAnnouncedMax. The receiver pulls the bytes out of the sender's process. With
  /// `op` kBytesBehind, for a receiver that may not read the sender's memory: `segments` PullParts,
  /// followed by the bytes. With `op` kBytesMapped all bytes are in memory that the receiver has
  /// mapped, and there are up to kPullPartsMax PullParts.
  kPull,
  /// A kPull or kMapped that its sender has revoked: the bytes are no longer there.
  kRevoked,
  /// An answer to a kPull: the next `ssize` messages were taken. If `op` is kDone, the others
  /// follow, if there are any. Otherwise `op` answers the next one, and the frame is over.
  kPulled,
  /// NREAD or NWRITE_R requests one behind the other, as one: a PullPart has their bytes' number
  /// and, of a write, their address in the sender's process. The answer is a kResponse, which may
  /// be kInPackets, or a kReadable.
  kLongRequest,
  /// The answer to a read by kLongRequest: the bytes may be pulled from where the Readable says.
  kReadable,
  /// A notification of a barrier that pledges, by a wire that loses nothing: `address` has its
  /// information in the low 16 bits, and the epoch in the high 32. It has no transaction ID.
  kPledge,
  /// The answer to a kPledge whose receiver does not pledge: `address` as there, `op` an Answer.
  kPledgeAnswer,
  /// A kMessage of several segments without its bytes: they are at `address` of the sender's
  /// process, in memory that the receiver has mapped.
  kMapped,
};

/// Status of a type 13 response. RIO Part 2 §3.3.3
enum class Answer : uint8_t { kDone = 0, kRetry = 3, kError = 7 };

/// The header of a frame. It begins at a multiple of 32 bytes, and the payload follows directly.
struct Frame {
  uint32_t bytes;  ///< header, payload and padding; a multiple of 32
  FrameType type;
  uint8_t op;    ///< regs::DmaOp, regs::MaintOp, Answer, kBytesBehind, kBytesMapped, or kInPackets
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
/// The payload of a kReadable: where the part lies that was asked for, and a lease of the memory
/// around it, at the RapidIO addresses around that of the part.
struct Readable {
  PullPart part;
  uint64_t before_bytes;
  uint64_t after_bytes;
  uint64_t lease;  ///< number of the lease, of which the part is one, too
};
static_assert(sizeof(Readable) == 40);
/// Most messages that are pulled in one go, and that a kPull with bytes behind it announces.
inline constexpr uint32_t kPullPartsMax = 64;
/// Most messages that a kPull announces. It is more than are pulled in one go, so that the receiver
/// has work while the sender is busy.
inline constexpr uint32_t kAnnouncedMax = 4 * kPullPartsMax;
inline constexpr uint8_t kBytesBehind = 1;  ///< PullPart::address is an offset in the frame's
                                            ///< payload
inline constexpr uint8_t kBytesMapped = 2;  ///< the receiver has mapped all the bytes
/// `op` of the answer to a kLongRequest of which nothing was done: the requests are to be sent one
/// by one.
inline constexpr uint8_t kInPackets = 1;

/// Most bytes of a kLongRequest: the card that pulls them takes them in one step.
inline constexpr uint32_t kLongBytesMax = 64 * regs::kMessageBytesMax;
/// Packets that a kLongRequest counts as. @param length at least 1.
[[nodiscard]] constexpr uint32_t long_packets(uint32_t length) {
  return (length - 1) / regs::kMessageBytesMax + 1;
}

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
    case FrameType::kMapped:
      return 0;
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

/// In a ring, the tag is stored in the upper bits of a frame's `bytes`.
inline constexpr uint32_t kTagShift = 20;
inline constexpr uint32_t kFrameRingBytesMax = 1u << kTagShift;
/// Whether a word, after removing the expected tag, is the `bytes` of a frame. With another tag it
/// is not.
[[nodiscard]] constexpr bool is_frame(uint32_t bytes) {
  return bytes - 1 < kFrameRingBytesMax - 1;
}

/// Keep the compiler from reading a value's memory again, which another process may have changed.
[[nodiscard]] [[gnu::always_inline]] inline uint64_t pinned(uint64_t value) {
  asm("" : "+r"(value));
  return value;
}

/// Load the first eight bytes of a frame: `bytes`, `type` and the fields beside it, without the
/// tag. There is a frame if is_frame() of the lower half. @param tag tag of the position.
[[nodiscard]] inline uint64_t load_frame_word(const uint8_t* frame, uint32_t tag) {
  if constexpr (base::kThreadSanitizer) {  // the writer stores the upper half before it releases
                                           // the lower one
    uint64_t word = 0;
    // acquire: as at the end of the function.
    if (is_frame(__atomic_load_n(reinterpret_cast<const uint32_t*>(frame), __ATOMIC_ACQUIRE) ^
                 tag)) {
      std::memcpy(&word, frame, sizeof(word));
      word ^= tag;
    }
    return word;
  }
  // acquire: the frame is read after its length; pairs with FrameWriter::publish.
  return __atomic_load_n(reinterpret_cast<const uint64_t*>(frame), __ATOMIC_ACQUIRE) ^ tag;
}

/// Whether a frame has not been revoked. Called after the bytes that it points to were read, to
/// validate them. @param type that it had.
[[nodiscard]] inline bool is_still(FrameType type, const uint8_t* frame) {
  // acquire: the check comes after the bytes were read; pairs with the fence in
  // FrameWriter::revoke().
  std::atomic_thread_fence(std::memory_order_acquire);
  return __atomic_load_n(frame + offsetof(Frame, type), __ATOMIC_ACQUIRE) ==
         static_cast<uint8_t>(type);
}
/// Whether a frame of any type was revoked; called as is_still().
[[nodiscard]] inline bool is_revoked(const uint8_t* frame) {
  return is_still(FrameType::kRevoked, frame);
}
/// is_still() of a kPull.
[[nodiscard]] inline bool is_pull(const uint8_t* frame) {
  return is_still(FrameType::kPull, frame);
}

}  // namespace rio::model
