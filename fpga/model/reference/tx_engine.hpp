/// @file
/// The transmit side of the message controller: descriptors become messages, answers completions.
#pragma once

#include <vector>

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/transactions.hpp"

namespace rio::model {

class TxEngine {
 public:
  TxEngine(Core& core, Transactions& transactions);

  /// Fetch and send what the pair has posted, as far as letters and room allow.
  void run(Pair& pair);
  /// Look up what kick() needs: it sends for this pair to its last destination. Fast mode. Good
  /// until run() is called, memory has gone, or the pair's rings have changed.
  /// @return false: kick() must not be called.
  [[nodiscard]] bool aim(Pair& pair);
  enum class Kick : uint8_t {
    kNot,            ///< nothing was done, run() is needed
    kSent,           ///< to be counted by the caller: count()
    kSentToSleeper,  ///< the same, and wake() is to be called
  };
  /// Hot. Send what was posted, but only if it is one plain message to that destination, and there
  /// is room at hand. Calls nothing.
  [[nodiscard]] Kick kick();
  /// kick() may have failed for want of room. @return whether there is more now.
  [[nodiscard]] bool find_room() {
    constexpr uint32_t kLongest = frame_bytes(regs::kSegmentBytesMax);
    return !lane_.writer->has_short_room_at_hand(kLongest) &&
           lane_.writer->has_short_room(kLongest);
  }
  void wake() { lane_.writer->wake(); }
  /// So many messages were sent by kick().
  void count(Pair& pair, uint32_t sent) {
    core_.counts.tx_packets += sent;
    pair.tx_outstanding += sent;
  }
  /// Answers to messages.
  void on_acks(const InFrame& frame);
  /// The answer to a run.
  void on_pulled(const InFrame& frame);
  void on_doorbell_answer(Pair& pair, Flow& flow, Transaction& doorbell, Answer answer);
  void on_doorbell_expired(Pair& pair, const Transaction& doorbell, regs::Status status);
  /// Send segments that are still due, first or again.
  void send_due();
  [[nodiscard]] bool due() const { return !due_.empty() && core_.link_up; }
  /// Response time-outs and ends of quarantines.
  void check_timers();
  /// The flow's partner is gone: what was sent to it is in doubt, what was not never will be.
  void lose(Pair& pair, Flow& flow);
  /// What was stamped with `time_ns` was sent now.
  void sent_late(uint64_t time_ns);
  /// The ring is being stopped: what was not fetched is flushed, what flies is not sent again.
  void begin_stop(Pair& pair);
  /// The card was reset: what flew stays in quarantine, nobody is told.
  void forget(Pair& pair);

 private:
  struct Due {
    Pair* pair;
    Flow* flow;
    uint16_t place;
  };

  /// What does not change from one message to the next.
  struct Lane {
    Ring* ring;
    FrameWriter* writer;
    uint8_t* busy;  ///< letters, by mailbox
    TxMsg* msgs;
    uint64_t plain;  ///< first word of a descriptor, but for mailbox and inline
    uint64_t route;  ///< second word of a frame
    uint64_t begin;  ///< bus address where payload may begin, and for how long
    uint64_t begins;
    uintptr_t va_minus_iova;
    uint64_t now_ns;
  };

  /// Fast mode: carry a run of plain messages of one segment straight to a card of this process
  /// that the same thread steps, in direct.cc. @return how many; 0: another way is needed.
  uint32_t direct(Pair& pair, Ring& ring, uint32_t count);
  uint32_t carry(Pair& pair, Ring& ring, uint32_t count, Core& peer);
  /// Send one plain message of one segment, after aim(), in tx_express.cc: the shortest way from a
  /// doorbell to the wire. @return false: another way is needed.
  [[nodiscard]] Kick single();
  /// The same, counted.
  [[nodiscard]] bool send_one(Pair& pair);
  /// Fast mode: send a run of plain messages of one segment to the last destination, in
  /// tx_express.cc. @return how many; 0: launch() has to look at the first.
  uint32_t express(Pair& pair, Ring& ring, uint32_t count);
  /// @return false: the head of the ring waits.
  bool launch(Pair& pair, Ring& ring, const regs::TxDesc& desc);
  bool launch_doorbell(Pair& pair, Ring& ring, const regs::TxDesc& desc);
  [[nodiscard]] bool acceptable(const regs::TxDesc& desc, const regs::TxWide* wide) const;
  [[nodiscard]] int free_letter(const Flow& flow, uint32_t mbox, bool several) const;
  void take_letter(Flow& flow, uint32_t mbox, uint32_t letter, bool several);
  void rest_over(Flow& flow, TxMsg& msg, uint32_t place);
  /// @return false: no room on the wire.
  bool send_segment(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, uint32_t segment);
  /// Fast mode, between processes: launch a run of long messages to one mailbox, which the partner
  /// pulls, in tx_pull.cc. @return how many; 0: launch() has to look at the first.
  uint32_t launch_run(Pair& pair, Ring& ring, uint32_t count);
  [[nodiscard]] uint32_t collect_run(const Ring& ring, uint32_t count, PullRun& run);
  [[nodiscard]] bool send_run(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place);
  void complete_run(Pair& pair, const TxMsg& msg, PullRun& run, uint32_t count,
                    regs::Status status);
  static void revoke(const Flow& flow, TxMsg& msg);
  [[nodiscard]] bool gather(const TxMsg& msg, const Flow& flow, uint32_t place, uint32_t offset,
                            uint32_t len, uint8_t* to);
  void answered(Pair& pair, Flow& flow, uint32_t place, const Ack& ack);
  void settle(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, regs::Status status);
  void finish_doorbell(Pair& pair, const Transaction& doorbell, regs::Status status);
  void finish_unsent(Pair& pair, Ring& ring, const regs::TxDesc& desc, regs::Status status);
  void flush_posted(Pair& pair, regs::Status status);

  Core& core_;
  Transactions& transactions_;
  uint32_t contexts_used_ = 0;
  uint64_t timers_due_ns_ = 0;       // no message can be late before
  uint64_t timers_response_ns_ = 0;  // the time-out that this was reckoned with
  uint8_t letter_mask_;
  const uint64_t tx_unaligned_;  // bits that are 0 in an address
  std::vector<Due> due_;
  Lane lane_{};
};

}  // namespace rio::model
