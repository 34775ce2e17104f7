/// @file
/// State that a user of contexts keeps between calls: the last route, whether the last send found
/// room, and which ended sessions it was told of. Used by lib/skifch and lib/api.
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>
#include <vector>

#include "lib/msg/message_port.hpp"

namespace rio::msg {

/// Caches the route of the last address. Used under the Guard of the port.
struct LastRoute {
  static constexpr uint64_t kNone = UINT64_MAX;
  uint64_t address = kNone;  ///< where `route` leads to; kNone: no route is cached
  Route route;
};

/// Remembers sends that found no room, for the wait that follows. Call all functions under the
/// Guard of the port.
class Retry {
 public:
  /// @param tracks true: a wait lasts until the card has done something since the last try; false:
  /// it ends at once, for a caller that polls.
  explicit Retry(bool tracks = true) : tracks_(tracks) {}

  /// Try to send. If there is no room, and `tracks` was set, try a second time: the first try may
  /// itself have made room, and then a wait must not sleep.
  /// @param send calls MessagePort::send(). @return its result.
  template <class Send>
  [[nodiscard]] int send(const MessagePort& port, Send&& send) {
    int rc = send();
    if (rc == -EAGAIN) [[unlikely]] {
      if (tracks_) {
        seen_ = port.activity();
        rc = send();
      }
      is_stuck_ = rc == -EAGAIN;
    }
    return rc;
  }
  /// Count a send that was not tried, because it would have found no room. @param seen
  /// MessagePort::activity() at that time.
  void note_stuck(uint64_t seen) {
    seen_ = seen;
    is_stuck_ = true;
  }

  /// A wait begins. @return whether a send since the last wait found no room.
  [[nodiscard]] bool begin_wait() { return std::exchange(is_stuck_, false); }
  /// Whether another try may succeed.
  [[nodiscard]] bool may_have_room(const MessagePort& port) const {
    return !tracks_ || port.activity() != seen_;
  }

 private:
  bool tracks_;
  bool is_stuck_ = false;
  uint64_t seen_ = 0;  // MessagePort::activity() before the last try that found no room
};

/// Reports ended sessions to a caller that polls for them. Call all functions under the Guard of
/// the port.
class PeerNews {
 public:
  /// A link whose session has ended since it was last returned here; Link::error has the reason. If
  /// several of its sessions have ended, only the last is reported. @return null: no news.
  [[nodiscard]] const Link* next(MessagePort& port) {
    constexpr uint32_t kFirstSession = 1;
    if (ended_ == port.sessions_ended()) {
      return nullptr;
    }
    sessions_.resize(port.link_count(), kFirstSession);
    for (uint32_t i = 0; i < port.link_count(); ++i) {
      const Link& link = port.link_at(i);
      if (sessions_[i] != link.session) {
        sessions_[i] = link.session;
        return &link;
      }
    }
    ended_ = port.sessions_ended();
    return nullptr;
  }
  /// Count all sessions that have ended until now as reported.
  void forget(MessagePort& port) {
    while (next(port) != nullptr) {
    }
  }

 private:
  uint64_t ended_ = 0;              // MessagePort::sessions_ended() when all was reported
  std::vector<uint32_t> sessions_;  // reported Link::session, by index of the link
};

}  // namespace rio::msg
