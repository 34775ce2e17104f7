/// @file
/// Reports ended sessions to a caller that polls for them.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/msg/message_port.hpp"

namespace rio::msg {

/// Call all functions under a Guard.
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
