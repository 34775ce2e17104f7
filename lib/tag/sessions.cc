#include "lib/tag/sessions.hpp"

namespace rio::tag {

Sessions::Sessions(EngineState& state, UnexpectedStore& store, Intake& intake, Outbox& outbox)
    : port_(state.port),
      ended_(state.port.sessions_ended()),
      state_(state),
      store_(store),
      intake_(intake),
      outbox_(outbox) {
  for (uint32_t i = 0; i < port_.link_count(); ++i) {
    state_.peers.session_of(port_.link_at(i)) = port_.link_at(i).session;
  }
}

[[gnu::noinline]] void Sessions::look() {
  const msg::Inbox& inbox = state_.context->inbox();
  const uint64_t ended = port_.sessions_ended();
  while (state_.tagged && !inbox.empty()) {
    const msg::Origin origin = inbox.origin(0);
    meet(origin);
    intake_.arrive(inbox.at(0), origin);
  }
  if (!inbox.empty()) {
    state_.peers.for_each(
        [this](Peer& peer) { end_sends(peer, peer.route.link->session, peer.route.link->error); });
  } else {
    ended_ = ended;
    end_all();
  }
  if (port_.error() != 0) {
    fail_all(port_.error());
  }
}

void Sessions::end_all() {
  for (uint32_t i = 0; i < port_.link_count(); ++i) {
    msg::Link& link = port_.link_at(i);
    if (state_.peers.session_of(link) != link.session) {
      end(link, link.session, link.error);
    }
    outbox_.take_losses(link);
  }
}

/// End what waits to be sent to a peer in a session before this one.
void Sessions::end_sends(Peer& peer, uint32_t session, int error) {
  if (static_cast<int32_t>(session - peer.session) > 0) {
    peer.session = session;
    peer.asked_ns = 0;
    outbox_.end_session(peer, error);
  }
}

void Sessions::end(msg::Link& link, uint32_t session, int error) {
  if (state_.peers.session_of(link) == session) {
    return;
  }
  state_.peers.session_of(link) = session;
  outbox_.end_direct();
  state_.peers.for_each_of(link, [&](Peer& peer) {
    intake_.fail_incoming(peer, error);
    end_sends(peer, session, error);
  });
  link.lost &= ~(1ull << state_.context->id());
  state_.matcher.messages().waiting().for_each([&](Message& message) {
    auto& unexpected = static_cast<Unexpected&>(message);
    if (unexpected.request != nullptr && unexpected.request->origin.link == &link &&
        unexpected.request->origin.session != session) {
      store_.discard(unexpected);
    }
  });
  state_.completions.fail(
      state_.matcher.receives(),
      [&](const Receive& receive) {
        return receive.source != kAnySource && receive.source != state_.peers.self() &&
               dest_id_of(receive.source) == link.dest_id();
      },
      error);
}

void Sessions::forget_former(uint32_t dest_id) {
  const msg::Link* const link = port_.known_link(dest_id);
  if (link == nullptr) {
    return;
  }
  look();
  state_.peers.for_each_of(*link, [this](Peer& peer) {
    if (!peer.used) {
      outbox_.fail(peer, -ECONNRESET);  // that session was with the former process
    }
    peer.error = 0;
  });
  disown_messages(*link);
}

/// Change the source of messages that are not of the present session. They keep their order.
void Sessions::disown_messages(const msg::Link& link) {
  const auto is_old = [&](const Message& message) {
    const auto& unexpected = static_cast<const Unexpected&>(message);
    return unexpected.first != nullptr && unexpected.first->delivery.origin.link == &link &&
           unexpected.first->delivery.origin.session != link.session;
  };
  const MessageQueue& messages = state_.matcher.messages();
  MessageQueue::List old;
  messages.waiting().for_each([&](Message& message) {
    if (is_old(message)) {
      static_cast<void>(state_.matcher.discard(message));
      old.append(message);
    }
  });
  while (Message* const message = old.pop()) {
    message->source = kFormerSource;
    state_.matcher.keep(*message);
  }
  messages.claimed().for_each(
      [&](Message& message) { message.source = is_old(message) ? kFormerSource : message.source; });
}

void Sessions::fail_all(int error) {
  state_.peers.for_each([&](Peer& peer) {
    intake_.fail_incoming(peer, error);
    outbox_.fail(peer, error);
  });
  state_.completions.fail(
      state_.matcher.receives(), [](const Receive&) { return true; }, error);
  store_.fail_senders(error);
}

}  // namespace rio::tag
