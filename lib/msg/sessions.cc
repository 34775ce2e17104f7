#include "lib/msg/sessions.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "lib/msg/paths.hpp"
#include "lib/msg/rail.hpp"

namespace rio::msg {
namespace {

/// Whether we have sent our key to the peer and do not know yet that it has arrived.
[[nodiscard]] bool is_asked(const Link& link) {
  return link.state == LinkState::kHello ||
         (link.state == LinkState::kIdle && link.keys.remote != 0);
}

/// Whether the link waits for an answer of the peer.
[[nodiscard]] bool waits(const Link& link) {
  return link.clock.hello_ns != 0 || link.clock.stuck || link.has_early() ||
         !link.large.sends.is_empty() || !link.large.receives.is_empty();
}

}  // namespace

/// The peer that a path of a rail leads to. @return null: there is none yet.
Link* Sessions::known(const Rail& rail, uint32_t source) const {
  Path* const path = on_.peers.find(rail.index, source);
  return path != nullptr ? &path->link : nullptr;
}

bool Sessions::on_message(Rail& rail, uint32_t source, Kind kind, const SessionBody& body) {
  if (kind == Kind::kHello) {
    return on_hello(rail, source, body);
  }
  Link* const link = known(rail, source);
  if (link == nullptr) {
    return false;
  }
  const bool is_answer = kind == Kind::kWelcome && body.session != 0;
  if (kind == Kind::kReset && link->keys.remote == body.session && link->state == LinkState::kUp) {
    forget_peer(*link, &body.first);
  } else if (kind == Kind::kReset && link->keys.former == body.session) {
    on_.retries.find_lost_late(*link, body.first);
    ++ended_;
  } else if (is_answer && body.peer == link->keys.local && is_asked(*link)) {
    if (meet(*link, body)) {
      begin(*link);
      link->say.welcome = true;  // the peer waits for a welcome, too
    }
  } else {
    // Otherwise it answers an older hello, or belongs to nothing that we know.
    return is_answer && link->keys.remote == body.session;
  }
  return true;
}

bool Sessions::on_hello(Rail& rail, uint32_t source, const SessionBody& body) {
  // A stranger is named by its destID on the first rail.
  Link* const link = body.session == 0 ? nullptr
                     : rail.index == 0 ? on_.peers.find_or_make(source, Peers::kStrangersMax)
                                       : known(rail, source);
  if (link == nullptr) {
    return false;
  }
  const bool knows = body.peer == link->keys.local;
  // If both sides ask at once only one answers, or both could change their keys forever.
  if (!knows && link->state == LinkState::kHello && dest_id_ < link->dest_id()) {
    if (link->keys.remote != 0 && link->keys.remote != body.session) {
      forget_peer(*link, nullptr);
    }
    return true;
  }
  if (!meet(*link, body)) {
    static_cast<void>(meet(*link, body));  // cannot fail: no key of the peer is known now
  } else if (knows || link->state == LinkState::kUp) {
    begin(*link);
  }
  if (link->state != LinkState::kUp && &link->path->rail != &rail) {
    rail.outbox.use(*on_.peers.find(rail.index, source));  // the peer may know no other path yet
  }
  link->say.hello = false;
  link->say.welcome = true;
  on_.peers.want(*link);
  return true;
}

/// Take over the peer's key. @return false: the peer had another key, whose session ends here. We
/// draw a new key, since the earlier process may have sent messages with ours.
bool Sessions::meet(Link& link, const SessionBody& body) {
  if (link.keys.remote != 0 && link.keys.remote != body.session) {
    forget_peer(link, nullptr);
    return false;
  }
  if (link.keys.remote == 0) {
    link.next_out = HeaderWords::key_and_number(body.session, body.first);
  }
  link.keys.remote = body.session;
  link.keys.warned = link.keys.warned && link.instance == body.instance;
  link.instance = body.instance;
  link.rails = body.rails;
  return true;
}

/// The peer's process has ended. @param not_taken null, or number of the first message that the
/// peer's new process did not receive.
void Sessions::forget_peer(Link& link, const uint32_t* not_taken) {
  if (link.state == LinkState::kUp) {
    link.outbox->reap();  // queues failed messages for resending, or ends the session
    if (link.state == LinkState::kUp) {
      end(link, -ECONNRESET, on_.retries.find_lost(link, link.keys.remote, not_taken));
    }
    return;
  }
  link.keys.remote = 0;
  link.next_out = 0;
  link.say.welcome = false;
  on_.peers.renew(link);
  if (link.state == LinkState::kHello) {
    link.say.hello = true;
    on_.peers.want(link);
  }
}

void Sessions::meet_instance(uint32_t dest_id, uint32_t instance) {
  Link* const link = on_.peers.find(dest_id);
  if (link != nullptr && link->instance != instance && link->keys.remote != 0) {
    forget_peer(*link, nullptr);
  }
}

void Sessions::begin(Link& link) {
  link.state = LinkState::kUp;
  link.clock.hello_ns = 0;
  // The peer has answered: its silence starts again from now.
  link.path->rest.since_ns = on_.listening.now_ns();
  on_.peers.want(link);
  on_.paths.meet(link, link.rails);
}

void Sessions::reset(Link& link, int error) {
  on_.speaker.tell_unknown(
      {&link.path->rail, link.path->dest_id, link.keys.local, link.next_in(), 0});
  end(link, error);
}

void Sessions::cut_off(Link& link) {
  ++on_.stats.cut_off;
  if (!link.keys.warned) {  // log once, because the peer may continue
    link.keys.warned = true;
    base::log_warning(
        "destID %u broke the protocol, and its session is over; it may run another release, or be "
        "malicious",
        link.dest_id());
  }
  reset(link, -EPROTO);
}

void Sessions::check_card() {
  for (Rail* const rail : on_.rails) {
    if (rail->health.has_just_gone()) {
      card_gone(*rail);
    }
  }
}

/// The card accesses memory no more, so large data ends, too.
void Sessions::card_gone(Rail& rail) {
  on_.large.card_gone(rail);
  if (rail.dma != nullptr) {
    rail.dma->card_gone();
  }
  on_.paths.on_card_gone(rail);
  on_.retries.salvage(rail);
  if (on_.rails.error() == 0) {
    base::log_warning("port on %s: messages go on by its other cards", on_.config.card.c_str());
  }
  for (uint32_t i = 0; i < on_.peers.count(); ++i) {
    Link& link = on_.peers.at(i);
    if (link.state == LinkState::kUp && &link.path->rail == &rail) {
      end(link, rail.health.error());
    }
  }
}

void Sessions::check_deadlines() {
  std::vector<uint32_t>& watched = on_.peers.watched();
  if (watched.empty()) {
    return;
  }
  const uint64_t now = base::now_ns();
  for (size_t i = 0; i < watched.size();) {
    Link& link = on_.peers.at(watched[i]);
    if (!waits(link)) {
      link.clock.watched = false;
      watched[i] = watched.back();
      watched.pop_back();
      continue;
    }
    check_deadline(link, now);
    ++i;
  }
}

void Sessions::check_deadline(Link& link, uint64_t now) {
  LinkClock& clock = link.clock;
  const uint64_t listened = on_.listening.at(now);
  if (clock.hello_ns != 0 && listened - clock.hello_ns > on_.config.connect_ns()) {
    end(link, -EHOSTUNREACH);
    return;
  }
  if (now <= clock.again_ns || end_if_hole(link, listened)) {
    return;
  }
  if (clock.hello_ns == 0) {
    // Ask for a sign. A restarted process would never send the awaited credit, because it does not
    // know the session, but it answers with a reset.
    clock.stuck = false;
    clock.again_ns = now + Peers::kAliveNs;
    link.say.alive = true;
  } else if (const int rc = link.path->rail.endpoint.why_unreachable(link.path->dest_id); rc != 0) {
    end(link, rc);  // this process cannot reach the peer: waiting for an answer is useless
    return;
  } else {
    clock.again_ns = now + Speaker::kAgainNs;
    link.say.hello = true;
    on_.paths.turn(link);
  }
  on_.peers.want(link);
}

/// End the session if a message is missing for too long. A message that its sender believes
/// delivered is never resent. It can be lost by a faulty card (docs/card.md, "Receiving") or a
/// lying peer. @param now by the port's ListeningClock. @return whether the session is over.
bool Sessions::end_if_hole(Link& link, uint64_t now) {
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
  if (now - clock.missing_ns <= 2 * on_.config.deliver_ns()) {
    return false;
  }
  base::log_error(
      "a message of destID %u was lost on the way, and its session is over; if this happens again, "
      "one of the two cards says DONE to what it has not kept: run 'rio-tool selftest' on both",
      link.dest_id());
  reset(link, -EIO);
  return true;
}

uint64_t Sessions::next_deadline_ns(uint64_t bound_ns) const {
  for (const uint32_t index : on_.peers.watched()) {
    bound_ns = std::min(bound_ns, on_.peers.at(index).clock.again_ns);
  }
  return bound_ns;
}

void Sessions::end(Link& link, int error, uint64_t lost) {
  Numbered early{};
  while (link.drop(&early)) {
    if (early.buffer != nullptr) {
      on_.buffers.give_back(early.buffer);
    }
  }
  for (uint32_t i = 0; i < kContexts; ++i) {
    on_.inflows.close(link, i);
  }
  link.in.fill({});
  link.out.fill({});
  link.backlog = {};
  link.large.records_in.fill({});
  link.large.records_out.fill({});
  link.large.control_in = RecvAccount(kControlCredits);
  link.large.control_out = SendAccount(kControlCredits);
  link.large.answers = 0;
  link.large.reads.reset();
  on_.large.end_session(link, error);
  // Only contexts that were about to send are told.
  if (link.state == LinkState::kUp && (link.theirs.asked != 0 || link.say.open != 0)) {
    link.routes.untold = link.routes.routed;
  } else {
    link.routes.untold |= link.routes.waiting;
  }
  tell_contexts(link);
  link.error = error;
  link.lost |= lost;
  link.were_open = link.theirs.opened;
  link.keys.former = link.keys.remote;
  ++ended_;
  link.routes.waiting = 0;
  link.state = LinkState::kIdle;
  link.theirs = {};
  link.say = {.listed = link.say.listed};
  link.clock = {.watched = link.clock.watched, .again_ns = link.clock.again_ns};
  link.keys.remote = 0;
  link.next_out = 0;
  ++link.session;
  on_.peers.renew(link);
}

/// Notify contexts that use send_tiny(), which does not check for ended sessions.
void Sessions::tell_contexts(const Link& link) const {
  for (uint64_t left = link.routes.routed; left != 0; left &= left - 1) {
    const ContextSlot* const context = on_.contexts[static_cast<uint32_t>(__builtin_ctzll(left))];
    if (context != nullptr && context->on_session_end) {
      context->on_session_end();
    }
  }
}

void Sessions::close_context(uint16_t id) {
  const uint64_t bit = 1ull << id;
  for (uint32_t i = 0; i < on_.peers.count(); ++i) {
    Link& link = on_.peers.at(i);
    link.routes.routed &= ~bit;
    link.routes.waiting &= ~bit;
    link.routes.untold &= ~bit;
    link.lost &= ~bit;
    std::erase_if(link.unsent, [&](const Again& message) { return message.header().from() == id; });
    link.say.credit &= ~bit;
    link.say.records &= ~bit;
    on_.large.close_context(link, id);
    if (!link.in[id].open) {
      continue;
    }
    // The limit stays until the peer knows: headers of our messages still carry it.
    on_.inflows.close(link, id);
    link.say.refused |= bit;
    on_.peers.want(link);
  }
}

}  // namespace rio::msg
