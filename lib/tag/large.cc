// Large data: asked for in the order of all else, moved when it was matched.
#include "lib/msg/close_large.hpp"
#include "lib/tag/endpoint.hpp"

namespace rio::tag {

int Endpoint::push_large(Peer& peer, SendRequest& request, bool small) {
  LargeSend* const large = large_sends_.get();
  if (large == nullptr) {
    return -ENOMEM;
  }
  large->request = &request;
  const int rc =
      context_->send_large(peer.route, request.bits, request.data, request.length_bytes, *large,
                           small, request.immediate.there ? &request.immediate.value : nullptr);
  if (rc != 0) {
    large_sends_.put(large);
    return rc;
  }
  request.large = large;
  ++cold_;
  ++stats_.large;
  stats_.asked += small && !request.sync ? 1 : 0;
  return 0;
}

/// The oldest of the inbox. @return false: it cannot be, or there is no memory.
bool Endpoint::arrive_request(Peer& peer) {
  if (peer.incoming.active()) {
    return false;
  }
  Unexpected* const message = unexpected_.get();
  if (message == nullptr) {
    return false;
  }
  msg::Request* const from = context_->take_request();
  const bool has_immediate = (from->body.flags & msg::RequestBody::kImmediate) != 0;
  const Immediate immediate = {from->body.immediate, has_immediate};
  if (Receive* const receive = matcher_.arrive(peer.address, from->body.match_bits);
      receive != nullptr) {
    unexpected_.put(message);
    auto& request = static_cast<RecvRequest&>(*receive);
    request.message_bits = from->body.match_bits;
    request.immediate = immediate;
    request.length_bytes = from->body.len_bytes;
    request.from = peer.address;
    if (!receive_large(from, request)) {
      finish(request, -ENOMEM);
    }
    return true;
  }
  context_->keep_large(from);
  message->source = peer.address;
  message->bits = from->body.match_bits;
  message->immediate = immediate;
  message->length_bytes = from->body.len_bytes;
  message->request = from;
  matcher_.keep(*message);
  ++stats_.unexpected;
  if (!peer.crowded && !context_->requests_left(from->origin)) {
    peer.crowded = true;
    peer.looked_at = 0;
    crowd_.push_back(&peer);
    ++cold_;
  }
  return true;
}

/// The next message of the peer may be for this receive: it need not ask then. If it is for another
/// one, it asks after all.
bool Endpoint::offer(const RecvRequest& request) {
  const auto known = peers_.find(request.source);
  if (known == peers_.end() || known->second->incoming.active() ||
      known->second->session != known->second->route.link->session) {
    return false;
  }
  const bool made = context_->offer_large(known->second->route, request.bits, request.ignore,
                                          request.buffer, request.capacity_bytes) == 0;
  stats_.offers += made ? 1 : 0;
  return made;
}

/// The receive is cancelled.
void Endpoint::revoke(const RecvRequest& request) {
  const auto known = peers_.find(request.source);
  if (request.capacity_bytes > eager_bytes_ && request.offered && known != peers_.end()) {
    context_->revoke_offer(known->second->route);
  }
}

/// @return false: no memory; the sender is told that it is not wanted.
bool Endpoint::receive_large(msg::Request* from, RecvRequest& request) {
  LargeRecv* const large = large_receives_.get();
  if (large == nullptr) {
    context_->refuse_large(from);
    return false;
  }
  large->request = &request;
  request.large = large;
  request.stage = Stage::kMoving;
  ++cold_;
  ++stats_.large;
  context_->receive_large(from, request.buffer, request.capacity_bytes, *large);
  return true;
}

void Endpoint::finish_large() {
  while (msg::SendTransfer* const sent = context_->next_sent()) {
    auto* const large = static_cast<LargeSend*>(sent);
    large->request->large = nullptr;
    finish(*large->request, large->status);
    large_sends_.put(large);
    --cold_;
  }
  while (msg::RecvTransfer* const received = context_->next_received()) {
    auto* const large = static_cast<LargeRecv*>(received);
    large->request->large = nullptr;
    finish(*large->request, large->status);
    large_receives_.put(large);
    --cold_;
  }
  if (!crowd_.empty()) {
    look_at_crowd();
  }
}

/// Whether a large send was matched and has not ended. Between two windows of it the card may have
/// nothing to do.
bool Endpoint::moves_large() {
  bool moves = false;
  large_sends_.for_each([&](const LargeSend& large) {
    moves = moves || (large.request != nullptr && large.request->large == &large &&
                      large.grant.state() != msg::SendGrant::State::kRequested);
  });
  return moves;
}

/// This endpoint closes. @return as msg::await_large().
bool Endpoint::leave_large() {
  large_sends_.for_each([&](LargeSend& large) {
    if (large.request != nullptr && large.request->large == &large) {
      context_->cancel(large);
    }
  });
  large_receives_.for_each([&](LargeRecv& large) {
    if (large.request != nullptr && large.request->large == &large) {
      context_->cancel(large);
    }
  });
  cold_ -= static_cast<uint32_t>(crowd_.size());
  crowd_.clear();
  return msg::await_large(*context_, large_sends_, large_receives_, [this] {
    finish_large();
    return cold_ == 0;
  });
}

}  // namespace rio::tag
