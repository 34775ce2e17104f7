/// @file
/// The transmit side in fast mode: chooses the fastest path that posted messages may take. The
/// fastest one from a doorbell to the wire is a kick: one plain message of one segment.
#pragma once

#include "fpga/model/fast/direct.hpp"
#include "fpga/model/fast/plain.hpp"
#include "fpga/model/fast/tx_pull.hpp"
#include "fpga/model/fast/tx_several.hpp"

namespace rio::model {

class FastTx {
 public:
  /// @param tx handles messages that are not plain, and answers to them.
  FastTx(Core& core, TxEngine& tx) : core_(core), tx_(tx) {}

  /// The pair whose messages were sent last; before the first message, the first pair.
  [[nodiscard]] Pair& pair() const { return *pair_; }

  /// Fetch and send posted messages, as far as letters and room allow.
  void run(Pair& pair);
  /// Process answers to messages; those to plain messages in runs.
  void on_acks(Flow& flow, const InFrame& frame);
  void on_pulled(Flow& flow, const InFrame& frame) { pull_.on_pulled(flow, frame); }

  /// Prepare kick() to send for this pair to its last destination. Valid until another path sends
  /// for the pair, memory was unmapped, or the pair's rings have changed. @return false: kick()
  /// must not be called.
  [[nodiscard]] bool aim(Pair& pair);
  /// A kick will probably follow soon: fetch the cache line that it will write, which the reader
  /// polls. Only if kick() may be called.
  void prepare() const { lane_.writer->prepare(); }
  enum class Kick : uint8_t {
    kNot,            ///< nothing was done; use another path
    kSent,           ///< sent; the caller counts it with count_kicks()
    kSentToSleeper,  ///< sent; the caller must also call wake()
  };
  /// Hot. Send what was posted, but only if it is one plain message to that destination and room is
  /// known to be free. Calls no function.
  [[nodiscard]] Kick kick();
  /// Hot. Like kick(), for one plain message of several segments. Wakes the reader itself. @return
  /// kNot or kSent.
  [[nodiscard]] Kick kick_several();
  /// Look for room, after kick() has returned kNot. @return whether there is more room now.
  [[nodiscard]] bool find_room() {
    return !lane_.writer->has_short_room_at_hand(kLongest) &&
           lane_.writer->has_short_room(kLongest);
  }
  /// Send posted messages of several segments to the last destination, as far as possible. @param
  /// count posted entries.
  void send_several(Pair& pair, Ring& ring, uint32_t count);
  /// Whether the head of the ring is such a message, and waits only for a letter.
  [[nodiscard]] bool waits_for_letter(const Pair& pair, const Ring& ring) const {
    return several_.waits_for_letter(pair, ring, ring.posted());
  }
  void wake() { lane_.writer->wake(); }
  /// Count messages that kick() has sent.
  void count_kicks(Pair& pair, uint32_t sent) {
    core_.counts.tx_packets += sent;
    pair.rings[kTxRing].outstanding += sent;
  }

 private:
  static constexpr uint32_t kLongest = frame_bytes(regs::kSegmentBytesMax);

  /// The values that are the same for all messages.
  struct SendSetup {
    Flow* flow;
    Ring* ring;
    FrameWriter* writer;
    uint8_t* busy;  ///< busy letters, by mailbox
    TxMsg* msgs;
    plain::Decoder decoder;
    uint64_t route;  ///< second word of a frame
    uint64_t now_ns;
  };

  [[nodiscard]] Kick single();
  /// Send the only posted message of the pair. @return false: use another path.
  [[nodiscard]] bool send_single(Pair& pair);
  /// Send a run of plain messages of one segment to the last destination, through the ring between
  /// two cards. The reader sees it after FrameWriter::publish(). @param count posted entries.
  /// @return messages sent; 0: use another path for the first one.
  [[nodiscard]] uint32_t send_run(Pair& pair, Ring& ring, uint32_t count);

  Core& core_;
  TxEngine& tx_;
  Pair* pair_ = &core_.pairs[0];
  Direct direct_{core_};
  TxPull pull_{core_, tx_};
  TxSeveral several_{core_, tx_};
  uint8_t letter_mask_ = static_cast<uint8_t>((1u << core_.config.letters) - 1);
  SendSetup lane_{};
};

inline FastTx::Kick FastTx::kick() {
  Ring& ring = *lane_.ring;
  // acquire: the descriptor visible after the tail; pairs with Mmio::write32.
  const uint32_t tail = __atomic_load_n(ring.tail_word, __ATOMIC_ACQUIRE);
  if (tail - ring.head != 1) {
    return Kick::kNot;
  }
  ring.tail = tail;
  return single();
}

inline FastTx::Kick FastTx::single() {
  Ring& ring = *lane_.ring;
  const uint32_t index = ring.head;
  const uint8_t* const desc = ring.entry(index, 5);
  plain::Message message;
  if (!lane_.decoder.decode(desc, &message)) [[unlikely]] {
    return Kick::kNot;
  }
  const uint32_t length = message.length();
  const uint32_t size = frame_bytes(length);
  FrameWriter& writer = *lane_.writer;
  const uint32_t mbox = message.mbox();
  const uint32_t busy = lane_.busy[mbox];
  const uint32_t free = ~busy & letter_mask_;
  if (free == 0 || !writer.has_short_room_at_hand(size)) [[unlikely]] {
    return Kick::kNot;
  }
  lane_.busy[mbox] = static_cast<uint8_t>(busy | (free & (0u - free)));
  const uint32_t place = place_of(mbox, static_cast<uint32_t>(std::countr_zero(free)));
  const FrameHead head = {static_cast<uint64_t>(FrameType::kMessage) << 32, lane_.route,
                          plain::shape(length, place), 0};
  const bool sleeps = writer.put_short(
      size, head, [&](uint8_t* at) { copy_first_last(at, message.bytes, length); });
  // The bookkeeping can follow: answers are processed only in a later step.
  plain::note(lane_.msgs[place], message, desc, index, lane_.now_ns);
  ring.head = index + 1;
  return sleeps ? Kick::kSentToSleeper : Kick::kSent;
}

}  // namespace rio::model
