#include "lib/tag/large_moves.hpp"

#include <cerrno>

#include "base/clock.hpp"
#include "base/log.hpp"

namespace rio::tag {

int LargeMoves::ask(Peer& peer, SendRequest& request, bool small) {
  LargeSend* const large = sends_.get();
  if (large == nullptr) {
    return -ENOMEM;
  }
  large->request = &request;
  const int rc = state_.context->send_large(
      peer.route, request.bits, request.data, request.length_bytes, *large, small,
      request.immediate.there ? &request.immediate.value : nullptr);
  if (rc != 0) {
    sends_.put(large);
    return rc;
  }
  request.large = large;
  ++under_way_;
  ++state_.stats.large;
  state_.stats.asked += small && !request.sync ? 1 : 0;
  return 0;
}

bool LargeMoves::arrive(Peer& peer) {
  if (peer.incoming.active()) {
    return false;
  }
  Unexpected* const message = store_.get();
  if (message == nullptr) {
    return false;
  }
  msg::Request* const from = state_.context->take_request();
  if (!store_.accepts(from->body.len_bytes)) {
    store_.put(message);
    state_.context->refuse_large(from);
    return true;
  }
  const msg::RequestBody& body = from->body;
  const bool has_immediate = (body.flags & msg::RequestBody::kImmediate) != 0;
  const Immediate immediate = {body.immediate, has_immediate};
  if (Receive* const to = state_.matcher.arrive(peer.address, body.match_bits); to != nullptr) {
    store_.put(message);
    auto& request = static_cast<RecvRequest&>(*to);
    describe(request, peer.address, body.match_bits, immediate, body.len_bytes);
    if (!receive(from, request)) {
      state_.context->refuse_large(from);
      state_.completions.finish(request, -ENOMEM);
    }
    return true;
  }
  state_.context->keep_large(from);
  message->request = from;
  store_.keep(*message, {peer.address, body.match_bits, body.len_bytes, immediate});
  if (!peer.crowded && !state_.context->requests_left(from->origin)) {
    peer.crowded = true;
    peer.looked_at = 0;
    crowd_.push_back(&peer);
    ++under_way_;
  }
  return true;
}

bool LargeMoves::receive(msg::Request* from, RecvRequest& request) {
  LargeRecv* const large = receives_.get();
  if (large == nullptr) {
    return false;
  }
  large->request = &request;
  request.large = large;
  request.stage = Stage::kMoving;
  ++under_way_;
  ++state_.stats.large;
  state_.context->receive_large(from, request.buffer, request.capacity_bytes, *large);
  return true;
}

void LargeMoves::offer(RecvRequest& request) {
  Peer* const peer = state_.peers.known(request.source);
  request.offered = peer != nullptr && !peer->incoming.active() &&
                    peer->session == peer->route.link->session &&
                    state_.context->offer_large(peer->route, request.bits, request.ignore,
                                                request.buffer, request.capacity_bytes) == 0;
  state_.stats.offers += request.offered ? 1 : 0;
}

void LargeMoves::revoke(const RecvRequest& request) {
  Peer* const peer = state_.peers.known(request.source);
  if (request.capacity_bytes > state_.config.eager_bytes && request.offered && peer != nullptr) {
    state_.context->revoke_offer(peer->route);
  }
}

void LargeMoves::finish() {
  const auto end = [this](auto& large, auto& slab) {
    large.request->large = nullptr;
    state_.completions.finish(*large.request, large.status);
    slab.put(&large);
    --under_way_;
  };
  while (msg::SendTransfer* const sent = state_.context->next_sent()) {
    end(static_cast<LargeSend&>(*sent), sends_);
  }
  while (msg::RecvTransfer* const received = state_.context->next_received()) {
    end(static_cast<LargeRecv&>(*received), receives_);
  }
  if (!crowd_.empty()) {
    check_crowd();
  }
}

bool LargeMoves::moves() {
  bool moves = false;
  sends_.for_each([&](const LargeSend& large) {
    moves = moves || (large.request != nullptr && large.request->large == &large &&
                      large.grant.state() != msg::SendGrant::State::kRequested);
  });
  return moves;
}

bool LargeMoves::leave() {
  const auto cancel = [this](auto& large) {
    if (large.request != nullptr && large.request->large == &large) {
      state_.context->cancel(large);
    }
  };
  sends_.for_each(cancel);
  receives_.for_each(cancel);
  under_way_ -= static_cast<uint32_t>(crowd_.size());
  crowd_.clear();
  constexpr uint64_t kPatienceNs = 1'000'000'000;
  msg::MessagePort& port = state_.context->port();
  const uint64_t end_ns = base::now_ns() + kPatienceNs;
  for (finish(); under_way_ != 0; finish()) {
    if (base::now_ns() >= end_ns) {
      base::log_warning("context %u: large data is still under way; close its port next",
                        state_.context->id());
      port.take_over(sends_.leave());
      port.take_over(receives_.leave());
      return false;
    }
    port.progress();
  }
  return true;
}

/// These peers have as many unanswered requests here as they may. If a receive could match a
/// message behind these requests, more are let in. Where that cannot be, the receive ends; but a
/// receive of any source goes on: other peers have windows of their own.
void LargeMoves::check_crowd() {
  const uint64_t posted = state_.matcher.receives().posted() + 1;
  std::erase_if(crowd_, [&](Peer* peer) {
    const msg::Origin origin = {peer->route.link, peer->session, context_of(peer->address)};
    bool over = state_.context->requests_left(origin);
    if (!over && peer->looked_at != posted) {
      peer->looked_at = posted;
      const bool awaited = state_.matcher.receives().any_of([&](const Receive& receive) {
        return receive.source == peer->address || receive.source == kAnySource;
      });
      over = awaited && state_.context->lend_requests(origin);
      if (awaited && !over) {
        base::log_warning("context %u: too many messages of destID %u wait for receives",
                          state_.context->id(), dest_id_of(peer->address));
        state_.completions.fail(
            state_.matcher.receives(),
            [&](const Receive& receive) { return receive.source == peer->address; }, -ENOBUFS);
      }
    }
    peer->crowded = !over;
    under_way_ -= over ? 1 : 0;
    return over;
  });
}

void LargeMoves::let_in(Address source) {
  for (const Peer* peer : crowd_) {
    if (source == kAnySource || source == peer->address) {
      static_cast<void>(state_.context->lend_requests(
          {peer->route.link, peer->session, context_of(peer->address)}));
    }
  }
}

}  // namespace rio::tag
