/// @file
/// Sends messages about large data to peers, and queues answers that lack a control credit.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/msg/outbox.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. Each message needs room in the ring and a control
/// credit.
class LargeControl {
 public:
  /// An answer without a live transfer: ABORT, CLOSED or DONE about a forgotten one, or REVOKED.
  struct Answer {
    Link* link;
    uint32_t session;
    Kind kind;
    uint32_t transfer;
    uint8_t attempt;
    uint8_t reason;        ///< StopReason; 0 in ABORT: the sender is to ask again
    uint16_t context = 0;  ///< REVOKED only
    uint16_t number = 0;   ///< REVOKED only: number of the message that was next then
    uint8_t stripe = 0;
  };

  /// Whether say() would succeed. May reap completions, which can end any session.
  [[nodiscard]] bool may_say(const Link& link);
  /// Send one message. @param to, from contexts, for kinds that have any. @return false: not now;
  /// try again later.
  [[nodiscard]] bool say(Link& link, Kind kind, const void* body, uint32_t bytes, uint32_t to = 0,
                         uint32_t from = 0);

  /// Queue an answer for say_answers().
  void answer(const Answer& answer) {
    ++answer.link->large.answers;
    answers_.push_back(answer);
  }
  [[nodiscard]] bool has_answers() const { return !answers_.empty(); }
  /// Send queued answers. A peer that gives no credit does not delay answers to others.
  void say_answers();

 private:
  [[nodiscard]] bool say(const Answer& answer);

  std::vector<Answer> answers_;
};

}  // namespace rio::msg
