/// @file
/// Messages to peers about large data, and answers that wait for a control credit.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/msg/outbox.hpp"

namespace rio::msg {

/// Of one port; its thread. Each message takes room in the ring and a control credit.
class LargeControl {
 public:
  /// ABORT, CLOSED or DONE about a transfer that is not kept any more; REVOKED.
  struct Answer {
    Link* link;
    uint32_t session;
    Kind kind;
    uint32_t transfer;
    uint8_t attempt;
    uint8_t reason;        ///< of ABORT 0: the sender is to ask again
    uint16_t context = 0;  ///< of REVOKED
    uint16_t number = 0;   ///< of REVOKED: of the message that was next then
  };

  explicit LargeControl(Outbox& outbox) : outbox_(outbox) {}

  /// Whether say() would succeed. It may end any session.
  [[nodiscard]] bool may_say(const Link& link);
  /// @param to, from contexts, where the kind has any. @return false: not now.
  [[nodiscard]] bool say(Link& link, Kind kind, const void* body, uint32_t bytes, uint32_t to = 0,
                         uint32_t from = 0);

  /// To be said as soon as it can be.
  void answer(const Answer& answer) {
    ++answer.link->large.answers;
    answers_.push_back(answer);
  }
  [[nodiscard]] bool has_answers() const { return !answers_.empty(); }
  /// A peer that gives no credit for it stops no other peer's answer.
  void say_answers();

 private:
  [[nodiscard]] bool say(const Answer& answer);

  Outbox& outbox_;
  std::vector<Answer> answers_;
};

}  // namespace rio::msg
