/// @file
/// The offer protocol between one peer and context. At most one offer is open, bound to one message
/// number. See docs/decisions/0015-large-data.md, "Offers"; modelled in proof/offer.pml.
///
/// Thread rule: plain objects without I/O; one thread. Nothing allocates.
#pragma once

#include <cassert>
#include <cerrno>
#include <cstdint>

#include "lib/msg/control.hpp"

namespace rio::msg {

/// The receiver's side, which makes offers.
class OfferMaker {
 public:
  enum class State : uint8_t {
    kNone,
    kOpen,      ///< OFFER was sent
    kRevoking,  ///< OFFER and REVOKE were sent
  };
  enum class Answer : uint8_t {
    kNone,      ///< there is no offer for this message
    kAccepted,  ///< accepted: its place belongs to a transfer now
    kRefused,   ///< refused or revoked: its place is free
  };

  /// OFFER is sent now; only in kNone. @param message_number the next one expected. @return number
  /// of the offer.
  [[nodiscard]] uint32_t open(uint32_t message_number) {
    assert(state_ == State::kNone);
    state_ = State::kOpen;
    message_number_ = message_number;
    return ++number_;
  }

  /// A message of this peer and context arrived. @param offer the offer that it accepts; 0: none.
  /// @return 0, or -EPROTO if that offer is not open or not for this message.
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

  /// Revoke the open offer. @return whether to send REVOKE, with number(); false: none is open, or
  /// REVOKE was sent before.
  [[nodiscard]] bool revoke() {
    if (state_ != State::kOpen) {
      return false;
    }
    state_ = State::kRevoking;
    return true;
  }

  /// REVOKED arrived: the place is free. @return 0, or -EPROTO if it does not match a revoked
  /// offer.
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
  uint32_t number_ = 0;  // number of the last offer; the first is 1
  uint32_t message_number_ = 0;
  State state_ = State::kNone;
};

/// The sender's side, which accepts or refuses offers.
class OfferTaker {
 public:
  /// OFFER arrived. @param next number of the next message to be sent. @return 0 (it is kept; or
  /// came too late and is ignored), -EPROTO if an honest receiver cannot have sent it.
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

  /// Hot if there is no offer. Called before a message is sent. @param number of the message.
  /// @param len_bytes its length if it is large; 0: small. @return the offer to accept, valid until
  /// the next call; null: send it as usual, which refuses any offer.
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

  /// REVOKE arrived. @param answer set to whether to send REVOKED. @return 0, or -EPROTO for an
  /// offer that was never made.
  [[nodiscard]] int on_revoke(uint32_t offer, bool* answer) {
    if (offer != last_ || offer == 0) {
      return -EPROTO;
    }
    *answer = held_;
    held_ = false;
    return 0;
  }

  [[nodiscard]] bool held() const { return held_; }
  /// Drop an offer for another message than `next`, the next one to be sent: its message was sent
  /// without calling take(), which refuses the offer.
  void lapse_before(uint32_t next) { held_ = held_ && offer_.message_number == next; }

 private:
  OfferBody offer_{};
  uint32_t last_ = 0;
  bool held_ = false;
};

}  // namespace rio::msg
