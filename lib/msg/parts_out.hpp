/// @file
/// Sends messages in several parts to one context of a peer, one after the other.
#pragma once

#include <cstdint>

#include "lib/msg/message_port.hpp"
#include "lib/msg/parts.hpp"

namespace rio::msg {

/// The port's thread. Errors are those of MessagePort::send().
class PartsOut {
 public:
  explicit PartsOut(MessagePort& port) : port_(port) {}

  /// Whether a message has to be asked for, since there is not enough credit for all of its parts,
  /// and has not been for long. Mostly credit is on its way, and the message then goes sooner.
  [[nodiscard]] bool must_ask(const Route& route, uint32_t parts);
  /// The first part, of kFirstBytesMax bytes, and credits for all, which no other message can have
  /// then: what is begun is not stopped half-way by messages that wait for their receives.
  /// @param kind kFirst or kFirstImmediate.
  [[nodiscard]] int begin(const Route& route, Kind kind, const FirstHeader& header,
                          const void* data, uint32_t parts);
  /// The next part. @param sent_bytes of the message, which grows. @return as MessagePort::send();
  /// -ECONNREFUSED: the context was closed after the first part.
  [[nodiscard]] int go_on(const Route& route, const uint8_t* data, uint64_t length_bytes,
                          uint64_t* sent_bytes);
  /// The session is over, or the context refuses: what was begun will not go on.
  void forget() {
    credits_ = {};
    forget_tries();
  }
  /// must_ask() counts anew.
  void forget_tries() { tries_ = 0; }

 private:
  [[nodiscard]] Route route_of(const Route& route, Kind kind);

  MessagePort& port_;
  Outflow credits_;       // of the message that is sent in part
  uint32_t tries_ = 0;    // at which there was too little credit, in a row
  uint8_t refusals_ = 0;  // Link::refusals of its context when it was begun
};

}  // namespace rio::msg
