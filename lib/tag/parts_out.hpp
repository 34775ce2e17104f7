/// @file
/// Sends messages in several parts to one context of a peer, one after the other.
#pragma once

#include <cstdint>

#include "lib/msg/message_port.hpp"
#include "lib/tag/parts.hpp"

namespace rio::tag {

/// Used only on the port's thread. Errors are those of MessagePort::send().
class PartsOut {
 public:
  explicit PartsOut(msg::MessagePort& port) : port_(port) {}

  /// Whether to send a message as a request, because credit for all of its parts has been missing
  /// for several calls. It waits first, because credit is usually on its way and parts are faster.
  [[nodiscard]] bool must_ask(const msg::Route& route, uint32_t parts);
  /// Send the first part, of kFirstBytesMax bytes, and take the credits for all parts, so that
  /// other messages cannot stop this one half-way.
  /// @param kind kFirst or kFirstImmediate.
  [[nodiscard]] int begin(const msg::Route& route, msg::Kind kind, const FirstHeader& header,
                          const void* data, uint32_t parts);
  /// Send the next part. @param sent_bytes how much of the message is sent; updated. @return as
  /// MessagePort::send(); -ECONNREFUSED: the context was closed after the first part.
  [[nodiscard]] int go_on(const msg::Route& route, const uint8_t* data, uint64_t length_bytes,
                          uint64_t* sent_bytes);
  /// Abandon the message that was begun: the session is over, or the context refuses.
  void forget() {
    credits_ = {};
    forget_tries();
  }
  /// Restart the count of must_ask().
  void forget_tries() { tries_ = 0; }

 private:
  [[nodiscard]] msg::Route route_of(const msg::Route& route, msg::Kind kind);

  msg::MessagePort& port_;
  msg::Outflow credits_;  // reserved for the message under way
  uint32_t tries_ = 0;    // successive calls of must_ask() with too little credit
  uint8_t refusals_ = 0;  // Link::refusals of the context at begin()
};

}  // namespace rio::tag
