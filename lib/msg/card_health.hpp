/// @file
/// Whether a port's card is there and does what it should.
#pragma once

#include <cstdint>

#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// Of one port; its thread. Bursts do not see that the card is gone, so it is asked now and then.
class CardHealth {
 public:
  explicit CardHealth(Endpoint& endpoint) : endpoint_(endpoint) {}

  /// 0, or -ENODEV: the card is gone, was reset by another program, or failed; for good.
  [[nodiscard]] int error() const { return error_; }
  /// To be called again and again; asks the card at each 2^14th call. @return true: it has gone, as
  /// the log tells; once.
  [[nodiscard]] bool has_just_gone() {
    if (--until_look_ == 0) [[unlikely]] {
      return look();
    }
    return false;
  }
  /// The next has_just_gone() asks the card.
  void look_soon() { until_look_ = 1; }
  /// The card does not do what it is told; told in the log. @param what it does not do to its
  /// transmit ring.
  void fail(const char* what);

 private:
  static constexpr uint32_t kLooksPerCard = 1u << 14;  // looks at the clock for one at the card

  [[nodiscard]] bool look();

  Endpoint& endpoint_;
  int error_ = 0;
  uint32_t until_look_ = kLooksPerCard;
};

}  // namespace rio::msg
