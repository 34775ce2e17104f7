/// @file
/// What a user of contexts keeps from one send to the next: the route of the last address, and
/// whether there was room. Shared by lib/skifch and lib/api.
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include "lib/msg/message_port.hpp"

namespace rio::msg {

/// The route of the address that was sent to last. Under the Guard of its port.
class LastRoute {
 public:
  LastRoute() = default;
  /// @param nowhere route() until there is one.
  explicit LastRoute(const Route& nowhere) : route_(nowhere) {}
  [[nodiscard]] bool is_of(uint32_t address) const { return address_ == address; }
  [[nodiscard]] const Route& route() const { return route_; }
  void keep(uint32_t address, const Route& route) {
    address_ = address;
    route_ = route;
  }
  /// The next send asks for its route anew.
  void forget() { address_ = kNoAddress; }

 private:
  static constexpr uint64_t kNoAddress = UINT64_MAX;
  uint64_t address_ = kNoAddress;
  Route route_;
};

/// Sends that found no room, for the wait that follows. Under the Guard of its port.
class Retry {
 public:
  /// @param tracks whether a wait lasts until the card has done something since the last try;
  /// false: it ends at once, for a caller that polls.
  explicit Retry(bool tracks = true) : tracks_(tracks) {}

  /// Try to send, and once more where there is no room and this tracks: what the first try took
  /// from the card may have made room, and a wait must not sleep then.
  /// @param send of the port. @return as `send`.
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
  /// A send that was not tried would have found no room. @param seen MessagePort::activity() before
  /// that.
  void note_stuck(uint64_t seen) {
    seen_ = seen;
    is_stuck_ = true;
  }

  /// A wait begins. @return whether a send since the last wait found no room.
  [[nodiscard]] bool begin_wait() { return std::exchange(is_stuck_, false); }
  /// Whether it is worth trying again.
  [[nodiscard]] bool may_have_room(const MessagePort& port) const {
    return !tracks_ || port.activity() != seen_;
  }

 private:
  bool tracks_;
  bool is_stuck_ = false;
  uint64_t seen_ = 0;  // MessagePort::activity() before the last try that found no room
};

/// News of sessions that have ended. Under the Guard of its port.
class EndedSessions {
 public:
  void begin(const MessagePort& port) { told_ = port.sessions_ended(); }
  /// @return whether a session has ended since this was asked last.
  [[nodiscard]] bool take(const MessagePort& port) {
    const uint64_t ended = port.sessions_ended();
    return std::exchange(told_, ended) != ended;
  }

 private:
  uint64_t told_ = 0;
};

}  // namespace rio::msg
