/// @file
/// Offers of one peer and context: at most one is open, bound to one message number. See
/// docs/decisions/0015-large-data.md, "Offers"; proved in proof/offer.pml.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates.
#pragma once

#include <cassert>
#include <cerrno>
#include <cstdint>

#include "lib/msg/control.hpp"

namespace rio::msg {

/// The receiver, who makes offers.
class OfferMaker {
 public:
  enum class State : uint8_t {
    kNone,
    kOpen,      ///< OFFER is sent
    kRevoking,  ///< and REVOKE
  };
  enum class Answer : uint8_t {
    kNone,      ///< there was no offer for this message
    kAccepted,  ///< its place is a transfer's now
    kRefused,   ///< or revoked: its place is free
  };

  /// OFFER goes now; only when kNone. @param message_number that is expected next.
  /// @return its number.
  [[nodiscard]] uint32_t open(uint32_t message_number) {
    assert(state_ == State::kNone);
    state_ = State::kOpen;
    message_number_ = message_number;
    return ++number_;
  }

  /// A message of this peer and context came. @param message_number of it. @param offer that it
  /// accepts, 0: none. @return 0, or -EPROTO where it accepts what is not open or not for it.
  [[nodiscard]] int on_message(uint32_t message_number, uint32_t offer, Answer* out) {
    const bool ours = state_ != State::kNone && message_number == message_number_;
    if (offer != 0 && (!ours || offer != number_)) {
      return -EPROTO;
    }
    *out = !ours ? Answer::kNone : (offer != 0 ? Answer::kAccepted : Answer::kRefused);
    if (ours) {
      state_ = State::kNone;
    }
    return 0;
  }

  /// @return whether REVOKE is to go, with number(); false where none is open or it has gone.
  [[nodiscard]] bool revoke() {
    if (state_ != State::kOpen) {
      return false;
    }
    state_ = State::kRevoking;
    return true;
  }

  /// REVOKED came: the place is free. @return 0, or -EPROTO where nothing was revoked that it could
  /// mean.
  [[nodiscard]] int on_revoked(uint32_t offer) {
    if (state_ != State::kRevoking || offer != number_) {
      return -EPROTO;
    }
    state_ = State::kNone;
    return 0;
  }

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] uint32_t number() const { return number_; }

 private:
  uint32_t number_ = 0;  // of the last offer; the first is 1
  uint32_t message_number_ = 0;
  State state_ = State::kNone;
};

/// The sender, who takes them.
class OfferTaker {
 public:
  /// OFFER came. @param next number of the message that would be sent next. @return 0 (it is kept,
  /// or came too late and is forgotten), -EPROTO where an honest receiver cannot make it.
  [[nodiscard]] int on_offer(const OfferBody& offer, uint32_t next) {
    const auto behind = static_cast<int32_t>(next - offer.message_number);
    if (held_ || offer.offer != last_ + 1 || behind < 0) {
      return -EPROTO;
    }
    last_ = offer.offer;
    if (behind == 0) {
      offer_ = offer;
      held_ = true;
    }
    return 0;
  }

  /// Hot where there is none. A message is about to be sent. @param number of it. @param len_bytes
  /// of it, if it is large; 0: small. @return the offer to accept, until the next call; or null:
  /// it goes its ordinary way, which refuses the offer if there is one.
  [[nodiscard]] const OfferBody* take(uint32_t number, uint64_t len_bytes, uint64_t match_bits) {
    if (!held_) [[likely]] {
      return nullptr;
    }
    assert(number == offer_.message_number);
    static_cast<void>(number);
    held_ = false;
    const bool fits = len_bytes != 0 && len_bytes <= offer_.len_max &&
                      ((match_bits ^ offer_.match_bits) & ~offer_.ignore_bits) == 0;
    return fits ? &offer_ : nullptr;
  }

  /// REVOKE came. @param answer set to whether REVOKED is to go. @return 0, or -EPROTO for an offer
  /// that was never made.
  [[nodiscard]] int on_revoke(uint32_t offer, bool* answer) {
    if (offer != last_ || offer == 0) {
      return -EPROTO;
    }
    *answer = held_;
    held_ = false;
    return 0;
  }

  [[nodiscard]] bool held() const { return held_; }
  /// That the one held is for.
  [[nodiscard]] uint32_t message_number() const { return offer_.message_number; }
  /// A message of that number was sent without a look at the offer: it is refused so.
  void lapse() { held_ = false; }

 private:
  OfferBody offer_{};
  uint32_t last_ = 0;
  bool held_ = false;
};

}  // namespace rio::msg
