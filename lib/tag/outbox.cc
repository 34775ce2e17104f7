#include "lib/tag/outbox.hpp"

#include <cerrno>

#include "base/clock.hpp"

namespace rio::tag {
namespace {

/// An account without credit, so that a send to it takes the slow path.
msg::Outflow full;

}  // namespace

Outbox::Direct Outbox::nobody() {
  return {kAnySource, {nullptr, &full, nullptr, 0}};
}

bool Outbox::send_whole(Address to, uint64_t bits, Immediate immediate, const void* data,
                        uint64_t length_bytes) {
  if (to != direct_.address || length_bytes > eager_bytes_ ||
      length_bytes > msg::kPartBytesMax - head_bytes(immediate.there) || data == nullptr)
      [[unlikely]] {
    return false;
  }
  const auto count = static_cast<uint32_t>(length_bytes);
  return immediate.there
             ? msg::MessagePort::send_whole(direct_.route, bits, immediate.value, data, count)
             : msg::MessagePort::send_whole(direct_.route, bits, data, count);
}

int Outbox::send(SendRequest& request, SessionWatch& sessions) {
  const bool is_whole = request.length_bytes <= msg::kPartBytesMax - head_of(request);
  if (state_.config.send_again && (request.sync || !is_whole)) {
    // Only whole messages go to the next process if this one is gone: begin no other one with it.
    port_.look_for_gone();
  }
  Peer* const peer = state_.peers.get(request.to);
  if (peer != nullptr && peer->session != peer->route.link->session) {
    sessions.look();
  }
  const int unsent = peer != nullptr ? std::exchange(peer->error, 0) : -EINVAL;
  if (unsent != 0) {
    request.stage = Stage::kIdle;
    return unsent;
  }
  int rc = peer->has_to_send() ? -EAGAIN : push(*peer, request);
  if (rc == -ECONNREFUSED && peer->used && !is_lost(*peer)) {
    peer->used = false;  // its context has closed since; ask for the present one
    rc = push(*peer, request);
  }
  if (rc == -EAGAIN) {
    return wait_for(*peer, request);
  }
  if (rc != 0) {
    request.stage = Stage::kIdle;
    fail(*peer, rc);
    sessions.look();
    peer->error = 0;  // the caller hears of it now
    return rc;
  }
  direct_ = {request.to, peer->route};
  return request.stage == Stage::kIdle ? 1 : 0;
}

/// @return 0: it is queued; -EAGAIN: it may not wait for a peer that is new.
int Outbox::wait_for(Peer& peer, SendRequest& request) {
  if (!request.may_wait && is_new(peer)) {
    // Else it would be asked for, and then no less wait for us to come back.
    peer.parts.forget_tries();
    request.stage = Stage::kIdle;
    return -EAGAIN;
  }
  peer.queue.append(request);
  ++state_.stats.stalled;
  want(peer);
  return 0;
}

/// Whether the peer was asked to let us in, and still may do so soon. Its answer may be heard in
/// the call that then finds no room, so the peer is new until something was sent.
bool Outbox::is_new(Peer& peer) const {
  constexpr uint64_t kNsPerMs = 1'000'000;
  if (peer.used && peer.route.link->has_opened(context_of(peer.address))) {
    return false;
  }
  const uint64_t now = base::now_ns();
  peer.asked_ns = peer.asked_ns == 0 ? now : peer.asked_ns;
  return now - peer.asked_ns < state_.config.new_peer_ms * kNsPerMs;
}

/// Send what is left of it. @return 0: all, or it was asked for; -EAGAIN; or why it cannot be.
int Outbox::push(Peer& peer, SendRequest& request) {
  while (request.large == nullptr &&
         (request.stage == Stage::kWaiting || request.sent_bytes != request.length_bytes)) {
    const int rc = push_part(peer, request);
    if (rc == 0) {
      request.stage = Stage::kMoving;
      continue;
    }
    if (!tagged_) {
      return rc;  // the caller is told by each send, also what MessagePort::send() tells it
    }
    if (rc == -ENOMEM) {
      return -EAGAIN;
    }
    const bool final = rc == -EAGAIN || rc == -ECONNREFUSED || rc == -ENODEV;
    // Why a session ended that is known to have ended: it was told before.
    return final || peer.session != peer.route.link->session ? rc : -EAGAIN;
  }
  peer.used = tagged_;
  if (request.large == nullptr) {
    request.stage = Stage::kIdle;
  }
  return 0;
}

int Outbox::push_part(Peer& peer, SendRequest& request) {
  if (peer.session != peer.route.link->session) {
    return peer.route.link->error;
  }
  if (request.stage == Stage::kWaiting) {
    const uint32_t parts = parts_of(request.length_bytes, msg::kPartBytesMax - head_of(request));
    if (is_moved(peer, request.length_bytes, parts)) {
      return large_.ask(peer, request, false);
    }
    const bool may_ask = tagged_ || parts != 1;
    const bool ask = request.sync || (may_ask && peer.parts.must_ask(peer.route, parts));
    return ask ? large_.ask(peer, request, true) : push_first(peer, request, parts);
  }
  return peer.parts.go_on(peer.route, request.data, request.length_bytes, &request.sent_bytes);
}

/// Whether a message is asked for and moved, and not copied.
bool Outbox::is_moved(const Peer& peer, uint64_t length_bytes, uint32_t parts) const {
  if (length_bytes <= std::min(read_bytes_, eager_bytes_) ||
      (length_bytes <= eager_bytes_ && !msg::MessagePort::reads_directly(*peer.route.link))) {
    return false;
  }
  return length_bytes > lone_bytes_ || peer.route.out->available() < parts ||
         !msg::MessagePort::is_idle(*peer.route.link);
}

int Outbox::push_first(Peer& peer, SendRequest& request, uint32_t parts) {
  const uint64_t total = request.length_bytes;
  const Immediate immediate = request.immediate;
  if (parts == 1) {
    const auto count = static_cast<uint32_t>(total);
    const uint64_t head[] = {request.bits, immediate.value};
    msg::Route route = peer.route;
    route.word = msg::with_kind(route.word, kind_of(msg::Kind::kData, immediate.there));
    const int rc = port_.send(route, head, head_of(request), request.data, count);
    request.sent_bytes = rc == 0 ? count : 0;
    return rc;
  }
  const int rc = peer.parts.begin(peer.route, kind_of(msg::Kind::kFirst, immediate.there),
                                  {request.bits, total, immediate.value}, request.data, parts);
  request.sent_bytes = rc == 0 ? kFirstBytesMax : 0;
  return rc;
}

/// @return 0: nothing waits any more; -EAGAIN; or why nothing can be sent there.
int Outbox::pump(Peer& peer) {
  if (peer.session != peer.route.link->session) {
    return -EAGAIN;  // the endpoint looks at sessions next
  }
  int rc = 0;
  while (rc == 0 && peer.queue.first() != nullptr) {
    auto& request = static_cast<SendRequest&>(*peer.queue.first());
    peer.queue.remove(request);
    rc = push(peer, request);
    if (rc != 0) {
      peer.queue.prepend(request);
    } else if (request.stage == Stage::kIdle) {
      state_.completions.finish(request, 0);
    }
  }
  return rc;
}

void Outbox::send_waiting() {
  for (size_t i = 0; i < senders_.size();) {
    Peer& peer = *senders_[i];
    const int rc = pump(peer);
    const bool known = peer.session == peer.route.link->session;
    if (rc != 0 && rc != -EAGAIN && known) {
      fail(peer, rc);
    }
    if (peer.has_to_send()) {
      ++i;
      continue;
    }
    peer.listed = false;
    senders_[i] = senders_.back();
    senders_.pop_back();
  }
}

void Outbox::want(Peer& peer) {
  end_direct();
  if (!peer.listed) {
    peer.listed = true;
    senders_.push_back(&peer);
  }
}

void Outbox::cancel(SendRequest& request) {
  state_.peers.get(request.to)->queue.remove(request);
  state_.completions.finish(request, -ECANCELED);
}

void Outbox::end_session(Peer& peer, int error) {
  if (may_still_send(peer, error)) {
    peer.used = false;
  } else {
    fail(peer, error);
  }
}

/// Whether queued sends can go to the peer's present process: nothing was sent to this address in
/// the ended session, since the peer had not admitted this endpoint.
bool Outbox::may_still_send(const Peer& peer, int error) const {
  const bool was_open = (peer.route.link->were_open >> context_of(peer.address) & 1) != 0;
  return error == -ECONNRESET && !was_open && !is_lost(peer) && !peer.incoming.active();
}

/// Handle what an ended session left behind, whether or not the end is news.
void Outbox::take_losses(msg::Link& link) {
  const uint64_t bit = 1ull << state_.context->id();
  if (!state_.config.send_again || (link.unsent.empty() && (link.lost & bit) == 0)) {
    return;
  }
  bool lost = (std::exchange(link.lost, link.lost & ~bit) & bit) != 0;
  for (auto message = link.unsent.rbegin(); message != link.unsent.rend(); ++message) {
    const msg::HeaderWords header = message->header();
    if (header.from() == state_.context->id()) {
      Peer* const to = state_.peers.get(address(link.dest_id(), header.to()));
      lost = to == nullptr || !send_again(*to, *message) || lost;
    }
  }
  std::erase_if(link.unsent, [&](const msg::Again& message) {
    return message.header().from() == state_.context->id();
  });
  if (lost) {
    state_.peers.for_each_of(link, [](Peer& peer) { peer.error = -ECONNRESET; });
  }
}

/// Queue a message again, before all waiting sends. @return false: it is lost.
bool Outbox::send_again(Peer& peer, const msg::Again& message) {
  const msg::HeaderWords header = message.header();
  const uint32_t head = head_bytes(has_immediate(header.kind()));
  const uint8_t* const at = message.bytes.data() + msg::kHeaderBytes;
  const uint64_t bytes = message.bytes.size() - msg::kHeaderBytes - head;
  SendRequest* const request = state_.config.send_again(at + head, bytes);
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

void Outbox::fail(Peer& peer, int error) {
  peer.parts.forget();
  // A send that waits is told; if all seemed to be sent, the next send is.
  const bool waits = peer.queue.first() != nullptr;
  // Otherwise an error that was not reported yet stays to be reported.
  if ((std::exchange(peer.used, false) && is_lost(peer)) || waits) {
    peer.error = waits ? 0 : error;
  }
  if (waits) {
    peer.route.link->routes.untold &= ~(1ull << state_.context->id());
  }
  while (Request* const request = peer.queue.first()) {
    peer.queue.remove(*request);
    state_.completions.finish(*request, error);
  }
  end_direct();
}

}  // namespace rio::tag
