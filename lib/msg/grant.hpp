/// @file
/// Flow control of one large transfer, for the sender and the receiver, and how an attempt ends.
/// See docs/decisions/0015-large-data.md, "Large data"; modelled in proof/grant.pml.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates. Counts are of messages.
#pragma once

#include <cassert>
#include <cstdint>

namespace rio::msg {

/// Attempts in a row without progress after which a transfer is given up: about 4 s of a link that
/// is down.
inline constexpr uint8_t kFruitlessMax = 16;
/// Attempts of one transfer in total after which it is given up.
inline constexpr uint8_t kAttemptsMax = 250;

/// The cause that ABORT and CLOSED carry.
struct StopCause {
  uint8_t reason = 0;  ///< StopReason, or 0 with `again`
  bool again = false;  ///< the transfer is to be granted again, as a new attempt
};

/// The sender's side of one transfer. Attempts are numbered from 0.
class SendGrant {
 public:
  enum class State : uint8_t {
    kRequested,  ///< waits for GRANT
    kSending,    ///< has GRANT, or has accepted an offer
    kDraining,   ///< stopping: waits for posted messages to complete, then owes CLOSED
    kDone,       ///< all messages are delivered
    kEnded,      ///< ended without success; see cause()
  };

  /// GRANT arrived. @param messages in its cut, at least 1. @param total messages that may be sent,
  /// 1 to `messages`. @return 0 (state kSending; or unchanged if the attempt is over), -EPROTO if
  /// an honest receiver cannot have sent it.
  [[nodiscard]] int on_grant(uint8_t attempt, uint8_t mailbox, uint32_t messages, uint32_t total);
  /// Accept an offer: the state becomes kSending at once. Only in kRequested, attempt 0.
  void accept(uint8_t mailbox, uint32_t messages, uint32_t total);
  /// EXTEND arrived. @return as on_grant().
  [[nodiscard]] int on_extend(uint8_t attempt, uint32_t total);
  /// DONE arrived: the receiver has read what was shown, or answers CLOSED with `again`. @return as
  /// on_grant().
  [[nodiscard]] int on_done(uint8_t attempt);
  /// ABORT arrived. @return as on_grant(). Check closed_due() afterwards.
  [[nodiscard]] int on_abort(uint8_t attempt, StopCause cause);

  /// REQUEST says where the receiver may read the data instead of granting it: DONE may follow.
  /// Only in kRequested, attempt 0.
  void show() {
    assert(state_ == State::kRequested && attempt_ == 0);
    is_shown_ = true;
  }
  /// Whether the receiver may be reading the data.
  [[nodiscard]] bool is_shown() const { return is_shown_; }

  /// The sender stops by itself: the user cancelled, or a message was refused or is in doubt. Check
  /// closed_due() afterwards. No effect after the end. @param cause `again` only in kSending;
  /// becomes a failure if !may_ask_again().
  void stop(StopCause cause);

  /// Whether another attempt is allowed.
  [[nodiscard]] bool may_ask_again() const {
    return fruitless_ + 1 < kFruitlessMax && attempt_ + 1 < kAttemptsMax;
  }
  /// The receiver's GRANT shows that more has arrived than at the last one.
  void brought_further() { fruitless_ = 0; }
  /// Attempts in a row without progress; below kFruitlessMax until the transfer is given up.
  [[nodiscard]] uint8_t fruitless() const { return fruitless_; }

  /// Hot. How many messages may be posted now.
  [[nodiscard]] uint32_t may_post() const {
    return state_ == State::kSending ? total_ - posted_ : 0;
  }
  /// Hot. `n` messages or entries were posted to the card. @param n up to may_post().
  void posted(uint32_t n) {
    assert(n <= may_post());
    posted_ += n;
  }
  /// The last `n` posted messages never left, because the card's ring was stopped: they may be
  /// posted again. Only in kSending. @param n up to out().
  void not_sent(uint32_t n) {
    assert(state_ == State::kSending && n <= out());
    posted_ -= n;
  }
  /// Hot. The card has completed the next `n` posted messages, in order: delivered, refused or in
  /// doubt. If one was not delivered, call stop() first.
  void completed(uint32_t n);
  /// A message is in doubt: delay CLOSED. @param until_ns when CLOSED may go, by the clock of
  /// closed_due().
  void rest_until(uint64_t until_ns) { rest_ns_ = until_ns > rest_ns_ ? until_ns : rest_ns_; }
  /// A message is in doubt, and the receiver is able to rest instead, if there is another attempt:
  /// CLOSED says so.
  void leave_rest_to_receiver() { is_doubtful_ = true; }

  /// Whether CLOSED is to be sent now; take_closed() is next.
  [[nodiscard]] bool closed_due(uint64_t now_ns) const {
    return owes_closed_ || (state_ == State::kDraining && out() == 0 &&
                            (now_ns >= rest_ns_ || (is_doubtful_ && cause_.again)));
  }
  /// The content of CLOSED.
  struct Closed {
    uint8_t attempt;
    uint32_t arrived;  ///< leading messages that certainly arrived, each in its place
    StopCause cause;
    bool is_doubtful;  ///< messages of the attempt may still arrive
  };
  /// The content of CLOSED, to be sent now. Only when closed_due(). The state becomes kEnded, or
  /// kRequested for another attempt.
  [[nodiscard]] Closed take_closed();

  [[nodiscard]] State state() const { return state_; }
  /// The attempt that is requested or under way, from 0.
  [[nodiscard]] uint8_t attempt() const { return attempt_; }
  [[nodiscard]] uint8_t mailbox() const { return mailbox_; }
  /// Messages posted and not completed.
  [[nodiscard]] uint32_t out() const { return posted_ - completed_; }
  /// Number of the next message of the cut.
  [[nodiscard]] uint32_t next() const { return posted_; }
  [[nodiscard]] StopCause cause() const { return cause_; }
  /// Whether the sender has nothing left to do for this transfer.
  [[nodiscard]] bool over() const {
    return !owes_closed_ && (state_ == State::kDone || state_ == State::kEnded);
  }

 private:
  void begin(uint8_t mailbox, uint32_t messages, uint32_t total);
  void check_done();

  uint64_t rest_ns_ = 0;
  uint32_t messages_ = 0;
  uint32_t total_ = 0;
  uint32_t posted_ = 0;
  uint32_t completed_ = 0;
  uint32_t arrived_ = 0;  // completed messages before the first that was not delivered
  State state_ = State::kRequested;
  uint8_t attempt_ = 0;
  uint8_t fruitless_ = 0;  // attempts that ended since the last progress
  uint8_t mailbox_ = 0;
  bool heard_ = true;         // false after accept(), until the receiver has confirmed it
  bool owes_closed_ = false;  // ABORT came when there was nothing to drain
  bool is_doubtful_ = false;
  bool is_shown_ = false;
  StopCause cause_;
};

/// The receiver's side of one transfer.
class RecvGrant {
 public:
  enum class State : uint8_t {
    kWaiting,    ///< waits for a match, or for a queue
    kReceiving,  ///< has a queue
    kStopping,   ///< ABORT is sent; waits for CLOSED
    kParked,     ///< ABORT with `again` is sent; waits for CLOSED, then for a queue
    kDone,       ///< all entries are completed, or the data was read
    kEnded,      ///< ended without success; see cause()
  };

  /// A queue is assigned. Only in kWaiting. @param messages in the cut, at least 1. @param window
  /// entries posted at once, but for the last ones, 1 to 2^16. Next: post may_post() entries, then
  /// tell().
  void start(uint32_t messages, uint32_t window);

  /// Most entries posted at once. The last messages of a cut may exceed the window by an eighth:
  /// granted alone they would cost an EXTEND, a burst and a wait, however few they are.
  [[nodiscard]] static constexpr uint32_t entries_max(uint32_t window) {
    return window + window / 8;
  }

  /// Hot. How many entries may be posted now.
  [[nodiscard]] uint32_t may_post() const {
    if (state_ != State::kReceiving) {
      return 0;
    }
    const uint32_t ahead = posted_ - completed_;
    const uint32_t rest = messages_ - posted_;
    if (rest <= entries_max(window_) - ahead) {
      return rest;
    }
    return ahead < window_ ? window_ - ahead : 0;
  }
  /// Hot. `n` messages or entries were posted to the card. @param n up to may_post().
  void posted(uint32_t n) {
    assert(n <= may_post());
    posted_ += n;
  }
  /// Hot. `n` entries completed successfully. The last one ends the transfer (kDone).
  void completed(uint32_t n);

  /// Hot. Whether to send EXTEND: half a window is new, or the last entries are.
  [[nodiscard]] bool extend_due() const {
    const uint32_t untold = posted_ - told_;
    return state_ == State::kReceiving && untold != 0 &&
           (untold >= (window_ + 1) / 2 || posted_ == messages_);
  }
  /// Hot. The total, to be put into a GRANT or EXTEND that is sent now.
  [[nodiscard]] uint32_t tell() {
    told_ = posted_;
    return told_;
  }
  /// Set the total that an accepted offer announced. Call it before stop() if the transfer is
  /// parked; else after start(), and then send EXTEND at once.
  void told_by_offer(uint32_t total) { told_ = total; }

  /// Stop the attempt. @return whether to send ABORT, with attempt(): not after the end, nor when
  /// it is stopping already, except to end a parked transfer. @param cause `again` parks the
  /// transfer, whose sender is to ask again: after ACCEPT, GRANT or EXTEND.
  [[nodiscard]] bool stop(StopCause cause);

  /// CLOSED arrived. @param arrived its field. @return 0 (the state is now kWaiting, for the next
  /// attempt, or kEnded; or unchanged if that attempt is over), -EPROTO.
  [[nodiscard]] int on_closed(uint8_t attempt, uint32_t arrived, StopCause cause);

  /// All data was read from where the sender shows it. Only in kWaiting.
  void was_read() {
    assert(state_ == State::kWaiting);
    state_ = State::kDone;
  }

  /// The queue is lost before anything was told: wait for another one. Only in kReceiving, with
  /// nothing told.
  void lose_queue() {
    assert(state_ == State::kReceiving && told_ == 0);
    posted_ = 0;
    completed_ = 0;
    state_ = State::kWaiting;
  }
  /// The peer died: end without CLOSED.
  void died(StopCause cause) {
    cause_ = cause;
    state_ = State::kEnded;
  }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] uint8_t attempt() const { return attempt_; }
  /// Number of the next entry of the cut to be posted.
  [[nodiscard]] uint32_t next() const { return posted_; }
  [[nodiscard]] uint32_t done() const { return completed_; }
  /// After on_closed(): leading messages that are certainly in their place. After a refused
  /// message, later ones may have landed in its entry.
  [[nodiscard]] uint32_t kept() const { return kept_; }
  [[nodiscard]] StopCause cause() const { return cause_; }

 private:
  uint32_t messages_ = 0;
  uint32_t window_ = 0;
  uint32_t posted_ = 0;
  uint32_t completed_ = 0;
  uint32_t told_ = 0;
  uint32_t kept_ = 0;
  State state_ = State::kWaiting;
  uint8_t attempt_ = 0;
  StopCause cause_;
};

}  // namespace rio::msg
