// What is sent, until the card says that it has arrived.
#include <algorithm>
#include <cerrno>

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
  *out = {link, &link->out[to], &link->in[from], HeaderWords::rest_of(to, from, 0, kind, 0)};
  return 0;
}

int Port::send(const Route& route, const iovec* iov, int count, uint32_t bytes) {
  if (!may_send(route)) {
    return not_now(route);
  }
  uint8_t* const at = begin_message(route, bytes);
  uint8_t* to = at + kHeaderBytes;
  for (int i = 0; i < count; ++i) {
    std::memcpy(to, iov[i].iov_base, iov[i].iov_len);
    to += iov[i].iov_len;
  }
  post(*route.link, at, kHeaderBytes + bytes);
  return 0;
}

bool Port::say(Link& link, Kind kind, uint32_t to, uint32_t from, uint32_t credit) {
  if (!take_room()) {
    return false;
  }
  const HeaderWords header = {link.next_out, HeaderWords::rest_of(to, from, credit, kind, 0)};
  uint8_t* const at = tx_->slot_va();
  std::memcpy(at, &header, sizeof(header));
  post(link, at, sizeof(header));
  if (kind == Kind::kOpened || kind == Kind::kCredit) {
    link.in[from].told = static_cast<uint16_t>(credit);
  }
  return true;
}

bool Port::say_session(Link& link, Kind kind, uint32_t session) {
  if (!take_room()) {
    return false;
  }
  const HeaderWords header = {link.remote_key, HeaderWords::rest_of(0, 0, 0, kind, 0)};
  const SessionBody body = {kMagic, session, link.remote_key, 0};
  uint8_t* const at = tx_->slot_va();
  std::memcpy(at, &header, sizeof(header));
  std::memcpy(at + sizeof(header), &body, sizeof(body));
  tx_->send_slot(at, link.dest_id(), mailbox(0, sizeof(header)), sizeof(header) + sizeof(body));
  return true;
}

int Port::not_now(const Route& route) {
  Link& link = *route.link;
  const uint64_t bit = 1ull << HeaderWords{0, route.word}.to();
  if (error_ != 0) {
    return error_;
  }
  if (link.error != 0) {
    return std::exchange(link.error, 0);
  }
  if ((link.refused & bit) != 0) {
    link.refused &= ~bit;
    return -ECONNREFUSED;
  }
  if ((link.asked & bit) == 0) {
    link.say_open |= bit;
    want(link);
  }
  reap();
  progress();
  return -EAGAIN;
}

/// The budget is used up. @return true: there is a new one.
bool Port::reap_for_more() {
  reap();
  if (!tx_->has_room(kReserve)) {
    budget_ = 0;
    return false;
  }
  budget_ = std::min(kBurst, tx_->free_count() - kReserve);
  return true;
}

/// Of the reserve, or of the budget.
bool Port::take_room() {
  if (!tx_->has_room(budget_)) {
    reap();
  }
  return tx_->has_room(budget_);
}

void Port::reap() {
  if (sender_ == nullptr || !sender_->sending()) [[likely]] {
    tx_->settle();  // it passes over all, large data too
  }
  reap_others();
}

void Port::reap_others() {
  pmd::TxDone done[kBurst];
  for (uint32_t n = kBurst; n == kBurst;) {
    n = tx_->reap(done, kBurst);
    for (uint32_t i = 0; i < n; ++i) {
      if ((done[i].cookie & Sender::kCookie) != 0) {
        sender_->on_sent(done[i]);
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
  const auto known = index_of_.find(tx_->slot_dest_id(entry));
  Link* const link = known == index_of_.end() ? nullptr : links_[known->second].get();
  if (link == nullptr || link->remote_key != header.key() || header.kind() >= Kind::kHello) {
    return;  // of a session that is over; a hello is said again by the clock
  }
  if (done.status == pmd::Status::kBadDescriptor || done.status == pmd::Status::kHostReadFailed ||
      done.status == pmd::Status::kFlushed) {
    end_session(*link, -EIO);
    return;
  }
  // Refused, or in doubt: the number says whether it is there already.
  again_.push_back({link->index(), link->session, 0, {slot, slot + tx_->slot_bytes(entry)}});
}

void Port::send_again() {
  const size_t n = again_.size();
  for (size_t i = 0; i < n; ++i) {
    Again& again = again_[i];
    Link& link = *links_[again.link];
    if (again.session != link.session) {
      continue;
    }
    if (++again.tries > kTriesMax) {
      on_unknown(link.dest_id(), link.local_key);
      end_session(link, -ETIMEDOUT);
      continue;
    }
    if (!take_room()) {
      again_.push_back(std::move(again));
      continue;
    }
    ++stats_.again;
    const HeaderWords header = load_header(again.bytes.data());
    uint8_t* const at = tx_->slot_va();
    std::memcpy(at, again.bytes.data(), again.bytes.size());
    const auto length_bytes = static_cast<uint32_t>(again.bytes.size());
    tx_->send_slot(at, link.dest_id(), mailbox(header.number(), length_bytes), length_bytes);
  }
  again_.erase(again_.begin(), again_.begin() + static_cast<std::ptrdiff_t>(n));
}

}  // namespace rio::msg
