/// @file
/// Windows of one large transfer, on both sides, and how an attempt ends. See
/// docs/decisions/0015-large-data.md, "Large data"; modelled in model/grant.pml.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates. Counts are of messages.
#pragma once

#include <cassert>
#include <cerrno>
#include <cstdint>

namespace rio::msg {

/// A transfer is given up after so many attempts in a row that brought it no further: some 4 s of a
/// link that is down,
inline constexpr uint8_t kFruitlessMax = 16;
/// and after so many in all.
inline constexpr uint8_t kAttemptsMax = 250;

/// The cause that ABORT and CLOSED carry.
struct StopCause {
  uint8_t reason = 0;  ///< the layer's own code; 0 where `again`
  bool again = false;  ///< the transfer is to be granted afresh
};

/// The sender's side.
class SendGrant {
 public:
  enum class State : uint8_t {
    kRequested,  ///< waits for GRANT
    kSending,    ///< has one, or has accepted an offer
    kDraining,   ///< stops: waits for what was posted, then owes CLOSED
    kDone,       ///< all is delivered
    kEnded,      ///< ended by cause()
  };

  /// GRANT. @param messages of its cut, at least 1. @param total may be sent, 1 to messages.
  /// @return 0 (state kSending, or unchanged where it comes too late), -EPROTO for what an honest
  /// receiver cannot say.
  [[nodiscard]] int on_grant(uint8_t attempt, uint8_t mailbox, uint32_t messages, uint32_t total);
  /// An offer is taken: state kSending at once. Only in kRequested, attempt 0.
  void accept(uint8_t mailbox, uint32_t messages, uint32_t total);
  /// EXTEND. @return as on_grant().
  [[nodiscard]] int on_extend(uint8_t attempt, uint32_t total);
  /// DONE, the answer to CLOSED with again. @return as on_grant().
  [[nodiscard]] int on_done(uint8_t attempt);
  /// ABORT. @return as on_grant(). Afterwards look at closed_due().
  [[nodiscard]] int on_abort(uint8_t attempt, StopCause cause);

  /// Stop by itself: cancelled, or a message was refused or in doubt. Afterwards look at
  /// closed_due(). Nothing happens where it has ended. @param cause `again` only when sending; it
  /// becomes a failure where !may_ask_again().
  void stop(StopCause cause);

  /// Whether another attempt is allowed.
  [[nodiscard]] bool may_ask_again() const {
    return fruitless_ + 1 < kFruitlessMax && attempt_ + 1 < kAttemptsMax;
  }
  /// GRANT says that the receiver has more than when it sent the last one.
  void brought_further() { fruitless_ = 0; }
  /// Attempts in a row that brought it no further: below kFruitlessMax while it is not given up.
  [[nodiscard]] uint8_t fruitless() const { return fruitless_; }

  /// Hot. How many messages may be posted now.
  [[nodiscard]] uint32_t may_post() const {
    return state_ == State::kSending ? total_ - posted_ : 0;
  }
  /// Hot. @param n up to may_post().
  void posted(uint32_t n) {
    assert(n <= may_post());
    posted_ += n;
  }
  /// The last n of those posted never went out, since the card's ring was stopped: they may be
  /// posted once more. Only in kSending. @param n up to out().
  void not_sent(uint32_t n) {
    assert(state_ == State::kSending && n <= out());
    posted_ -= n;
  }
  /// Hot. The card has completed n of those posted: delivered, refused or in doubt; what is not
  /// delivered is told by stop(), before. In their order.
  void completed(uint32_t n);
  /// A message is in doubt: CLOSED waits until then. @param until_us by the clock of closed_due().
  void rest_until(uint64_t until_us) { rest_us_ = until_us > rest_us_ ? until_us : rest_us_; }

  /// Whether CLOSED is to go now; then take_closed().
  [[nodiscard]] bool closed_due(uint64_t now_us) const {
    return owes_closed_ || (state_ == State::kDraining && out() == 0 && now_us >= rest_us_);
  }
  /// The content of CLOSED.
  struct Closed {
    uint8_t attempt;
    uint32_t arrived;  ///< messages that surely did, from the first on, each where it belongs
    StopCause cause;
  };
  /// Only when closed_due(). The state is then kEnded, or kRequested for another attempt.
  [[nodiscard]] Closed take_closed();

  [[nodiscard]] State state() const { return state_; }
  /// The attempt that is asked for or under way, from 0.
  [[nodiscard]] uint8_t attempt() const { return attempt_; }
  [[nodiscard]] uint8_t mailbox() const { return mailbox_; }
  /// Messages that the card has and has not completed.
  [[nodiscard]] uint32_t out() const { return posted_ - completed_; }
  /// Number of the next message of the cut.
  [[nodiscard]] uint32_t next() const { return posted_; }
  [[nodiscard]] StopCause cause() const { return cause_; }
  /// Nothing of it is left to be done here.
  [[nodiscard]] bool over() const {
    return !owes_closed_ && (state_ == State::kDone || state_ == State::kEnded);
  }

 private:
  void begin(uint8_t mailbox, uint32_t messages, uint32_t total);
  void look_done();

  uint64_t rest_us_ = 0;
  uint32_t messages_ = 0;
  uint32_t total_ = 0;
  uint32_t posted_ = 0;
  uint32_t completed_ = 0;
  uint32_t arrived_ = 0;  // of them, before the first that was not delivered
  State state_ = State::kRequested;
  uint8_t attempt_ = 0;
  uint8_t fruitless_ = 0;  // attempts that ended since it was brought further
  uint8_t mailbox_ = 0;
  bool heard_ = true;         // after accept(): whether the receiver has taken it
  bool owes_closed_ = false;  // an ABORT that found nothing to drain
  StopCause cause_;
};

/// The receiver's side.
class RecvGrant {
 public:
  enum class State : uint8_t {
    kWaiting,    ///< for a queue, or unmatched
    kReceiving,  ///< has one
    kStopping,   ///< ABORT is sent; waits for CLOSED
    kParked,     ///< ABORT is sent; waits for CLOSED, and the sender is to ask again
    kDone,       ///< all entries completed
    kEnded,      ///< ended by cause()
  };

  /// A queue is assigned. Only when kWaiting. @param messages of the cut, at least 1. @param window
  /// entries at once, at least 1. Next: post may_post() entries, then tell().
  void start(uint32_t messages, uint32_t window);

  /// Hot. How many entries may be posted now.
  [[nodiscard]] uint32_t may_post() const {
    if (state_ != State::kReceiving) {
      return 0;
    }
    const uint32_t ahead = posted_ - completed_;
    const uint32_t room = ahead < window_ ? window_ - ahead : 0;
    const uint32_t rest = messages_ - posted_;
    return room < rest ? room : rest;
  }
  /// Hot. @param n up to may_post().
  void posted(uint32_t n) {
    assert(n <= may_post());
    posted_ += n;
  }
  /// Hot. Entries completed, as they should. The last one ends the transfer (kDone).
  void completed(uint32_t n);

  /// Hot. Whether EXTEND is worth a message: half a window, or the last ones.
  [[nodiscard]] bool extend_due() const {
    const uint32_t untold = posted_ - told_;
    return state_ == State::kReceiving && untold != 0 &&
           (untold >= (window_ + 1) / 2 || posted_ == messages_);
  }
  /// Hot. The total for GRANT or EXTEND that goes now.
  [[nodiscard]] uint32_t tell() {
    told_ = posted_;
    return told_;
  }
  /// The total that an accepted offer named: before stop() for one that is parked, else after
  /// start() and before EXTEND, which must go at once.
  void told_by_offer(uint32_t total) { told_ = total; }

  /// Stop it. @return whether ABORT is to go, with attempt(); false where it has ended, or stops
  /// already, but for one that is parked and shall end. `again` parks: only for a transfer that
  /// came by ACCEPT and was not told anything.
  [[nodiscard]] bool stop(StopCause cause);

  /// CLOSED. @param arrived as it says. @return 0 (look at state(): kWaiting again for the next
  /// attempt, or kEnded; or unchanged where it is for an attempt that is over), -EPROTO.
  [[nodiscard]] int on_closed(uint8_t attempt, uint32_t arrived, StopCause cause);

  /// The peer died.
  void died(StopCause cause) {
    cause_ = cause;
    state_ = State::kEnded;
  }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] uint8_t attempt() const { return attempt_; }
  /// Number of the next entry of the cut to be posted.
  [[nodiscard]] uint32_t next() const { return posted_; }
  [[nodiscard]] uint32_t done() const { return completed_; }
  /// After on_closed(): of them, how many are surely where they belong. Behind one that was refused
  /// others may have taken its entry.
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
