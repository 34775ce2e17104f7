/// @file
/// Detects that a port's card is gone or has failed.
#pragma once

#include <cstdint>

#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. Bursts do not notice a missing card, so this asks
/// the card every now and then.
class CardHealth {
 public:
  explicit CardHealth(Endpoint& endpoint) : endpoint_(endpoint) {}

  /// @return 0, or -ENODEV: the card is gone, was reset by another program, or has failed. An error
  /// never clears.
  [[nodiscard]] int error() const { return error_; }
  /// Call this from the progress loop: it asks the card on every 2^14th call. @return true, once,
  /// when the card has gone (logged).
  [[nodiscard]] bool has_just_gone();
  /// Make the next has_just_gone() ask the card.
  void check_soon() { until_look_ = 1; }
  /// Declare the card failed because it ignored a command; logged. @param what verb for the log:
  /// the card does not `what` its transmit ring.
  void fail(const char* what);

 private:
  static constexpr uint32_t kLooksPerCard =
      1u << 14;  // calls of has_just_gone() per question to the card

  Endpoint& endpoint_;
  int error_ = 0;
  uint32_t until_look_ = kLooksPerCard;
};

}  // namespace rio::msg
