// What is sent: at once if there is room and nothing waits before it, else in its turn.
#include <algorithm>
#include <cerrno>

#include "lib/tag/endpoint.hpp"

namespace rio::tag {

using msg::Kind;

int Endpoint::send_any(Address to, uint64_t bits, const void* data, uint64_t length_bytes,
                       bool sync, SendRequest& request) {
  Peer* const peer = length_bytes <= kLengthMax ? this->peer(to) : nullptr;
  if (peer == nullptr) {
    return -EINVAL;
  }
  if (peer->session != peer->route.link->session) {
    look_at_sessions();
  }
  if (peer->error != 0) {
    return std::exchange(peer->error, 0);
  }
  request.status = 0;
  request.bits = bits;
  request.data = static_cast<const uint8_t*>(data);
  request.length_bytes = length_bytes;
  request.sent_bytes = 0;
  request.to = to;
  request.sync = sync;
  request.large = nullptr;
  request.stage = Stage::kWaiting;
  if (peer->has_to_send()) {
    peer->queue.append(request);
    ++stats_.stalled;
    return 0;
  }
  const int rc = push(*peer, request);
  if (rc == -EAGAIN) {
    peer->queue.append(request);
    ++stats_.stalled;
    want(*peer);
    return 0;
  }
  if (rc != 0) {
    request.stage = Stage::kIdle;
    fail_sends(*peer, rc);
    look_at_sessions();
    peer->error = 0;  // the caller hears of it now
    return rc;
  }
  direct_ = {to, peer->route};
  return request.stage == Stage::kIdle ? 1 : 0;
}

/// Send what is left of it. @return 0: all; it is in no queue, or in that of the unacknowledged;
/// -EAGAIN; or why it cannot be.
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
  if (request.large != nullptr) {
    return 0;  // moving
  }
  request.stage = request.sync ? Stage::kSent : Stage::kIdle;
  if (request.sync) {
    peer.unacked.append(request);
  }
  return 0;
}

int Endpoint::push_part(Peer& peer, SendRequest& request) {
  if (peer.session != peer.route.link->session) {
    return peer.route.link->error;
  }
  if (request.stage == Stage::kWaiting) {
    if (request.length_bytes > eager_bytes_) {
      return push_large(peer, request);
    }
    return push_first(peer, request);
  }
  const uint64_t left = request.length_bytes - request.sent_bytes;
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(left, kMoreBytesMax));
  const Kind kind = count == left ? Kind::kLast : Kind::kMore;
  const int rc = port_.send(peer.route_of(kind), request.data + request.sent_bytes, count);
  request.sent_bytes += rc == 0 ? count : 0;
  return rc;
}

int Endpoint::push_first(Peer& peer, SendRequest& request) {
  const uint64_t total = request.length_bytes;
  if (!request.sync && total <= kDataBytesMax) {
    const auto count = static_cast<uint32_t>(total);
    const int rc = port_.send(peer.route, &request.bits, kBitsBytes, request.data, count);
    request.sent_bytes = rc == 0 ? count : 0;
    return rc;
  }
  const auto count = static_cast<uint32_t>(std::min<uint64_t>(total, kFirstBytesMax));
  const uint32_t id = request.sync ? peer.next_sync_id : 0;
  const FirstHeader header = {request.bits, total | (request.sync ? FirstHeader::kSync : 0), id};
  const int rc =
      port_.send(peer.route_of(Kind::kFirst), &header, sizeof(header), request.data, count);
  if (rc == 0) {
    request.sent_bytes = count;
    request.sync_id = id;
    peer.next_sync_id += request.sync ? 1 : 0;
  }
  return rc;
}

int Endpoint::push_acks(Peer& peer) {
  size_t sent = 0;
  int rc = 0;
  for (; sent < peer.acks.size() && rc == 0; sent += rc == 0 ? 1 : 0) {
    const FirstHeader header = {0, FirstHeader::kAck, peer.acks[sent]};
    rc = port_.send(peer.route_of(Kind::kFirst), &header, sizeof(header));
  }
  peer.acks.erase(peer.acks.begin(), peer.acks.begin() + static_cast<std::ptrdiff_t>(sent));
  return rc;
}

/// @return 0: nothing waits any more; -EAGAIN; or why nothing can be sent there.
int Endpoint::pump(Peer& peer) {
  if (peer.session != peer.route.link->session) {
    return -EAGAIN;  // look_at_sessions() is next
  }
  int rc = push_acks(peer);
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

void Endpoint::acknowledge(Address source, uint32_t id) {
  Peer& to = *peer(source);  // is known: it has sent this
  to.acks.push_back(id);
  want(to);
}

}  // namespace rio::tag
