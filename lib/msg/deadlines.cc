#include "lib/msg/deadlines.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/log.hpp"
#include "lib/msg/clock.hpp"

namespace rio::msg {
namespace {

[[nodiscard]] bool waits(const Link& link) {
  return link.clock.deadline_ns != 0 || link.clock.stuck || link.has_early() ||
         !link.large.sends.is_empty() || !link.large.receives.is_empty();
}

}  // namespace

void Deadlines::look() {
  std::vector<uint32_t>& watched = on_.peers.watched();
  if (watched.empty()) {
    return;
  }
  const uint64_t now = now_ns();
  for (size_t i = 0; i < watched.size();) {
    Link& link = on_.peers.at(watched[i]);
    if (!waits(link)) {
      link.clock.watched = false;
      watched[i] = watched.back();
      watched.pop_back();
      continue;
    }
    check_link(link, now);
    ++i;
  }
}

void Deadlines::check_link(Link& link, uint64_t now) {
  LinkClock& clock = link.clock;
  if (clock.deadline_ns != 0 && now > clock.deadline_ns) {
    on_.sessions.end(link, -EHOSTUNREACH);
    return;
  }
  if (now <= clock.again_ns || end_if_hole(link, now)) {
    return;
  }
  if (clock.deadline_ns == 0) {
    // Ask for a sign. A restarted process would never send the awaited credit, because it does not
    // know the session, but it answers with a reset.
    clock.stuck = false;
    on_.speaker.ask_for_sign(link, now);
    return;
  }
  // This process cannot reach the peer: waiting for an answer is useless.
  if (const int rc = on_.endpoint.why_unreachable(link.dest_id()); rc != 0) {
    on_.sessions.end(link, rc);
    return;
  }
  on_.speaker.ask_again(link, now);
}

/// End the session if a message is missing for too long. A message that its sender believes
/// delivered is never resent. It can be lost by a faulty card (docs/card.md, "Receiving") or a
/// lying peer. @return whether the session is over.
bool Deadlines::end_if_hole(Link& link, uint64_t now) {
  LinkClock& clock = link.clock;
  if (!link.has_early()) {
    clock.missing_ns = 0;
    return false;
  }
  if (clock.missing_ns == 0 || clock.missing != link.next_in()) {
    clock.missing = link.next_in();
    clock.missing_ns = now;
    return false;
  }
  // If the sender knows that the message is missing, it gives up before this limit.
  if (now - clock.missing_ns <= 2 * deliver_ns_) {
    return false;
  }
  base::log_error(
      "a message of destID %u was lost on the way, and its session is over; if this happens again, "
      "one of the two cards says DONE to what it has not kept: run 'rio-tool selftest' on both",
      link.dest_id());
  on_.sessions.reset(link, -EIO);
  return true;
}

uint64_t Deadlines::next_ns(uint64_t bound_ns) const {
  for (const uint32_t index : on_.peers.watched()) {
    const LinkClock& clock = on_.peers.at(index).clock;
    const uint64_t next =
        clock.deadline_ns != 0 ? std::min(clock.deadline_ns, clock.again_ns) : clock.again_ns;
    bound_ns = std::min(bound_ns, next);
  }
  return bound_ns;
}

}  // namespace rio::msg
