/// @file
/// The shortest way from a doorbell to the wire: one plain message of one segment, in fast mode.
/// Both the doorbell's hook and the transmit engine take it; tx_express.cc has runs of such
/// messages, tx_engine.cc what is not plain. All keep the same state.
#pragma once

#include <bit>

#include "fpga/model/copy.hpp"
#include "fpga/model/reference/tx_engine.hpp"

namespace rio::model {
namespace plain {

using Control = regs::tx_desc::Control;

/// Control word of a plain message but for its mailbox and whether its bytes are in the descriptor:
/// 256-byte segments.
inline constexpr uint32_t kControl = Control::ssize.put(14);
inline constexpr uint64_t kMboxMask = Control::mbox.mask();
inline constexpr uint64_t kInlineMask = Control::inline_.mask();

/// Bytes 16 to 23 of a Frame: of a message of one segment.
[[nodiscard]] constexpr uint64_t shape(uint64_t length, uint64_t place) {
  return length | place << 16 | 1ull << 32 | static_cast<uint64_t>(regs::kSegmentBytesMax) << 48;
}
static_assert(offsetof(Frame, place) == 18 && offsetof(Frame, segments) == 20 &&
              offsetof(Frame, ssize) == 22);

}  // namespace plain

inline TxEngine::Kick TxEngine::kick() {
  Ring& ring = *lane_.ring;
  // acquire: the descriptor visible after the tail; pairs with Mmio::write32.
  const uint32_t tail = __atomic_load_n(ring.tail_word, __ATOMIC_ACQUIRE);
  if (tail - ring.head != 1) {
    return Kick::kNot;
  }
  ring.tail = tail;
  return single();
}

inline TxEngine::Kick TxEngine::single() {
  Ring& ring = *lane_.ring;
  const uint32_t index = ring.head;
  const uint8_t* const desc = ring.entry(index, 5);
  // As the host wrote them: a load of two words at once would wait for its stores.
  const uint64_t word = pinned(load64(desc));
  const uint64_t cookie_length = load64(desc + 8);
  const uint64_t addr = load64(desc + 16);
  const auto length = static_cast<uint32_t>(cookie_length >> 32);
  // As a number: of a message that is not good the sum points nowhere.
  auto* bytes = reinterpret_cast<const uint8_t*>(lane_.va_minus_iova + addr);
  if ((word & plain::kInlineMask) != 0) [[unlikely]] {
    bytes = desc + 16;
    if (length - 1 >= regs::kInlineBytes) {
      return Kick::kNot;
    }
  } else if (length - 1 >= regs::kSegmentBytesMax || (addr & tx_unaligned_) != 0 ||
             addr - lane_.begin >= lane_.begins) [[unlikely]] {
    return Kick::kNot;
  }
  const uint32_t size = frame_bytes(length);
  FrameWriter& writer = *lane_.writer;
  if ((word & ~(plain::kMboxMask | plain::kInlineMask)) != lane_.plain ||
      !writer.has_short_room_at_hand(size)) [[unlikely]] {
    return Kick::kNot;
  }
  const uint32_t mbox = static_cast<uint32_t>(word >> plain::Control::mbox.lsb) & 63;
  const uint32_t busy = lane_.busy[mbox];
  const uint32_t free = ~busy & letter_mask_;
  if (free == 0) [[unlikely]] {
    return Kick::kNot;
  }
  lane_.busy[mbox] = static_cast<uint8_t>(busy | (free & (0u - free)));
  const uint32_t place = place_of(mbox, static_cast<uint32_t>(std::countr_zero(free)));
  const FrameHead head = {static_cast<uint64_t>(FrameType::kMessage) << 32, lane_.route,
                          plain::shape(length, place), 0};
  const bool sleeps =
      writer.put_short(size, head, [&](uint8_t* at) { copy_first_last(at, bytes, length); });
  // Then what has time: an answer is looked at in a later step.
  TxMsg& msg = lane_.msgs[place];
  store64(reinterpret_cast<uint8_t*>(&msg.desc), word);
  store64(reinterpret_cast<uint8_t*>(&msg.desc.cookie), cookie_length);
  store64(reinterpret_cast<uint8_t*>(&msg.desc.addr), addr);
  msg.desc.aux = reinterpret_cast<const regs::TxDesc*>(desc)->aux;
  msg.since_ns = lane_.now_ns;
  msg.index = index;
  store64(reinterpret_cast<uint8_t*>(&msg.unsent), kTxLife);
  ring.head = index + 1;
  return sleeps ? Kick::kSentToSleeper : Kick::kSent;
}

}  // namespace rio::model
