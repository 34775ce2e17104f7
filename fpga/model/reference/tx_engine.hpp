/// @file
/// The transmit side of the message controller, segment by segment: turns descriptors into
/// messages, and answers into completions. docs/card.md, Sending
#pragma once

#include <vector>

#include "fpga/model/core/core.hpp"
#include "fpga/model/core/transactions.hpp"

namespace rio::model {

/// Sends runs (PullRun), each as one frame with one answer. Implemented in fast/; there are none in
/// exact mode.
class RunWay {
 public:
  virtual ~RunWay() = default;
  /// Send the rest of a run, for the first time or again. @return false: no room on the wire.
  [[nodiscard]] virtual bool send(Flow& flow, TxMsg& msg) = 0;
  /// Complete the remaining messages of a run.
  virtual void end(Flow& flow, const TxMsg& msg, regs::Status status) = 0;
  /// The memory of a run goes back to the host: the partner must not use it any more.
  virtual void revoke(const Flow& flow, TxMsg& msg) = 0;
};

class TxEngine {
 public:
  TxEngine(Core& core, Transactions& transactions) : core_(core), transactions_(transactions) {}

  /// Set the implementation for runs; call it before anything is sent. @param runs outlives this.
  void use(RunWay* runs) { runs_ = runs; }

  /// Fetch and send posted messages, as far as letters and room allow.
  void run(Pair& pair);
  /// Send entries whose slots are whole. @param pair its transmit ring runs.
  void run_slots(Pair& pair);
  /// Whether the ring's next entry is there, in the ring or in a slot.
  [[nodiscard]] bool has_posted(const Ring& ring) const;
  /// Process answers to segments.
  void on_acks(Flow& flow, const InFrame& frame);
  /// A doorbell has ended.
  void on_end(Ring& ring, const Transaction& doorbell, regs::Status status);
  /// Send pending segments, for the first time or again, and begin waiting entries.
  void send_due();
  [[nodiscard]] bool due() const { return !due_.empty() && core_.link_up; }
  /// Check response time-outs and ends of quarantines.
  void check_timers();
  /// The flow's partner is gone: messages sent to it are in doubt, unsent ones end with kLinkDown.
  void lose(Flow& flow);
  /// Begin to stop the ring: entries that have not been sent are flushed, messages in flight are
  /// not sent again.
  void begin_stop(Ring& ring);
  /// The link has gone down: entries that wait inside the card end with kLinkDown.
  void link_down();
  /// The pair was reset: its letters in flight stay in quarantine, without a completion.
  void forget(Pair& pair);

  // Used by fast/.
  /// Read the tail of the transmit ring. @return entries that may be fetched now.
  [[nodiscard]] uint32_t fetchable(Ring& ring) {
    const uint32_t count = core_.poll_tail(ring);
    if (count != 0 && !core_.link_up) [[unlikely]] {
      flush_posted(ring, regs::Status::kLinkDown);
      return 0;
    }
    return count;
  }
  /// Fetch the head of the ring, and begin to send it or let it wait inside the card. @return
  /// false: it must wait in the ring.
  [[nodiscard]] bool launch(Pair& pair, Ring& ring);
  /// A free letter for a message to this mailbox. @param several the message has several segments.
  /// @return -1: none.
  [[nodiscard]] int free_letter(const Flow& flow, uint32_t mbox, bool several) const;
  /// All letters of the card, one bit each.
  [[nodiscard]] uint8_t letter_mask() const { return letter_mask_; }
  [[nodiscard]] bool contexts_full() const { return contexts_used_ >= core_.config.tx_contexts; }
  /// Begin a message or a run: takes its letter and a context.
  TxMsg& begin(Flow& flow, uint32_t place, const regs::TxDesc& desc, uint32_t index,
               uint32_t segments, bool whole);
  /// A whole message of several segments, which is filled in, begins: takes its letter and a
  /// context. The caller counts it as outstanding.
  void begin_several(Flow& flow, const TxMsg& msg) {
    flip_letter(flow, msg);
    ++contexts_used_;
    ++flow.pair.no_flight;
  }
  /// A message of begin_several() was delivered: free its letter and its context. The caller
  /// completes it.
  void end_several(Flow& flow, TxMsg& msg) {
    msg.state = TxMsg::kFree;
    msg.pull_at = 0;
    flip_letter(flow, msg);
    --contexts_used_;
    --flow.pair.no_flight;
  }
  /// Leave unsent segments to send_due().
  void send_later(Flow& flow, TxMsg& msg) { due_.push_back({&flow, &msg}); }
  /// Process the answer to one segment or unit.
  void answered(Flow& flow, const Ack& ack);
  /// A segment, or the rest of a run, was answered RETRY: send it again later. @param bit of the
  /// segment; 1 of a run.
  void refused(Flow& flow, TxMsg& msg, uint16_t bit);
  /// End a message or a run with a completion.
  void end_message(Flow& flow, TxMsg& msg, regs::Status status);

 private:
  struct Due {
    Flow* flow;
    TxMsg* msg;  // null: the flow's waiting entries
  };

  /// Begin the message or doorbell of an entry. @return false: it must wait.
  [[nodiscard]] bool start(Flow& flow, const TxEntry& entry);
  /// Begin to send the entry at the head of the ring, or let it wait inside the card. @return
  /// false: it must wait where it is.
  [[nodiscard]] bool launch_entry(Pair& pair, Ring& ring, const TxEntry& entry);
  [[nodiscard]] bool read_slot(const Ring& ring, TxEntry* out) const;
  [[nodiscard]] bool passes_over(Pair& pair, const Ring& ring, const TxEntry& head) const;
  void wait_inside(Flow& flow, const TxEntry& entry);
  void start_waiting(Flow& flow);
  /// Forget the flow's waiting entries.
  void drop_waiting(Flow& flow);
  void flush_waiting(Flow& flow, regs::Status status);
  static void flip_letter(Flow& flow, const TxMsg& msg);
  void rest(Pair& pair, TxMsg& msg);
  void find_resting_place(Pair& pair, TxMsg& msg);
  void keep_place(Pair& pair, const TxMsg& msg, int32_t more);
  void rest_over(Flow& flow, TxMsg& msg);
  [[nodiscard]] bool flights_full(const Pair& pair) const {
    return static_cast<int32_t>(core_.flights_left(pair)) < 0;
  }
  /// Read bytes of a message from host memory. @return false: they cannot be read.
  [[nodiscard]] bool gather(Flow& flow, const TxMsg& msg, uint32_t offset, uint32_t len,
                            uint8_t* to);
  [[nodiscard]] static bool gather_pieces(HostPort& host, const TxMsg& msg,
                                          const regs::TxWide& wide, uint32_t offset, uint32_t len,
                                          uint8_t* to);
  /// Write one segment to the wire, or all that travels as one frame (TxMsg::whole). @return false:
  /// no room.
  bool send(Flow& flow, TxMsg& msg, uint32_t segment);
  [[nodiscard]] bool send_again(Flow& flow, TxMsg& msg);
  void send_unsent(Flow& flow, TxMsg& msg);
  void check_timer(Flow& flow, TxMsg& msg);
  void finish_unsent(Ring& ring, const regs::TxDesc& desc, regs::Status status);
  void flush_posted(Ring& ring, regs::Status status);

  Core& core_;
  Transactions& transactions_;
  RunWay* runs_ = nullptr;
  uint32_t contexts_used_ = 0;
  uint64_t timers_due_ns_ = 0;       // no message can time out before this
  uint64_t timers_response_ns_ = 0;  // time-out that timers_due_ns_ was computed with
  uint8_t letter_mask_ = static_cast<uint8_t>((1u << core_.config.letters) - 1);
  std::vector<Due> due_;
  std::vector<Due> sending_;  // empty but in send_due()
};

}  // namespace rio::model
