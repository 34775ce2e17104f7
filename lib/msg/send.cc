// What is sent, until the card says that it has arrived.
#include <algorithm>
#include <cerrno>

#include "lib/msg/clock.hpp"
#include "lib/msg/port.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {
int Port::route(uint32_t dest_id, uint32_t to, uint32_t from, Kind kind, Route* out) {
  if (to >= kContexts || from >= kContexts || !takes_credit(kind)) {
    return -EINVAL;
  }
  Link* const link = this->link(dest_id);
  if (link == nullptr) {
    return -ENOMEM;
  }
  link->routes.routed |= 1ull << from;
  *out = {link, &link->out[to], &link->in[from], HeaderWords::rest_of(to, from, 0, kind, 0),
          pmd::TxQueue::slot_words(dest_id, kSpread)};
  return 0;
}

int Port::send(const Route& route, const iovec* iov, int count, uint32_t bytes) {
  if (bytes > kPartBytesMax) {
    return -EMSGSIZE;
  }
  if (!may_send(route)) {
    return not_now(route);
  }
  uint8_t* const at = begin_message(route, bytes);
  uint8_t* to = at + kHeaderBytes;
  for (int i = 0; i < count; ++i) {
    if (iov[i].iov_len != 0) {
      std::memcpy(to, iov[i].iov_base, iov[i].iov_len);
      to += iov[i].iov_len;
    }
  }
  post(*route.link, at, kHeaderBytes + bytes);
  return 0;
}

bool Port::say(Link& link, Kind kind, uint32_t to, uint32_t from, uint32_t credit) {
  // What is reaped to make room may be the end of the session.
  if (!take_room() || link.state != LinkState::kUp || link.rest.on) {
    return false;
  }
  const HeaderWords header = {link.next_out, HeaderWords::rest_of(to, from, credit, kind, 0)};
  uint8_t* const at = tx_->slot_va();
  std::memcpy(at, &header, sizeof(header));
  post(link, at, sizeof(header));
  return true;
}

bool Port::say_session(uint32_t dest_id, const HeaderWords& header, const SessionBody& body) {
  if (!take_room()) {
    return false;
  }
  uint8_t* const at = tx_->slot_va();
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), &body, sizeof(body));
  tx_->send_slot(at, pmd::TxQueue::slot_words(dest_id, mailbox(0, sizeof(header))),
                 sizeof(header) + sizeof(body));
  return true;
}

bool Port::say_session(const Link& link, Kind kind) {
  return say_session(link.dest_id(), {link.keys.remote, HeaderWords::rest_of(0, 0, 0, kind, 0)},
                     {kMagic, link.keys.local, link.keys.remote, link.keys.first_in, instance_, 0});
}

int Port::not_now(const Route& route) {
  Link& link = *route.link;
  const uint64_t bit = 1ull << HeaderWords{0, route.word}.to();
  const uint64_t own_bit = 1ull << HeaderWords{0, route.word}.from();
  if (error_ != 0) {
    return error_;
  }
  if ((link.routes.untold & own_bit) != 0) {
    link.routes.untold &= ~own_bit;
    return link.error;
  }
  if ((link.theirs.refused & bit) != 0) {
    link.theirs.refused &= ~bit;
    return -ECONNREFUSED;
  }
  if ((link.theirs.asked & bit) == 0) {
    link.say.open |= bit;
    link.routes.waiting |= own_bit;
    want(link);
  } else {
    link.clock.stuck = true;
    watch(link, 0);
  }
  reap();
  progress();
  return -EAGAIN;
}

/// @return 0: post_request() is next; or as send().
int Port::may_request(const Route& route) {
  const Link& link = *route.link;
  const uint32_t to = HeaderWords{0, route.word}.to();
  // In this order: what is reaped may be the end of the session, and of all that is left.
  if ((!in_budget(tx_->next_index()) && !reap_for_more()) || !link.has_opened(to) || link.backlog.held ||
      has_to_hear(route) || link.large.records_out[to].available() == 0 ||
      link.large.control_out.available() <= kForAnswers) {
    return not_now(route);
  }
  return 0;
}

void Port::post_request(const Route& route, const RequestBody& body) {
  Link& link = *route.link;
  const HeaderWords word = {0, route.word};
  link.large.records_out[word.to()].take_known();
  link.large.control_out.take_known();
  const HeaderWords header = {link.next_out,
                              HeaderWords::rest_of(word.to(), word.from(), route.back->tell(),
                                                   Kind::kRequest, padding_of(sizeof(body)))};
  uint8_t* const at = tx_->slot_va();
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), &body, sizeof(body));
  stats_.copied += body.edge_bytes;
  post(link, at, kHeaderBytes + sizeof(body));
}

/// The budget is used up. @return true: there is a new one.
bool Port::reap_for_more() {
  reap();
  if (tx_->outstanding() >= kOutMax) [[unlikely]] {
    hold_if_greedy();
  }
  if (!tx_->has_room(kReserve) || restarting_) {
    budget_end_ = tx_->next_index();
    return false;
  }
  budget_end_ = tx_->next_index() + std::min<uint32_t>(kBudget, tx_->free_count() - kReserve);
  return true;
}

/// For what the library says: the reserve, too.
bool Port::take_room() {
  if (!tx_->has_room(0)) {
    reap();
  }
  return tx_->has_room(0) && !restarting_;
}

void Port::reap() {
  if (!in_budget(tx_->next_index())) {
    budget_end_ = tx_->next_index();  // never so far behind that it seems to be ahead
  }
  if (sender_ == nullptr || !sender_->sending()) [[likely]] {
    tx_->settle();  // it passes over all, large data too
    if (!tx_->ready()) {
      return;
    }
  }
  reap_others();
}

void Port::reap_others() {
  pmd::TxDone done[kBurst];
  for (uint32_t n = kBurst; n == kBurst;) {
    n = tx_->reap(done, kBurst);
    for (uint32_t i = 0; i < n; ++i) {
      if ((done[i].cookie & Sender::kCookie) != 0) {
        sender().on_sent(done[i]);
      } else if (done[i].status != pmd::Status::kOk) [[unlikely]] {
        failed(done[i]);
      }
    }
  }
}

void Port::failed(const pmd::TxDone& done) {
  // What was sent is in its slot until the next message is posted there.
  const auto entry = static_cast<uint32_t>(done.cookie);
  const uint8_t* const slot = tx_->slot_va(entry);
  const HeaderWords header = load_header(slot);
  Link* const link = known_link(tx_->slot_dest_id(entry));
  const uint64_t first_ns = take_since(entry);
  const uint64_t since_ns = first_ns != 0 ? first_ns : now_ns();
  // What was lost on the way once comes through when it is sent again.
  const bool in_doubt = done.status == pmd::Status::kResponseTimeout;
  if (link != nullptr && in_doubt &&
      (restarting_ || (first_ns != 0 && others_wait(link->dest_id(), tx_->next_index())))) {
    rest(*link);
  }
  if (header.kind() >= Kind::kHello) {
    session_failed(header, entry, done.status);
    return;
  }
  if (link == nullptr || link->keys.remote != header.key()) {
    return;  // of a session that is over
  }
  Again again = {link->index(), link->session, since_ns, {slot, slot + tx_->slot_bytes(entry)}};
  if (restarting_ && done.status == pmd::Status::kFlushed) {
    flushed_.push_back({std::move(again), first_ns != 0});
    return;
  }
  if (done.status == pmd::Status::kBadDescriptor || done.status == pmd::Status::kFlushed) {
    end_session(*link, -EIO);
    return;
  }
  hold(*link);
  // Who refuses is alive.
  const bool refused = done.status == pmd::Status::kRetryExpired;
  if (!refused && now_ns() - since_ns > uint64_t{config_.deliver_ms} * 1'000'000) {
    on_unknown({link->dest_id(), link->keys.local, link->next_in(), 0});
    end_session(*link, -ETIMEDOUT);
    return;
  }
  // Not read, refused, or in doubt: the number says whether it is there already.
  again.since_ns = refused ? now_ns() : since_ns;
  again.never_left = done.status == pmd::Status::kLinkDown && first_ns == 0;
  keep_to_send(*link, std::move(again));
}

/// A hello is said again by the clock, and so is what asks for a welcome.
void Port::session_failed(const HeaderWords& header, uint32_t entry, pmd::Status status) {
  // Who is silent has nothing to be told. He is told when he speaks.
  if (header.kind() != Kind::kReset || (restarting_ && status == pmd::Status::kResponseTimeout)) {
    return;
  }
  SessionBody body;
  std::memcpy(&body, tx_->slot_va(entry) + sizeof(header), sizeof(body));
  const uint32_t tried = restarting_ && status == pmd::Status::kFlushed ? 0 : 1;
  on_unknown({tx_->slot_dest_id(entry), body.session, body.first, header.number() + tried});
}

void Port::keep_to_send(Link& link, Again again) {
  ++link.backlog.again;
  (link.rest.on ? parked_ : again_).push_back(std::move(again));
}

/// When the message in that entry of the ring failed for the first time; 0: it has not yet.
uint64_t Port::take_since(uint32_t entry) {
  const auto known = std::find_if(resent_.begin(), resent_.end(),
                                  [&](const Resent& resent) { return resent.entry == entry; });
  if (known == resent_.end()) {
    return 0;
  }
  const uint64_t since_ns = known->since_ns;
  no_longer_resent(*known);
  resent_.erase(known);
  return since_ns;
}

/// It is not on its way any more.
void Port::no_longer_resent(const Resent& resent) {
  Link& link = *links_[resent.link];
  link.backlog.resent -= resent.session == link.session ? 1 : 0;
}

void Port::send_again() {
  const uint32_t oldest = tx_->oldest_index();
  std::erase_if(resent_, [&](const Resent& resent) {
    const bool over = tx_->next_index() - resent.entry > tx_->next_index() - oldest;
    if (over) {
      no_longer_resent(resent);
    }
    return over;
  });
  std::vector<Again> now;
  now.swap(again_);
  for (Again& again : now) {
    Link& link = *links_[again.link];
    // Making room may end the session, too.
    const bool room = take_room();
    if (again.session != link.session) {
      continue;
    }
    if (link.rest.on) {
      parked_.push_back(std::move(again));
      continue;
    }
    if (!room || link.backlog.resent >= kAgainMax) {
      again_.push_back(std::move(again));
      continue;
    }
    ++stats_.again;
    --link.backlog.again;
    ++link.backlog.resent;
    resent_.push_back({again.link, again.session, tx_->next_index(), again.since_ns});
    post_again(link, again);
  }
}

/// There is room.
void Port::post_again(const Link& link, const Again& again) {
  const HeaderWords header = load_header(again.bytes.data());
  uint8_t* const at = tx_->slot_va();
  std::memcpy(at, again.bytes.data(), again.bytes.size());
  const auto length_bytes = static_cast<uint32_t>(again.bytes.size());
  tx_->send_slot(at,
                 pmd::TxQueue::slot_words(link.dest_id(), mailbox(header.number(), length_bytes)),
                 length_bytes);
}

/// How much of the ring belongs to a peer.
uint32_t Port::out_to(uint32_t dest_id) const {
  uint32_t count = 0;
  for (uint32_t entry = tx_->oldest_index(); entry != tx_->next_index(); ++entry) {
    count += tx_->slot_dest_id(entry) == dest_id ? 1 : 0;
  }
  return count;
}

void Port::hold(Link& link) {
  if (!link.backlog.held) {
    held_.push_back(link.index());
  }
  link.hold();
}

/// The ring is half full. Mostly that is one peer, who does not take what is sent.
void Port::hold_if_greedy() {
  const uint32_t dest_id = tx_->slot_dest_id(tx_->oldest_index());
  const auto known = index_of_.find(dest_id);
  if (known != index_of_.end() && out_to(dest_id) >= kOutMax) {
    hold(*links_[known->second]);
  }
}

void Port::release_held() {
  std::erase_if(held_, [&](uint32_t index) {
    Link& link = *links_[index];
    if (!link.backlog.held) {
      return true;  // its session has ended
    }
    if (link.rest.on || link.backlog.again != 0 || link.backlog.resent != 0 ||
        out_to(link.dest_id()) >= kOutMax / 2) {
      link.hold();
      return false;
    }
    link.release();
    return true;
  });
}

}  // namespace rio::msg
