/// @file
/// The transmit side of the message controller, segment by segment: descriptors become messages,
/// answers completions. docs/card.md, Sending
#pragma once

#include <vector>

#include "fpga/model/core/core.hpp"
#include "fpga/model/reference/doorbell_engine.hpp"

namespace rio::model {

/// How messages travel that do not go segment by segment (TxMsg::whole): as one unit with one
/// answer, one message or a run of them. Implemented in fast/; unused in exact mode.
class UnitWay {
 public:
  virtual ~UnitWay() = default;
  /// Send the unit, first or again. @return false: no room on the wire.
  virtual bool send(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place) = 0;
  /// Complete those messages of a run that are not completed.
  virtual void end_run(Pair& pair, Flow& flow, const TxMsg& msg, uint32_t place,
                       regs::Status status) = 0;
  /// The memory of a message that is to be pulled will be the host's again.
  virtual void revoke(const Flow& flow, TxMsg& msg) = 0;
};

class TxEngine {
 public:
  TxEngine(Core& core, DoorbellEngine& doorbells);

  /// To be called before anything is sent. @param units outlives this.
  void use(UnitWay* units) { units_ = units; }

  /// Fetch and send what the pair has posted, as far as letters and room allow.
  void run(Pair& pair);
  /// Answers to segments.
  void on_acks(const InFrame& frame);
  /// Send segments that are still due, first or again.
  void send_due();
  [[nodiscard]] bool due() const { return !due_.empty() && core_.link_up; }
  /// Response time-outs and ends of quarantines.
  void check_timers();
  /// The flow's partner is gone: what was sent to it is in doubt, what was not never will be.
  void lose(Pair& pair, Flow& flow);
  /// Frames that were stamped with `time_ns` were sent just now.
  void sent_late(uint64_t time_ns);
  /// The ring is being stopped: what was not fetched is flushed, what flies is not sent again.
  void begin_stop(Pair& pair) { flush_posted(pair, regs::Status::kFlushed); }
  /// The card was reset: letters in flight stay in quarantine, without a completion.
  void forget(Pair& pair);

  // Used by the short ways of fast/.
  /// Look at the tail of the transmit ring. @return entries that may be fetched now.
  [[nodiscard]] uint32_t fetchable(Pair& pair) {
    const uint32_t count = core_.look_at_tail(pair, kTxRing);
    if (count != 0 && !core_.link_up) [[unlikely]] {
      flush_posted(pair, regs::Status::kLinkDown);
      return 0;
    }
    return count;
  }
  /// Fetch the head of the ring and begin to send it. @return false: it waits.
  [[nodiscard]] bool launch(Pair& pair, Ring& ring);
  /// A letter for a message to this mailbox. @param several it has several segments.
  /// @return -1: none is free.
  [[nodiscard]] int free_letter(const Flow& flow, uint32_t mbox, bool several) const;
  [[nodiscard]] bool contexts_full() const { return contexts_used_ >= core_.config.tx_contexts; }
  /// A message, or a run, flies from now on. Takes its letter and its context.
  TxMsg& begin(Flow& flow, uint32_t place, const regs::TxDesc& desc, uint32_t index,
               uint32_t segments, bool whole);
  /// Leave unsent segments to send_due().
  void send_later(Pair& pair, Flow& flow, uint32_t place) {
    due_.push_back({&pair, &flow, static_cast<uint16_t>(place)});
  }
  /// Read a message's bytes. @return false: they cannot be read.
  [[nodiscard]] bool gather(const TxMsg& msg, const Flow& flow, uint32_t place, uint32_t offset,
                            uint32_t len, uint8_t* to);
  /// One segment, or unit, was answered.
  void answered(Pair& pair, Flow& flow, uint32_t place, const Ack& ack);
  /// A message, or a run, is over.
  void end_message(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, regs::Status status);

 private:
  struct Due {
    Pair* pair;
    Flow* flow;
    uint16_t place;
  };

  [[nodiscard]] bool launch_doorbell(Pair& pair, Ring& ring, const regs::TxDesc& desc);
  static void take_letter(Flow& flow, uint32_t mbox, uint32_t letter, bool several);
  static void rest_over(Flow& flow, TxMsg& msg, uint32_t place);
  [[nodiscard]] bool gather_pieces(const TxMsg& msg, const regs::TxWide& wide, uint32_t offset,
                                   uint32_t len, uint8_t* to);
  /// @return false: no room on the wire.
  bool send_segment(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, uint32_t segment);
  void send_unsent(const Due& due, TxMsg& msg);
  void refused(Pair& pair, Flow& flow, TxMsg& msg, uint32_t place, uint16_t bit);
  void check_timer(Pair& pair, Flow& flow, uint32_t place);
  void finish_unsent(Ring& ring, const regs::TxDesc& desc, regs::Status status);
  void flush_posted(Pair& pair, regs::Status status);

  Core& core_;
  DoorbellEngine& doorbells_;
  UnitWay* units_ = nullptr;
  uint32_t contexts_used_ = 0;
  uint64_t timers_due_ns_ = 0;       // no message can be late before
  uint64_t timers_response_ns_ = 0;  // the time-out that this was reckoned with
  uint8_t letter_mask_;
  std::vector<Due> due_;
};

}  // namespace rio::model
