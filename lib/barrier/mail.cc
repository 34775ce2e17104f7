#include "lib/barrier/mail.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/clock.hpp"

namespace rio::barrier {

Mail::Peer* Mail::peer_of(msg::Address to) {
  const auto found = peers_.find(to);
  if (found != peers_.end()) {
    return &found->second;
  }
  Peer peer;
  if (port_.route(msg::dest_id_of(to), msg::context_of(to), context_, msg::Kind::kData,
                  &peer.route) != 0) {
    return nullptr;
  }
  return &peers_.emplace(to, peer).first->second;
}

uint32_t Mail::session_with(msg::Address to) {
  Peer* const peer = peer_of(to);
  return peer != nullptr ? peer->route.link->session : 0;
}

void Mail::send(msg::Address to, const GroupMessage& message, uint32_t part) {
  Peer* const peer = peer_of(to);
  if (peer == nullptr) {
    unsent_.push_back({part, to, -ENOMEM});
    return;
  }
  Item item{.peer = peer,
            .message = message,
            .part = part,
            .to = to,
            .session = peer->route.link->session};
  if (peer->waiting == 0) {
    // Most messages leave here.
    int rc = port_.send(peer->route, &message, message.size_bytes());
    rc = rc == 0 ? 0 : judge(item, rc, base::now_ns());
    if (rc != -EAGAIN) {
      return;
    }
  }
  ++peer->waiting;
  waiting_.push_back(item);
}

int Mail::try_send(Item& item, uint64_t now_ns) {
  if (item.from_ns > now_ns) {
    return -EAGAIN;
  }
  const int rc = port_.send(item.peer->route, &item.message, item.message.size_bytes());
  return rc == 0 ? 0 : judge(item, rc, now_ns);
}

/// Decide what a failed send means. @return -EAGAIN: try again later; another error: the message is
/// given up.
int Mail::judge(Item& item, int error, uint64_t now_ns) {
  if (error == -EAGAIN) {
    return error;
  }
  // The first refusal may be a late one, from a context that the peer had closed and reopened
  // since.
  if (error == -ECONNREFUSED && ++item.refusals == 1) {
    return -EAGAIN;
  }
  const bool is_absent = error == -ECONNREFUSED || error == -EHOSTUNREACH;
  if (is_absent && item.message.what == What::kJoin) {
    if (item.message.rank == 0) {
      return error;  // the member sends a join of its own when it is there
    }
    item.from_ns = now_ns + kAgainNs;
    return -EAGAIN;
  }
  if (error != -ECONNREFUSED && error != -ENODEV &&
      item.session == item.peer->route.link->session) {
    return -EAGAIN;  // the error is of an earlier session with the peer
  }
  unsent_.push_back({item.part, item.to, error});
  return error;
}

void Mail::work(uint64_t now_ns) {
  ++pass_;
  size_t kept = 0;
  for (size_t i = 0; i < waiting_.size(); ++i) {
    Item& item = waiting_[i];
    Peer& peer = *item.peer;
    int rc = -EAGAIN;
    if (peer.pass != pass_) {
      rc = try_send(item, now_ns);
    }
    if (rc == -EAGAIN) {
      peer.pass = pass_;
      if (kept != i) {
        waiting_[kept] = item;
      }
      ++kept;
    } else {
      --peer.waiting;
    }
  }
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(kept), waiting_.end());
}

std::vector<Mail::Unsent> Mail::take_unsent() {
  return std::exchange(unsent_, {});
}

void Mail::drop_joins(uint32_t part) {
  std::erase_if(waiting_, [&](const Item& item) {
    const bool is_one = item.part == part && item.message.what == What::kJoin;
    item.peer->waiting -= is_one ? 1 : 0;
    return is_one;
  });
}

}  // namespace rio::barrier
