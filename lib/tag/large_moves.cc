#include "lib/tag/large_moves.hpp"

#include <cerrno>
#include <chrono>

#include "base/log.hpp"

namespace rio::tag {

int LargeMoves::ask(Peer& peer, SendRequest& request, bool small) {
  LargeSend* const large = sends_.get();
  if (large == nullptr) {
    return -ENOMEM;
  }
  large->request = &request;
  const int rc =
      context_.send_large(peer.route, request.bits, request.data, request.length_bytes, *large,
                          small, request.immediate.there ? &request.immediate.value : nullptr);
  if (rc != 0) {
    sends_.put(large);
    return rc;
  }
  request.large = large;
  ++under_way_;
  ++stats_.large;
  stats_.asked += small && !request.sync ? 1 : 0;
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
  msg::Request* const from = context_.take_request();
  if (!store_.accepts(from->body.len_bytes)) {
    store_.put(message);
    context_.refuse_large(from);
    return true;
  }
  const bool has_immediate = (from->body.flags & msg::RequestBody::kImmediate) != 0;
  const Immediate immediate = {from->body.immediate, has_immediate};
  if (Receive* const to = matcher_.arrive(peer.address, from->body.match_bits); to != nullptr) {
    store_.put(message);
    auto& request = static_cast<RecvRequest&>(*to);
    describe(request, peer.address, from->body.match_bits, immediate, from->body.len_bytes);
    if (!receive(from, request)) {
      context_.refuse_large(from);
      completions_.finish(request, -ENOMEM);
    }
    return true;
  }
  context_.keep_large(from);
  message->source = peer.address;
  message->bits = from->body.match_bits;
  message->immediate = immediate;
  message->length_bytes = from->body.len_bytes;
  message->request = from;
  store_.keep(*message);
  if (!peer.crowded && !context_.requests_left(from->origin)) {
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
  ++stats_.large;
  context_.receive_large(from, request.buffer, request.capacity_bytes, *large);
  return true;
}

void LargeMoves::offer(RecvRequest& request) {
  Peer* const peer = peers_.known(request.source);
  request.offered = peer != nullptr && !peer->incoming.active() &&
                    peer->session == peer->route.link->session &&
                    context_.offer_large(peer->route, request.bits, request.ignore, request.buffer,
                                         request.capacity_bytes) == 0;
  stats_.offers += request.offered ? 1 : 0;
}

void LargeMoves::revoke(const RecvRequest& request) {
  Peer* const peer = peers_.known(request.source);
  if (request.capacity_bytes > eager_bytes_ && request.offered && peer != nullptr) {
    context_.revoke_offer(peer->route);
  }
}

void LargeMoves::finish() {
  const auto end = [this](auto& large, auto& slab) {
    large.request->large = nullptr;
    completions_.finish(*large.request, large.status);
    slab.put(&large);
    --under_way_;
  };
  while (msg::SendTransfer* const sent = context_.next_sent()) {
    end(static_cast<LargeSend&>(*sent), sends_);
  }
  while (msg::RecvTransfer* const received = context_.next_received()) {
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
      context_.cancel(large);
    }
  };
  sends_.for_each(cancel);
  receives_.for_each(cancel);
  under_way_ -= static_cast<uint32_t>(crowd_.size());
  crowd_.clear();
  constexpr std::chrono::seconds kPatience{1};
  msg::MessagePort& port = context_.port();
  const auto end = std::chrono::steady_clock::now() + kPatience;
  for (finish(); under_way_ != 0; finish()) {
    if (std::chrono::steady_clock::now() >= end) {
      base::log_warning("context %u: large data is still under way; close its port next",
                        context_.id());
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
  const uint64_t posted = matcher_.receives().posted() + 1;
  std::erase_if(crowd_, [&](Peer* peer) {
    const msg::Origin origin = {peer->route.link, peer->session, context_of(peer->address)};
    bool over = context_.requests_left(origin);
    if (!over && peer->looked_at != posted) {
      peer->looked_at = posted;
      const bool awaited = matcher_.receives().any_of([&](const Receive& receive) {
        return receive.source == peer->address || receive.source == kAnySource;
      });
      over = awaited && context_.lend_requests(origin);
      if (awaited && !over) {
        base::log_warning("context %u: too many messages of destID %u wait for receives",
                          context_.id(), dest_id_of(peer->address));
        completions_.fail(
            matcher_.receives(),
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
      static_cast<void>(
          context_.lend_requests({peer->route.link, peer->session, context_of(peer->address)}));
    }
  }
}

}  // namespace rio::tag
