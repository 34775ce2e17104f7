/// @file
/// What a plain message is, in its descriptor, as a frame and as a completion: one by address or
/// inline, of 256-byte segments, without order, priority or a second half. The short ways look for
/// nothing else; what is not plain goes the way of reference/.
#pragma once

#include <bit>

#include "base/tsan.hpp"
#include "fpga/model/copy.hpp"
#include "fpga/model/core/core.hpp"

namespace rio::model::plain {

using Control = regs::tx_desc::Control;

inline constexpr uint32_t kFull = regs::kSegmentBytesMax;
/// Control word of a plain message but for its mailbox and whether its bytes are in the descriptor.
inline constexpr uint32_t kControl = Control::ssize.put(14);
inline constexpr uint64_t kMboxMask = Control::mbox.mask();
inline constexpr uint64_t kInlineMask = Control::inline_.mask();

/// A descriptor, word by word as the host wrote it: a load of two at once would wait for its
/// stores.
struct Message {
  uint64_t word;           ///< control word and destID
  uint64_t cookie_length;  ///< length in the upper half
  uint64_t addr;
  const uint8_t* bytes;  ///< its payload; of a message that is not plain it points nowhere

  [[nodiscard]] uint32_t length() const { return static_cast<uint32_t>(cookie_length >> 32); }
  [[nodiscard]] uint32_t mbox() const {
    return static_cast<uint32_t>(word >> Control::mbox.lsb) & 63;
  }
};

/// Decodes descriptors of plain messages to one destination. Good as long as the window of host
/// memory is.
class Decoder {
 public:
  Decoder() = default;
  /// @param host where payloads may be read. @param addr_log2 what their addresses are multiples
  /// of.
  Decoder(const HostWindow& host, uint32_t dest_id, uint32_t addr_log2)
      : word_(kControl | static_cast<uint64_t>(dest_id) << 32),
        begin_(host.iova),
        begins_(host.len_bytes < kFull ? 0 : host.len_bytes - kFull + 1),
        len_bytes_(host.len_bytes),
        va_(reinterpret_cast<uintptr_t>(host.va)),
        unaligned_(pinned((1ull << addr_log2) - 1)) {}

  /// Hot. A message of one segment, by address or inline.
  /// @return false: it is not plain, or the window does not hold it.
  [[nodiscard]] [[gnu::always_inline]] bool decode(const uint8_t* desc, Message* out) const {
    if (decode_by_address<kFull>(desc, out)) [[likely]] {
      return true;
    }
    out->bytes = desc + 16;
    return (out->word & ~kMboxMask) == (word_ | kInlineMask) &&
           out->length() - 1 < regs::kInlineBytes;
  }
  /// Hot. A message by address. @tparam kMost bytes. Of one that is longer than a segment, holds()
  /// is to be asked. @return false: it is another, or the window does not hold its first segment.
  template <uint32_t kMost>
  [[nodiscard]] [[gnu::always_inline]] bool decode_by_address(const uint8_t* desc,
                                                              Message* out) const {
    out->word = load64(desc);
    out->cookie_length = load64(desc + 8);
    out->addr = load64(desc + 16);
    const uint64_t offset = out->addr - begin_;
    // As a number: of a message that is not good the sum points nowhere.
    out->bytes = reinterpret_cast<const uint8_t*>(va_ + offset);
    return (out->word & ~kMboxMask) == word_ && out->length() - 1 < kMost &&
           (out->addr & unaligned_) == 0 && offset < begins_;
  }
  /// Whether the window holds all of a message that is longer than a segment.
  [[nodiscard]] bool holds(const Message& message) const {
    return message.addr - begin_ + message.length() <= len_bytes_;
  }

 private:
  uint64_t word_ = 0;       // but for mailbox and inline
  uint64_t begin_ = 0;      // bus address where payload may begin, and for how long: what is of one
  uint64_t begins_ = 0;     // segment may be read in full
  uint64_t len_bytes_ = 0;  // of the window
  uintptr_t va_ = 0;        // of it
  uint64_t unaligned_ = 0;  // bits that are 0 in an address
};

/// Bytes 16 to 23 of a Frame: of a message of one segment.
[[nodiscard]] constexpr uint64_t shape(uint64_t length, uint64_t place) {
  return length | place << 16 | 1ull << 32 | static_cast<uint64_t>(kFull) << 48;
}
static_assert(offsetof(Frame, place) == 18 && offsetof(Frame, segments) == 20 &&
              offsetof(Frame, ssize) == 22);

/// Bytes 19 to 23 of it: segment 0 of 1, ssize 256.
inline constexpr uint64_t kOneSegment = shape(0, 0) >> 24;

/// First eight bytes of a Frame of such a message, without a ring's tag.
[[nodiscard]] constexpr uint64_t kind_of(uint32_t length) {
  return frame_bytes(length) | static_cast<uint64_t>(FrameType::kMessage) << 32;
}

/// Bytes 8 to 15 of a Frame, and 0 to 7 of a completion: source and destination.
[[nodiscard]] constexpr uint64_t route(uint32_t source, uint32_t dest) {
  return source | static_cast<uint64_t>(dest) << 32;
}

/// Note that a message flies as one segment.
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

/// Write a completion of the transmit ring. @param last_word time and status.
[[gnu::always_inline]] inline void complete_tx(uint8_t* cpl, uint32_t cookie, uint32_t index,
                                               uint64_t last_word) {
  store32(cpl, cookie);
  store32(cpl + 4, index);
  // release: the completion before its last word; pairs with dma_load_last_word.
  base::tsan_release(cpl + 12);
  __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 8), last_word, __ATOMIC_RELEASE);
}

/// The fields that all completions of a run in the shared queue have in common.
struct Completion {
  uint64_t route;
  uint64_t time;  // both in the upper half
  uint64_t last_word;

  /// Of a message whose payload has landed. @param bytes of it, padded.
  [[gnu::always_inline]] void write(uint8_t* cpl, uint32_t bytes, uint32_t segments, uint32_t place,
                                    uint32_t index, uint32_t arrival) const {
    store64(cpl, route);
    store32(cpl + 8, bytes | segments << 16 | place << 24);
    store32(cpl + 12, index);
    store64(cpl + 16, arrival | time);
    // release: payload and completion before the last word; pairs with dma_load_last_word.
    base::tsan_release(cpl + 28);
    __atomic_store_n(reinterpret_cast<uint64_t*>(cpl + 24), last_word, __ATOMIC_RELEASE);
  }
};

/// Payload of a message of one segment, padded to `bytes`. @param full the card's quirk.
[[gnu::always_inline]] inline void land_plain(uint8_t* to, const uint8_t* from, uint32_t bytes,
                                              bool full) {
  if (full) [[likely]] {
    land_full_256(to, from, bytes);
  } else {
    copy_bytes(to, from, bytes);
  }
}

}  // namespace rio::model::plain
