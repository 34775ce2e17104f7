/// @file
/// Defines a plain message, as a descriptor, a frame and a completion: by address or inline, of
/// 256-byte segments, without order, priority or a second half. The fast paths handle only plain
/// messages; reference/ handles all others.
#pragma once

#include <algorithm>
#include <bit>

#include "base/tsan.hpp"
#include "fpga/model/copy.hpp"
#include "fpga/model/core/core.hpp"

namespace rio::model::plain {

using Control = regs::tx_desc::Control;

inline constexpr uint32_t kFull = regs::kSegmentBytesMax;
/// Control word of a plain message, without its mailbox and its inline bit.
inline constexpr uint32_t kControl = Control::ssize.put(14);
inline constexpr uint64_t kMboxMask = Control::mbox.mask();
inline constexpr uint64_t kInlineMask = Control::inline_.mask();

/// A descriptor, loaded word by word as the host wrote it: a load of two words would stall until
/// both stores have left the store buffer.
struct Message {
  uint64_t word;           ///< control word and destID
  uint64_t cookie_length;  ///< length in the upper half
  uint64_t addr;
  const uint8_t* bytes;  ///< its payload; an invalid pointer if the message is not plain

  [[nodiscard]] uint32_t length() const { return static_cast<uint32_t>(cookie_length >> 32); }
  [[nodiscard]] uint32_t mbox() const {
    return static_cast<uint32_t>(word >> Control::mbox.lsb) & 63;
  }
};

/// Decodes descriptors of plain messages to one destination. Valid as long as the window of host
/// memory.
class Decoder {
 public:
  Decoder() = default;
  /// @param host window that payloads must be in.
  Decoder(const HostWindow& host, uint32_t dest_id)
      : word_(kControl | static_cast<uint64_t>(dest_id) << 32),
        begin_(host.iova),
        begins_(host.len_bytes < kFull ? 0 : host.len_bytes - kFull + 1),
        len_bytes_(host.len_bytes),
        va_(reinterpret_cast<uintptr_t>(host.va)),
        unaligned_(pinned(kTxUnaligned)) {}

  /// Hot. Decode a message of one segment, by address or inline. @return false: it is not plain, or
  /// not in the window.
  [[nodiscard]] [[gnu::always_inline]] bool decode(const uint8_t* desc, Message* out) const {
    if (decode_by_address<kFull>(desc, out)) [[likely]] {
      return true;
    }
    out->bytes = desc + 16;
    return (out->word & ~kMboxMask) == (word_ | kInlineMask) &&
           out->length() - 1 < regs::kInlineBytes;
  }
  /// Hot. Decode a message by address. If it is longer than a segment, check holds(), too. @tparam
  /// kMost most bytes. @return false: it is another kind, or its first segment is not in the
  /// window.
  template <uint32_t kMost>
  [[nodiscard]] [[gnu::always_inline]] bool decode_by_address(const uint8_t* desc,
                                                              Message* out) const {
    out->word = load64(desc);
    out->cookie_length = load64(desc + 8);
    out->addr = load64(desc + 16);
    const uint64_t offset = out->addr - begin_;
    // Computed as an integer: for an invalid message the sum is no valid pointer.
    out->bytes = reinterpret_cast<const uint8_t*>(va_ + offset);
    return (out->word & ~kMboxMask) == word_ && out->length() - 1 < kMost && offset < begins_ &&
           (out->addr & unaligned_) == 0;
  }
  /// Whether all of a message is in the window; to be checked if it is longer than a segment.
  [[nodiscard]] bool holds(const Message& message) const {
    return message.addr - begin_ + message.length() <= len_bytes_;
  }

 private:
  uint64_t word_ = 0;    // control word and destID of a plain message, without mailbox and inline
  uint64_t begin_ = 0;   // first bus address of the window
  uint64_t begins_ = 0;  // bytes from there at which a segment may begin and still be read in full
  uint64_t len_bytes_ = 0;  // length of the window
  uintptr_t va_ = 0;        // address of the window in this process
  uint64_t unaligned_ = 0;  // kTxUnaligned, in a register
};

/// Number of segments of a message of `length_bytes`, at least 1.
[[nodiscard]] constexpr uint32_t segments_of(uint32_t length_bytes) {
  return (length_bytes + kFull - 1) / kFull;
}

/// Letters that are busy for messages of several segments, one byte for each of the four mailboxes,
/// and above them whatever. A letter is busy there if it is busy in any mailbox with the same low
/// bits. @param busy_letters Flow::busy.
[[nodiscard]] inline uint64_t busy_for_several(const uint8_t* busy_letters) {
  uint64_t busy = 0;
  for (uint32_t m = 0; m < regs::kMailboxes; m += 8) {
    busy |= load64(busy_letters + m);
  }
  return busy | busy >> 32;
}
/// The lowest free letter for a message of several segments; at least the number of letters if none
/// is. @param mbox below kMultiMailboxes.
[[nodiscard]] inline uint32_t letter_for_several(const uint8_t* busy_letters, uint32_t mbox) {
  return static_cast<uint32_t>(
      std::countr_one(static_cast<uint8_t>(busy_for_several(busy_letters) >> 8 * mbox)));
}

/// Bytes 16 to 23 of the Frame of a message of one segment.
[[nodiscard]] constexpr uint64_t shape(uint64_t length, uint64_t place) {
  return length | place << 16 | 1ull << 32 | static_cast<uint64_t>(kFull) << 48;
}
static_assert(offsetof(Frame, place) == 18 && offsetof(Frame, segments) == 20 &&
              offsetof(Frame, ssize) == 22);

/// Bytes 19 to 23 of such a Frame: segment 0 of 1, ssize 256.
inline constexpr uint64_t kOneSegment = shape(0, 0) >> 24;

/// Bytes 16 to 23 of the Frame of a whole message of `segments` segments.
[[nodiscard]] constexpr uint64_t shape_of_several(uint64_t length, uint64_t segments,
                                                  uint64_t place) {
  return shape(length, place) ^ (segments ^ 1) << 32;
}

/// First eight bytes of the Frame of a whole message, without the ring's tag.
[[nodiscard]] constexpr uint64_t kind_of(uint32_t length) {
  return frame_bytes(length) | static_cast<uint64_t>(FrameType::kMessage) << 32;
}

/// Shortest message, or first message of a run, of which only the address is sent if the partner
/// has mapped it: the lines of the ring are nearer than those of memory that a host fills from end
/// to end.
inline constexpr uint32_t kMappedBytesMin = 1024;

/// First eight bytes of the Frame of a message whose bytes the receiver has mapped, without the
/// ring's tag.
inline constexpr uint64_t kMappedKind = sizeof(Frame) | static_cast<uint64_t>(FrameType::kMapped)
                                                            << 32;

/// Source and destination: bytes 8 to 15 of a Frame, and bytes 0 to 7 of a completion.
[[nodiscard]] constexpr uint64_t route(uint32_t source, uint32_t dest) {
  return source | static_cast<uint64_t>(dest) << 32;
}

/// Record a message that is in flight as one segment.
[[gnu::always_inline]] inline void note(TxMsg& msg, const Message& message, const uint8_t* desc,
                                        uint32_t index, uint64_t now_ns) {
  store64(reinterpret_cast<uint8_t*>(&msg.desc), message.word);
  store64(reinterpret_cast<uint8_t*>(&msg.desc.cookie), message.cookie_length);
  store64(reinterpret_cast<uint8_t*>(&msg.desc.addr), message.addr);
  msg.desc.aux = reinterpret_cast<const regs::TxDesc*>(desc)->aux;
  msg.since_ns = now_ns;
  msg.index = index;
  store64(reinterpret_cast<uint8_t*>(&msg.unsent), kTxLife);
}

/// Whether a message that is not in flight as one segment is in flight as a whole of several
/// segments, and was never refused. @param life last eight bytes of its TxMsg.
[[nodiscard]] inline bool is_whole_of_several(uint64_t life) {
  constexpr uint32_t kLsb = 8 * offsetof(TxLife, segments);
  return ((life ^ kTxLife) & ~(uint64_t{0xFF} << kLsb)) == 0 &&
         (life >> kLsb & 0xFF) - 2 <= regs::kSegmentsMax - 2;
}

/// Write a completion of the transmit ring. @param last_word time and status.
[[gnu::always_inline]] inline void complete_tx(uint8_t* cpl, uint32_t cookie, uint32_t index,
                                               uint64_t last_word) {
  store32(cpl, cookie);
  store32(cpl + 4, index);
  // release: the completion visible before its last word; pairs with load_completion.
  base::tsan_release(cpl + 12);
  __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 8), last_word, __ATOMIC_RELEASE);
}

/// Complete messages of adjoining entries that were delivered. @param cookie_of called with the
/// number of a message, from 0 on: its cookie.
template <class CookieOf>
inline void complete_run(Ring& ring, uint32_t first, uint32_t count, uint32_t time,
                         const CookieOf& cookie_of) {
  constexpr uint32_t kMost = regs::tx_cpl::Status::more.max() + 1;
  for (uint32_t done = 0; done != count;) {
    const uint32_t reported = ring.cumulative ? std::min(count - done, kMost) : 1;
    done += reported;
    const uint32_t last = regs::tx_cpl::Status::more.put(reported - 1) | ring.phase();
    complete_tx(ring.cbase + (ring.cidx & ring.cmask) * sizeof(regs::TxCpl), cookie_of(done - 1),
                first + done - 1, time | uint64_t{last} << 32);
    ++ring.cidx;
  }
}

/// The fields that all completions of a run in the shared queue have in common.
struct Completion {
  uint64_t route;
  uint64_t time;  // `time` and `last_word` use the upper half
  uint64_t last_word;
  uint32_t map_entry;

  /// Write the completion of a message whose payload has landed. @tparam brief in the short format.
  /// @param bytes its padded length.
  template <bool brief>
  [[gnu::always_inline]] void write(uint8_t* cpl, uint32_t bytes, uint32_t segments, uint32_t place,
                                    uint32_t index, uint32_t arrival) const {
    if constexpr (brief) {
      constexpr uint32_t kArrivalLsb = 32 + regs::shared_short_cpl::Status::arrival.lsb;
      constexpr uint64_t kArrivalMax = regs::shared_short_cpl::Status::arrival.max();
      store64(cpl, static_cast<uint32_t>(route) |
                       uint64_t{short_place(bytes, segments, place, map_entry)} << 32);
      base::tsan_release(cpl + 12);
      __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 8),
                       last_word | index | (arrival & kArrivalMax) << kArrivalLsb,
                       __ATOMIC_RELEASE);
      return;
    }
    store64(cpl, route);
    store32(cpl + 8, bytes | segments << 16 | place << 24);
    store32(cpl + 12, index);
    store64(cpl + 16, arrival | time);
    // release: payload and completion visible before the last word; pairs with load_completion.
    base::tsan_release(cpl + 28);
    __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 24), last_word, __ATOMIC_RELEASE);
  }
};

/// Complete the next entry of a ring, whose message has landed. @param index the ring's head.
/// @param bytes padded length.
[[gnu::always_inline]] inline void end_entry(Core& core, Pair& pair, Ring& ring,
                                             const Completion& completion, uint32_t index,
                                             uint32_t bytes, uint32_t segments, uint32_t place) {
  uint8_t* const cpl = ring.cbase + (ring.cidx & ring.cmask) * ring.cpl_bytes;
  const uint32_t arrival = pair.arrivals++;
  if (ring.brief) {
    completion.write<true>(cpl, bytes, segments, place, index, arrival);
  } else {
    completion.write<false>(cpl, bytes, segments, place, index, arrival);
  }
  ++ring.cidx;
  ring.head = index + 1;
  ++core.counts.rx_packets;
}

/// Bytes 8 to 23 of the next frame of a ring, which its sender may overwrite: each word is read
/// once, so that exactly the value is used that was checked.
struct Arrived {
  uint64_t route;
  uint64_t shape;

  [[nodiscard]] static Arrived read(const uint8_t* at) {
    return {pinned(load64(at + 8)), pinned(load64(at + 16))};
  }
  [[nodiscard]] uint32_t length() const { return static_cast<uint32_t>(shape) & 0xFFFF; }
  [[nodiscard]] uint32_t place() const { return static_cast<uint32_t>(shape >> 16) & 0xFF; }
  [[nodiscard]] uint32_t source() const { return static_cast<uint32_t>(route); }
};

/// Write the payload of a message of one segment. @param bytes padded length. @param full the card
/// has the landing quirk.
[[gnu::always_inline]] inline void land_plain(uint8_t* to, const uint8_t* from, uint32_t bytes,
                                              bool full) {
  if (full) [[likely]] {
    land_full_256(to, from, bytes);
  } else {
    copy_bytes(to, from, bytes);
  }
}

}  // namespace rio::model::plain
