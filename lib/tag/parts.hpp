/// @file
/// Messages in several parts: kFirst and kMore are full, kLast has the rest. The sender's context
/// sends nothing else between them to the same context, and takes credits for all parts before the
/// first.
#pragma once

#include <cstdint>

#include "lib/msg/message_port.hpp"
#include "lib/tag/wire.hpp"

namespace rio::tag {

/// Checks the parts of a message as they arrive. Lengths and kinds come from the peer and are
/// untrusted: at each point only one kind and length is valid. One thread; allocates nothing.
class Assembly {
 public:
  /// kFirst arrived. @param bytes payload behind FirstHeader. @param total_bytes_max longest
  /// message accepted. @return false: the peer broke the protocol, and nothing has changed.
  [[nodiscard]] bool begin(uint64_t total_bytes, uint64_t bytes, uint64_t total_bytes_max) {
    if (active() || bytes != kFirstBytesMax || total_bytes <= bytes ||
        total_bytes > total_bytes_max) {
      return false;
    }
    total_bytes_ = total_bytes;
    got_bytes_ = bytes;
    return true;
  }
  /// kMore or kLast arrived. @return as begin().
  [[nodiscard]] bool add(msg::Kind kind, uint64_t bytes) {
    const uint64_t left = total_bytes_ - got_bytes_;
    const bool last = left <= kMoreBytesMax;
    if (!active() || bytes != (last ? left : kMoreBytesMax) ||
        kind != (last ? msg::Kind::kLast : msg::Kind::kMore)) {
      return false;
    }
    got_bytes_ += bytes;
    return true;
  }

  /// Whether a message has begun and is not complete or forgotten.
  [[nodiscard]] bool active() const { return total_bytes_ != 0; }
  [[nodiscard]] bool whole() const { return got_bytes_ == total_bytes_; }
  [[nodiscard]] uint64_t got_bytes() const { return got_bytes_; }

 private:
  uint64_t total_bytes_ = 0;
  uint64_t got_bytes_ = 0;
};

/// Sends messages in several parts to one context of a peer, one after the other. Used only on the
/// port's thread. Errors are those of MessagePort::send().
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
