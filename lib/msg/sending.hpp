/// @file
/// State that a user of contexts keeps between sends: the last route, and whether the last send
/// found room. Used by lib/skifch and lib/api.
#pragma once

#include <cerrno>
#include <cstdint>
#include <utility>

#include "lib/msg/message_port.hpp"

namespace rio::msg {

/// Caches the route of the last address. Call all functions under the Guard of the port.
class LastRoute {
 public:
  LastRoute() = default;
  /// @param nowhere result of route() before the first send.
  explicit LastRoute(const Route& nowhere) : route_(nowhere) {}
  [[nodiscard]] bool is_of(uint32_t address) const { return address_ == address; }
  [[nodiscard]] const Route& route() const { return route_; }
  void keep(uint32_t address, const Route& route) {
    address_ = address;
    route_ = route;
  }
  /// Drop the cached route.
  void forget() { address_ = kNoAddress; }

 private:
  static constexpr uint64_t kNoAddress = UINT64_MAX;
  uint64_t address_ = kNoAddress;
  Route route_;
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

/// Detects that sessions have ended. Call all functions under the Guard of the port.
class EndedSessions {
 public:
  void begin(const MessagePort& port) { told_ = port.sessions_ended(); }
  /// @return whether a session has ended since the last call.
  [[nodiscard]] bool take(const MessagePort& port) {
    const uint64_t ended = port.sessions_ended();
    return std::exchange(told_, ended) != ended;
  }

 private:
  uint64_t told_ = 0;
};

}  // namespace rio::msg
