// Peers that have gone: what was under way with them ends.
#include "base/log.hpp"
#include "lib/tag/endpoint.hpp"

namespace rio::tag {

/// The session of a link that what we know belongs to.
uint32_t& Endpoint::session_of(const msg::Link& link) {
  constexpr uint32_t kFirstSession = 1;
  if (link.index() >= sessions_.size()) {
    sessions_.resize(link.index() + 1, kFirstSession);
  }
  return sessions_[link.index()];
}

/// Some session has ended. What came before that is taken first, and is not lost.
[[gnu::noinline]] void Endpoint::look_at_sessions() {
  const msg::Inbox& inbox = context_->inbox();
  sessions_ended_ = port_.sessions_ended();
  while (!inbox.empty()) {
    const msg::Origin origin = inbox.origin(0);
    if (static_cast<int32_t>(origin.session - session_of(*origin.link)) > 0) {
      link_ended(*origin.link, origin.session, origin.link->error);
    }
    arrive_other(inbox.at(0), origin);
  }
  for (uint32_t i = 0; i < port_.link_count(); ++i) {
    msg::Link& link = port_.link_at(i);
    if (session_of(link) != link.session) {
      link_ended(link, link.session, link.error);
    }
    take_losses(link);
  }
  if (port_.error() != 0) {
    fail_all(port_.error());
  }
}

/// @param session that has begun instead.
void Endpoint::link_ended(msg::Link& link, uint32_t session, int error) {
  if (session_of(link) == session) {
    return;
  }
  session_of(link) = session;
  direct_ = nobody();
  for (auto& [address, peer] : peers_) {
    if (peer->route.link == &link) {
      peer->session = session;
      peer->asked_ns = 0;
      fail_incoming(*peer, error);
      if (may_still_send(*peer, error)) {
        peer->used = false;
      } else {
        fail_sends(*peer, error);
      }
    }
  }
  link.lost &= ~(1ull << context_->id());
  for (Message* message = matcher_.messages().first(); message != nullptr;) {
    Message* const next = MessageQueue::next(*message);
    auto& unexpected = static_cast<Unexpected&>(*message);
    if (unexpected.request != nullptr && unexpected.request->origin.link == &link &&
        unexpected.request->origin.session != session) {
      static_cast<void>(matcher_.discard(unexpected));
      drop(unexpected);
    }
    message = next;
  }
  fail_receives(
      [&](const Receive& receive) {
        return receive.source != kAnySource && receive.source != self() &&
               dest_id_of(receive.source) == link.dest_id();
      },
      error);
}

/// Whether queued sends can go to the peer's present process: nothing was sent to this address in
/// the ended session, since the peer had not admitted this endpoint.
bool Endpoint::may_still_send(const Peer& peer, int error) const {
  const bool was_open = (peer.route.link->were_open >> context_of(peer.address) & 1) != 0;
  return error == -ECONNRESET && !was_open && !is_lost(peer) && !peer.incoming.active();
}

/// Handle what an ended session left behind, whether or not the end is news.
void Endpoint::take_losses(msg::Link& link) {
  const uint64_t bit = 1ull << context_->id();
  if (!send_again_ || (link.unsent.empty() && (link.lost & bit) == 0)) {
    return;
  }
  bool lost = (std::exchange(link.lost, link.lost & ~bit) & bit) != 0;
  for (auto message = link.unsent.rbegin(); message != link.unsent.rend(); ++message) {
    const msg::HeaderWords header = msg::load_header(message->bytes.data());
    if (header.from() == context_->id()) {
      Peer* const to = peer(address(link.dest_id(), header.to()));
      lost = to == nullptr || !send_again(*to, *message) || lost;
    }
  }
  std::erase_if(link.unsent, [&](const msg::Again& message) {
    return msg::load_header(message.bytes.data()).from() == context_->id();
  });
  for (auto& [address, peer] : peers_) {
    if (lost && peer->route.link == &link) {
      peer->error = -ECONNRESET;
    }
  }
}

/// Queue a message again, before all waiting sends. @return false: it is lost.
bool Endpoint::send_again(Peer& peer, const msg::Again& message) {
  const msg::HeaderWords header = msg::load_header(message.bytes.data());
  const uint32_t head = head_bytes(has_immediate(header.kind()));
  const uint8_t* const at = message.bytes.data() + msg::kHeaderBytes;
  const uint64_t bytes = message.bytes.size() - msg::kHeaderBytes - head;
  SendRequest* const request = send_again_(at + head, bytes);
  if (request == nullptr) {
    return false;
  }
  request->bits = load_bits(at);
  request->immediate = {};
  if (head != kBitsBytes) {
    request->immediate = {load_bits(at + kBitsBytes), true};
  }
  request->length_bytes = bytes;
  request->sent_bytes = 0;
  request->large = nullptr;
  request->to = peer.address;
  request->status = 0;
  request->stage = Stage::kWaiting;
  peer.queue.prepend(*request);
  want(peer);
  return true;
}

void Endpoint::forget_former(uint32_t dest_id) {
  const msg::Link* const link = port_.known_link(dest_id);
  if (link == nullptr) {
    return;
  }
  look_at_sessions();
  for (auto& [address, peer] : peers_) {
    if (peer->route.link == link) {
      if (!peer->used) {
        fail_sends(*peer, -ECONNRESET);  // that session was with the former process
      }
      peer->error = 0;
    }
  }
  disown_messages(*link);
}

/// Change the source of messages that are not of the present session. They keep their order.
void Endpoint::disown_messages(const msg::Link& link) {
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

void Endpoint::fail_sends(Peer& peer, int error) {
  peer.parts.forget();
  // Who waits hears of it there; if all seemed to be sent, the next one who sends.
  const bool waits = peer.queue.first() != nullptr;
  // Otherwise an error that was not reported yet stays to be reported.
  if ((std::exchange(peer.used, false) && is_lost(peer)) || waits) {
    peer.error = waits ? 0 : error;
  }
  while (Request* const request = peer.queue.first()) {
    peer.queue.remove(*request);
    finish(*request, error);
  }
  direct_ = nobody();
}

void Endpoint::fail_incoming(Peer& peer, int error) {
  if (!peer.incoming.active()) {
    return;
  }
  const Incoming incoming = std::exchange(peer.incoming, {});
  --incoming_;
  if (incoming.to != nullptr) {
    finish(*incoming.to, error);
  } else if (incoming.kept->place == Place::kClaimed) {
    incoming.kept->status = error;  // who receives it hears of it
  } else {
    static_cast<void>(matcher_.discard(*incoming.kept));
    drop(*incoming.kept);
  }
}

template <class Wanted>
void Endpoint::fail_receives(Wanted&& wanted, int error) {
  auto gone = matcher_.receives().cancel_if(wanted);
  for (Receive* receive = gone.first(); receive != nullptr;) {
    Receive* const next = ReceiveQueue::Gone::next(*receive);
    finish(static_cast<RecvRequest&>(*receive), error);
    receive = next;
  }
}

/// Peers that have as many unanswered requests here as they may. If a receive could match what is
/// behind these, more are let in; where that cannot be, it ends. One of any source goes on: others
/// have windows of their own.
void Endpoint::look_at_crowd() {
  const uint64_t posted = matcher_.receives().posted() + 1;
  std::erase_if(crowd_, [&](Peer* peer) {
    const msg::Origin origin = {peer->route.link, peer->session, context_of(peer->address)};
    bool over = context_->requests_left(origin);
    if (!over && peer->looked_at != posted) {
      peer->looked_at = posted;
      const bool awaited = matcher_.receives().any_of([&](const Receive& receive) {
        return receive.source == peer->address || receive.source == kAnySource;
      });
      over = awaited && context_->lend_requests(origin);
      if (awaited && !over) {
        base::log_warning("context %u: too many messages of destID %u wait for receives",
                          context_->id(), dest_id_of(peer->address));
        fail_receives([&](const Receive& receive) { return receive.source == peer->address; },
                      -ENOBUFS);
      }
    }
    peer->crowded = !over;
    cold_ -= over ? 1 : 0;
    return over;
  });
}

/// The same for a probe, as far as it can be.
void Endpoint::let_in(Address source) {
  for (const Peer* peer : crowd_) {
    if (source == kAnySource || source == peer->address) {
      static_cast<void>(
          context_->lend_requests({peer->route.link, peer->session, context_of(peer->address)}));
    }
  }
}

/// The card is gone, or this endpoint closes.
void Endpoint::fail_all(int error) {
  for (auto& [address, peer] : peers_) {
    fail_incoming(*peer, error);
    fail_sends(*peer, error);
  }
  fail_receives([](const Receive&) { return true; }, error);
  fail_self(error);
}

}  // namespace rio::tag
