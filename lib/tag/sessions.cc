#include "lib/tag/sessions.hpp"

namespace rio::tag {

Sessions::Sessions(msg::MessagePort& port, msg::MessageContext& context, Matcher& matcher,
                   Completions& completions, Peers& peers, UnexpectedStore& store, Intake& intake,
                   Outbox& outbox, bool tagged)
    : port_(port),
      ended_(port.sessions_ended()),
      context_(context),
      matcher_(matcher),
      completions_(completions),
      peers_(peers),
      store_(store),
      intake_(intake),
      outbox_(outbox),
      tagged_(tagged) {
  for (uint32_t i = 0; i < port.link_count(); ++i) {
    peers.session_of(port.link_at(i)) = port.link_at(i).session;
  }
}

[[gnu::noinline]] void Sessions::look() {
  const msg::Inbox& inbox = context_.inbox();
  const uint64_t ended = port_.sessions_ended();
  while (tagged_ && !inbox.empty()) {
    const msg::Origin origin = inbox.origin(0);
    meet(origin);
    intake_.arrive(inbox.at(0), origin);
  }
  if (!inbox.empty()) {
    peers_.for_each(
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
    if (peers_.session_of(link) != link.session) {
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
  if (peers_.session_of(link) == session) {
    return;
  }
  peers_.session_of(link) = session;
  outbox_.end_direct();
  peers_.for_each_of(link, [&](Peer& peer) {
    intake_.fail_incoming(peer, error);
    end_sends(peer, session, error);
  });
  link.lost &= ~(1ull << context_.id());
  for (Message* message = matcher_.messages().first(); message != nullptr;) {
    Message* const next = MessageQueue::next(*message);
    auto& unexpected = static_cast<Unexpected&>(*message);
    if (unexpected.request != nullptr && unexpected.request->origin.link == &link &&
        unexpected.request->origin.session != session) {
      store_.discard(unexpected);
    }
    message = next;
  }
  completions_.fail(
      matcher_.receives(),
      [&](const Receive& receive) {
        return receive.source != kAnySource && receive.source != peers_.self() &&
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
  peers_.for_each_of(*link, [this](Peer& peer) {
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
  Fifo<Message, &Message::by_age> old;
  for (Message* message = matcher_.messages().first(); message != nullptr;) {
    Message* const next = MessageQueue::next(*message);
    if (is_old(*message)) {
      static_cast<void>(matcher_.discard(*message));
      old.append(*message);
    }
    message = next;
  }
  while (Message* const message = old.pop()) {
    message->source = kFormerSource;
    matcher_.keep(*message);
  }
  for (Message* message = matcher_.messages().first_claimed(); message != nullptr;
       message = MessageQueue::next(*message)) {
    message->source = is_old(*message) ? kFormerSource : message->source;
  }
}

void Sessions::fail_all(int error) {
  peers_.for_each([&](Peer& peer) {
    intake_.fail_incoming(peer, error);
    outbox_.fail(peer, error);
  });
  completions_.fail(
      matcher_.receives(), [](const Receive&) { return true; }, error);
  store_.fail_senders(error);
}

}  // namespace rio::tag
