// What is sent: at once if there is room and nothing waits before it, else in its turn.
#include <algorithm>
#include <cerrno>

#include "lib/msg/clock.hpp"
#include "lib/tag/endpoint.hpp"

namespace rio::tag {

int Endpoint::send_any(Address to, uint64_t bits, Immediate immediate, const void* data,
                       uint64_t length_bytes, bool sync, SendRequest& request) {
  if (length_bytes > kLengthMax || (data == nullptr && length_bytes != 0)) {
    return -EINVAL;
  }
  request.status = 0;
  request.bits = bits;
  request.immediate = immediate;
  request.data = static_cast<const uint8_t*>(data);
  request.length_bytes = length_bytes;
  request.sent_bytes = 0;
  request.to = to;
  request.sync = sync;
  request.large = nullptr;
  request.stage = Stage::kWaiting;
  return to == self() ? send_self(request) : send_peer(request);
}

int Endpoint::send_peer(SendRequest& request) {
  if (send_again_ && (request.sync || request.length_bytes > msg::kTinyBytesMax)) {
    port_.look_for_gone();  // so that the send is not begun with a process that is gone
  }
  Peer* const peer = this->peer(request.to);
  const int unsent = peer != nullptr ? error_of(*peer) : -EINVAL;
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
    fail_sends(*peer, rc);
    look_at_sessions();
    peer->error = 0;  // the caller hears of it now
    return rc;
  }
  direct_ = {request.to, peer->route};
  return request.stage == Stage::kIdle ? 1 : 0;
}

/// @return 0: it is queued; -EAGAIN: it may not wait for a peer that is new.
int Endpoint::wait_for(Peer& peer, SendRequest& request) {
  if (!request.may_wait && is_new(peer)) {
    // Else it would be asked for, and then no less wait for us to come back.
    peer.parts.forget_tries();
    request.stage = Stage::kIdle;
    return -EAGAIN;
  }
  peer.queue.append(request);
  ++stats_.stalled;
  want(peer);
  return 0;
}

/// Whether the peer was asked to let us in, and still may do so soon. What it says may be heard in
/// the call that then finds no room, so it is new until something was sent.
bool Endpoint::is_new(Peer& peer) const {
  constexpr uint64_t kNsPerMs = 1'000'000;
  if (peer.used && peer.route.link->has_opened(context_of(peer.address))) {
    return false;
  }
  const uint64_t now = msg::now_ns();
  peer.asked_ns = peer.asked_ns == 0 ? now : peer.asked_ns;
  return now - peer.asked_ns < new_peer_ms_ * kNsPerMs;
}

/// What was not told yet of this peer.
int Endpoint::error_of(Peer& peer) {
  if (peer.session != peer.route.link->session) {
    look_at_sessions();
  }
  return std::exchange(peer.error, 0);
}

/// Send what is left of it. @return 0: all, or it was asked for; -EAGAIN; or why it cannot be.
int Endpoint::push(Peer& peer, SendRequest& request) {
  while (request.large == nullptr &&
         (request.stage == Stage::kWaiting || request.sent_bytes != request.length_bytes)) {
    const int rc = push_part(peer, request);
    if (rc == 0) {
      request.stage = Stage::kMoving;
      continue;
    }
    if (rc == -ENOMEM) {
      return -EAGAIN;
    }
    const bool final = rc == -EAGAIN || rc == -ECONNREFUSED || rc == -ENODEV;
    // Why a session ended that is known to have ended: it was told before.
    return final || peer.session != peer.route.link->session ? rc : -EAGAIN;
  }
  peer.used = true;
  if (request.large == nullptr) {
    request.stage = Stage::kIdle;
  }
  return 0;
}

int Endpoint::push_part(Peer& peer, SendRequest& request) {
  if (peer.session != peer.route.link->session) {
    return peer.route.link->error;
  }
  if (request.stage == Stage::kWaiting) {
    if (request.length_bytes > eager_bytes_) {
      return push_large(peer, request, false);
    }
    const uint32_t parts = parts_of(request.length_bytes, request.immediate.there);
    const bool ask = request.sync || peer.parts.must_ask(peer.route, parts);
    return ask ? push_large(peer, request, true) : push_first(peer, request);
  }
  return peer.parts.go_on(peer.route, request.data, request.length_bytes, &request.sent_bytes);
}

int Endpoint::push_first(Peer& peer, SendRequest& request) {
  const uint64_t total = request.length_bytes;
  const Immediate immediate = request.immediate;
  const uint32_t parts = parts_of(total, immediate.there);
  if (parts == 1) {
    const auto count = static_cast<uint32_t>(total);
    const uint64_t head[] = {request.bits, immediate.value};
    msg::Route route = peer.route;
    route.word = msg::with_kind(route.word, kind_of(msg::Kind::kData, immediate.there));
    const int rc = port_.send(route, head, head_bytes(immediate.there), request.data, count);
    request.sent_bytes = rc == 0 ? count : 0;
    return rc;
  }
  const int rc = peer.parts.begin(peer.route, kind_of(msg::Kind::kFirst, immediate.there),
                                  {request.bits, total, immediate.value}, request.data, parts);
  request.sent_bytes = rc == 0 ? kFirstBytesMax : 0;
  return rc;
}

/// @return 0: nothing waits any more; -EAGAIN; or why nothing can be sent there.
int Endpoint::pump(Peer& peer) {
  if (peer.session != peer.route.link->session) {
    return -EAGAIN;  // look_at_sessions() is next
  }
  int rc = 0;
  while (rc == 0 && peer.queue.first() != nullptr) {
    auto& request = static_cast<SendRequest&>(*peer.queue.first());
    peer.queue.remove(request);
    rc = push(peer, request);
    if (rc != 0) {
      peer.queue.prepend(request);
    } else if (request.stage == Stage::kIdle) {
      finish(request, 0);
    }
  }
  return rc;
}

void Endpoint::send_waiting() {
  for (size_t i = 0; i < senders_.size();) {
    Peer& peer = *senders_[i];
    const int rc = pump(peer);
    const bool known = peer.session == peer.route.link->session;
    if (rc != 0 && rc != -EAGAIN && known) {
      fail_sends(peer, rc);
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

void Endpoint::want(Peer& peer) {
  direct_ = nobody();
  if (!peer.listed) {
    peer.listed = true;
    senders_.push_back(&peer);
  }
}

}  // namespace rio::tag
