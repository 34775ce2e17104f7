/// @file
/// Sessions that have ended, for a caller that asks.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/msg/message_port.hpp"

namespace rio::msg {

/// Under a Guard.
class PeerNews {
 public:
  /// The next link whose session has ended, with Link::error, since the port was opened or this
  /// told of it; of several sessions the last. @return null: there is none.
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
  /// All that has ended until now counts as told.
  void forget(MessagePort& port) {
    while (next(port) != nullptr) {
    }
  }

 private:
  uint64_t ended_ = 0;              // MessagePort::sessions_ended() that is told
  std::vector<uint32_t> sessions_;  // of links by index, that are told
};

}  // namespace rio::msg
