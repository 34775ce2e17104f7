#include "lib/msg/large_control.hpp"

namespace rio::msg {

bool LargeControl::may_say(const Link& link) {
  // Reaping completions to make room may end the session: check it afterwards.
  return link.outbox->take_room() && link.state == LinkState::kUp && !link.path->rest.on &&
         link.large.control_out.available() != 0;
}

bool LargeControl::say(Link& link, Kind kind, const void* body, uint32_t bytes, uint32_t to,
                       uint32_t from) {
  if (!may_say(link)) {
    return false;
  }
  link.large.control_out.take_known();
  link.outbox->post_body(
      link, HeaderWords::rest_of(to, from, link.large.control_in.tell(), kind, padding_of(bytes)),
      body, bytes);
  return true;
}

void LargeControl::say_answers() {
  std::erase_if(answers_, [&](const Answer& answer) {
    const bool said = say(answer);
    answer.link->large.answers -= said && answer.session == answer.link->session ? 1 : 0;
    return said;
  });
}

/// Send one queued answer. @return false: no room now.
bool LargeControl::say(const Answer& answer) {
  if (answer.session != answer.link->session) {
    return true;
  }
  if (answer.kind == Kind::kDone) {
    const TotalBody body = {answer.transfer, 0, answer.attempt, answer.stripe, {}};
    return say(*answer.link, answer.kind, &body, sizeof(body));
  }
  if (answer.kind == Kind::kRevoked) {
    if (answer.link->number_out(answer.context) != answer.number) {
      return true;  // a message was sent meanwhile, which answered the offer
    }
    const RevokeBody body = {answer.transfer};
    return say(*answer.link, answer.kind, &body, sizeof(body), answer.context);
  }
  const uint8_t again = answer.reason == 0 ? 1 : 0;
  const StopBody body = {answer.transfer, 0, answer.attempt, answer.reason, again, answer.stripe};
  return say(*answer.link, answer.kind, &body, sizeof(body));
}

}  // namespace rio::msg
