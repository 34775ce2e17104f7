#include "lib/msg/sessions.hpp"

#include <cerrno>
#include <vector>

#include "base/log.hpp"
#include "lib/msg/clock.hpp"

namespace rio::msg {
namespace {

/// Whether we have sent our key to the peer and do not know yet that it has arrived.
[[nodiscard]] bool is_asked(const Link& link) {
  return link.state == LinkState::kHello ||
         (link.state == LinkState::kIdle && link.keys.remote != 0);
}

}  // namespace

bool Sessions::on_message(uint32_t source, Kind kind, const SessionBody& body) {
  if (kind == Kind::kHello) {
    return on_hello(source, body);
  }
  Link* const link = on_.peers.find(source);
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

bool Sessions::on_hello(uint32_t source, const SessionBody& body) {
  Link* const link = body.session != 0 ? on_.peers.find_or_make_for_stranger(source) : nullptr;
  if (link == nullptr) {
    return false;
  }
  const bool knows = body.peer == link->keys.local;
  // If both sides ask at once only one answers, or both could change their keys forever.
  if (!knows && link->state == LinkState::kHello && dest_id_ < source) {
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
  return true;
}

/// The peer's process has ended. @param not_taken null, or number of the first message that the
/// peer's new process did not receive.
void Sessions::forget_peer(Link& link, const uint32_t* not_taken) {
  if (link.state == LinkState::kUp) {
    on_.outbox.reap();  // queues failed messages for resending, or ends the session
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
  link.clock.deadline_ns = 0;
  link.rest.since_ns = now_ns();  // the peer has answered, so its silence starts again from now
  on_.peers.want(link);
}

void Sessions::reset(Link& link, int error) {
  on_.speaker.tell_unknown({link.dest_id(), link.keys.local, link.next_in(), 0});
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
  if (!on_.health.has_just_gone()) {
    return;
  }
  // The card accesses memory no more, so large data ends, too.
  on_.large.card_gone();
  if (on_.dma != nullptr) {
    on_.dma->card_gone();
  }
  for (uint32_t i = 0; i < on_.peers.count(); ++i) {
    Link& link = on_.peers.at(i);
    if (link.state == LinkState::kUp) {
      end(link, on_.health.error());
    }
  }
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
  clear(link);
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
  link.clock.stuck = false;
  link.clock.deadline_ns = 0;
  link.keys.remote = 0;
  link.next_out = 0;
  ++link.session;
  on_.peers.renew(link);
}

/// Reset numbers and credits.
void Sessions::clear(Link& link) {
  link.in.fill({});
  link.out.fill({});
  link.backlog = {};
  link.clock.missing_ns = 0;
  link.large.records_in.fill({});
  link.large.records_out.fill({});
  link.large.control_in = RecvAccount(kControlCredits);
  link.large.control_out = SendAccount(kControlCredits);
  link.large.answers = 0;
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
