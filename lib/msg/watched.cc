// What a port looks at now and then: its card, its ring, and the links that wait for an answer.
#include <cerrno>

#include "base/log.hpp"
#include "lib/msg/clock.hpp"
#include "lib/msg/port.hpp"

namespace rio::msg {
namespace {

constexpr uint64_t kAgainNs = 2'000'000;   // a question that got no answer is put again
constexpr uint64_t kAliveNs = 20'000'000;  // who gives no credit for so long is asked for a sign

}  // namespace

void Port::ask(Link& link) {
  link.state = LinkState::kHello;
  link.say.hello = true;
  const uint64_t now = now_ns();
  link.clock.deadline_ns = now + uint64_t{config_.connect_ms} * 1'000'000;
  watch(link, now + kAgainNs);
}

void Port::watch(Link& link, uint64_t again_ns) {
  if (!link.clock.watched) {
    link.clock.watched = true;
    link.clock.again_ns = again_ns != 0 ? again_ns : now_ns() + kAliveNs;
    watched_.push_back(link.index());
  } else if (again_ns != 0) {
    link.clock.again_ns = again_ns;
  }
}

/// Bursts do not see that the card is gone.
void Port::look_at_card() {
  if (--until_card_ == 0) {
    until_card_ = kLooksPerCard;
    pmd::Card& card = endpoint_->card();
    if (error_ == 0 && (card.gone() || card.was_reset())) {
      error_ = -ENODEV;
      base::log_error("%s %s; close the port, and open it again", endpoint_->name().c_str(),
                      card.gone() ? "is gone" : "was reset by somebody else");
      end_all_sessions();
    }
  }
}

void Port::look_at_time() {
  look_at_card();
  look_at_ring();
  if (!resting_.empty()) {
    look_at_rests();
  }
  if (!again_.empty() || !resent_.empty()) {
    send_again();
  }
  if (!held_.empty()) {
    release_held();
  }
  if (watched_.empty()) {
    return;
  }
  const uint64_t now = now_ns();
  for (size_t i = 0; i < watched_.size();) {
    Link& link = *links_[watched_[i]];
    const bool waits =
        link.clock.stuck || link.has_early() || !link.large.sends.empty() || !link.large.receives.empty();
    if (link.clock.deadline_ns == 0 && !waits) {
      link.clock.watched = false;
      watched_[i] = watched_.back();
      watched_.pop_back();
      continue;
    }
    look_at(link, now);
    ++i;
  }
}

/// A message that its sender's card took for delivered may be lost: by a card that does not keep
/// the contract (docs/card.md, receiving), or by a peer that lies. Nobody sends it again.
/// @return whether the session is over.
bool Port::look_at_hole(Link& link, uint64_t now) {
  if (!link.has_early()) {
    link.clock.missing_ns = 0;
    return false;
  }
  if (link.clock.missing_ns == 0 || link.clock.missing != link.next_in()) {
    link.clock.missing = link.next_in();
    link.clock.missing_ns = now;
    return false;
  }
  // The sender gives up sooner, if it knows of it.
  if (now - link.clock.missing_ns <= 2 * uint64_t{config_.deliver_ms} * 1'000'000) {
    return false;
  }
  base::log_error(
      "a message of destID %u was lost on the way, and its session is over; if this happens again, "
      "one of the two cards says DONE to what it has not kept: run 'rio-tool selftest' on both",
      link.dest_id());
  on_unknown({link.dest_id(), link.keys.local, link.next_in(), 0});
  end_session(link, -EIO);
  return true;
}

/// A link that waits for an answer.
void Port::look_at(Link& link, uint64_t now) {
  if (link.clock.deadline_ns != 0 && now > link.clock.deadline_ns) {
    end_session(link, -EHOSTUNREACH);
    return;
  }
  if (now <= link.clock.again_ns || look_at_hole(link, now)) {
    return;
  }
  if (link.clock.deadline_ns != 0) {
    // This process cannot reach the peer: waiting for an answer is useless.
    if (const int rc = endpoint_->why_unreachable(link.dest_id()); rc != 0) {
      end_session(link, rc);
      return;
    }
    link.clock.again_ns = now + kAgainNs;
    link.say.hello = true;
  } else {
    // Who was born again owes no credit, and does not know that we wait for it.
    link.clock.again_ns = now + kAliveNs;
    link.clock.stuck = false;
    link.say.alive = true;
  }
  want(link);
}

}  // namespace rio::msg
