#include "lib/msg/long_messages.hpp"

#include <cerrno>

#include "lib/msg/close_large.hpp"

namespace rio::msg {

LongMessages::LongMessages(MessageContext& context)
    : context_(context),
      arrivals_(context),
      port_(context.port()),
      border_bytes_(std::max<uint64_t>(context.port().profile().eager_bytes, kPartBytesMax)),
      sessions_ended_(context.port().sessions_ended()) {}

bool LongMessages::close() {
  for (auto& [key, peer] : peers_) {
    fail_sends(*peer, -ECANCELED);
  }
  arrivals_.forget_all();
  sends_.for_each([&](LongSend& send) {
    if (send.transfer.context != nullptr) {
      context_.cancel(send.transfer);
    }
  });
  receives_.for_each([&](LongReceive& receive) {
    if (receive.transfer.context != nullptr) {
      context_.cancel(receive.transfer);
    }
  });
  const bool ended = await_large(context_, sends_, receives_, [this] {
    attend();
    return under_way_ == 0;
  });
  under_way_ = 0;
  return ended;
}

/// The peer of an address, created on first use. @return null: no such address, or no memory.
LongMessages::Peer* LongMessages::peer(uint32_t dest_id, uint32_t context) {
  const uint64_t key = uint64_t{dest_id} << 32 | context;
  if (const auto known = peers_.find(key); known != peers_.end()) {
    return known->second.get();
  }
  auto made = std::make_unique<Peer>(port_);
  if (port_.route(dest_id, context, context_.id(), Kind::kData, &made->route) != 0) {
    return nullptr;
  }
  made->dest_id = dest_id;
  made->context = context;
  return peers_.emplace(key, std::move(made)).first->second.get();
}

const Route* LongMessages::route(uint32_t dest_id, uint32_t context) {
  Peer* const there = peer(dest_id, context);
  return there != nullptr ? &there->route : nullptr;
}

bool LongMessages::has_to_send(uint32_t dest_id, uint32_t context) {
  const Peer* const there = senders_.empty() ? nullptr : peer(dest_id, context);
  if (there == nullptr || there->queue.is_empty()) {
    return false;
  }
  attend();
  return !there->queue.is_empty();
}

int LongMessages::send(uint32_t dest_id, uint32_t context, const void* data, uint64_t length_bytes,
                       void* user, LongSend** out) {
  const bool sane = length_bytes <= kLongMax && (data != nullptr || length_bytes == 0);
  Peer* const to = sane ? peer(dest_id, context) : nullptr;
  LongSend* const mine = to != nullptr ? sends_.get() : nullptr;
  if (mine == nullptr) {
    return to != nullptr ? -ENOMEM : -EINVAL;
  }
  mine->data = static_cast<const uint8_t*>(data);
  mine->length_bytes = length_bytes;
  mine->dest_id = dest_id;
  mine->context = context;
  mine->user = user;
  if (!to->queue.is_empty()) {
    attend();  // this may send everything that is queued
  }
  int rc = -EAGAIN;
  if (to->queue.is_empty()) {
    to->session = to->route.link->session;
    rc = push(*to, *mine);
  }
  if (rc == 0 && !mine->asked) {
    sends_.put(mine);
    return 1;
  }
  if (rc != 0 && rc != -EAGAIN) {
    to->parts.forget();
    sends_.put(mine);
    return rc;
  }
  ++under_way_;
  if (rc != 0) {
    enqueue(*to, *mine);
  }
  *out = mine;
  return 0;
}

/// Send as much of a message as possible. @return 0: all of it or its request is sent; -EAGAIN; or
/// -errno.
int LongMessages::push(Peer& peer, LongSend& send) {
  int rc = 0;
  while (rc == 0 && !send.asked && (!send.begun || send.sent_bytes != send.length_bytes)) {
    if (peer.session != peer.route.link->session) {
      return peer.route.link->error;
    }
    rc = send.begun ? peer.parts.go_on(peer.route, send.data, send.length_bytes, &send.sent_bytes)
                    : begin(peer, send);
    send.begun = send.begun || rc == 0;
  }
  return rc;
}

/// Send a whole message, its first part, or its request.
int LongMessages::begin(Peer& peer, LongSend& send) {
  const uint64_t length = send.length_bytes;
  if (length <= kPartBytesMax) {
    const int rc = port_.send(peer.route, send.data, static_cast<uint32_t>(length));
    send.sent_bytes = rc == 0 ? length : 0;
    return rc;
  }
  const uint32_t parts = parts_of(length, kPartBytesMax);
  const bool small = length <= border_bytes_;
  if (!small || peer.parts.must_ask(peer.route, parts)) {
    send.transfer.user = &send;
    const int rc = context_.send_large(peer.route, 0, send.data, length, send.transfer, small);
    send.asked = rc == 0;
    return rc;
  }
  const int rc = peer.parts.begin(peer.route, Kind::kFirst, {0, length, 0}, send.data, parts);
  send.sent_bytes = rc == 0 ? kFirstBytesMax : 0;
  return rc;
}

void LongMessages::enqueue(Peer& peer, LongSend& send) {
  peer.queue.append(send);
  if (!peer.listed) {
    peer.listed = true;
    senders_.push_back(&peer);
  }
}

/// Send the queued messages of a peer. @return 0: the queue is empty; -EAGAIN; or -errno.
int LongMessages::pump(Peer& peer) {
  while (LongRequest* const first = peer.queue.first()) {
    auto& send = static_cast<LongSend&>(*first);
    if (const int rc = push(peer, send); rc != 0) {
      return rc;
    }
    peer.queue.remove(send);
    if (!send.asked) {
      finish(send, 0);
    }
  }
  return 0;
}

void LongMessages::fail_sends(Peer& peer, int error) {
  peer.parts.forget();
  while (LongRequest* const request = peer.queue.first()) {
    peer.queue.remove(*request);
    finish(*request, error);
  }
  // The failed sends tell this context of the error.
  peer.route.link->routes.untold &= ~(uint64_t{1} << context_.id());
}

void LongMessages::finish(LongRequest& request, int status) {
  request.status = status;
  request.done = true;
  --under_way_;
  done_.append(request);
}

void LongMessages::attend() {
  // Messages that arrived before the end of a session are handled first.
  if (port_.sessions_ended() != sessions_ended_ && arrivals_.forget_stale()) {
    sessions_ended_ = port_.sessions_ended();
  }
  for (size_t i = 0; i < senders_.size();) {
    Peer& peer = *senders_[i];
    if (const int rc = pump(peer); rc != 0 && rc != -EAGAIN) {
      fail_sends(peer, rc);
    }
    if (!peer.queue.is_empty()) {
      ++i;
      continue;
    }
    peer.listed = false;
    senders_[i] = senders_.back();
    senders_.pop_back();
  }
  while (SendTransfer* const sent = context_.next_sent()) {
    finish(*static_cast<LongSend*>(sent->user), sent->status);
  }
  while (RecvTransfer* const received = context_.next_received()) {
    finish(*static_cast<LongReceive*>(received->user), received->status);
  }
}

int LongMessages::receive(LongArrival& arrival, void* buffer, uint64_t capacity, void* user,
                          int* status, LongReceive** out) {
  if (arrival.request == nullptr) {
    arrivals_.copy_out(arrival, buffer, capacity);
    *status = arrival.length_bytes > capacity ? -EMSGSIZE : 0;
    arrivals_.refuse(arrival);
    return 1;
  }
  LongReceive* const mine = receives_.get();
  if (mine == nullptr) {
    return -ENOMEM;
  }
  mine->length_bytes = arrival.length_bytes;
  mine->dest_id = arrival.origin.link->dest_id();
  mine->context = arrival.origin.from;
  mine->user = user;
  mine->transfer.user = mine;
  ++under_way_;
  Request* const request = arrivals_.take_request(arrival);
  context_.receive_large(request, buffer, capacity, mine->transfer);
  *out = mine;
  return 0;
}

int LongMessages::cancel(LongRequest& request) {
  if (request.done) {
    return -ENOENT;
  }
  if (request.is_receive) {
    context_.cancel(static_cast<LongReceive&>(request).transfer);
    return 0;
  }
  auto& send = static_cast<LongSend&>(request);
  if (send.asked) {
    context_.cancel(send.transfer);
    return 0;
  }
  if (send.begun) {
    return -EALREADY;
  }
  peer(send.dest_id, send.context)->queue.remove(send);
  finish(send, -ECANCELED);
  return 0;
}

LongRequest* LongMessages::next_done() {
  LongRequest* const request = done_.first();
  if (request != nullptr) {
    done_.remove(*request);
  }
  return request;
}

bool LongMessages::test(LongRequest& request) {
  if (request.done) {
    done_.remove(request);
  }
  return request.done;
}

void LongMessages::free(LongRequest& request) {
  if (request.is_receive) {
    receives_.put(&static_cast<LongReceive&>(request));
  } else {
    sends_.put(&static_cast<LongSend&>(request));
  }
}

}  // namespace rio::msg
