/// @file
/// Finds out whether the peer still has a connection: pure, without I/O.
///
/// A process that restarted at its predecessor's port, or that gave up this side while it was
/// stopped, drops datagrams of unknown connections. So a side that hears nothing asks, with a
/// challenge of its own. The peer answers with a datagram of the connection, or with a farewell
/// that echoes the challenge: the only proof that ends the connection.
#pragma once

#include <cstdint>

#include "fpga/wire/udp/contact.hpp"

namespace rio::wire::udp {

/// Used by one thread. Times are the caller's, of a monotonic clock.
class Doubt {
 public:
  /// Begin to doubt, unless that has already begun. @param due_ns when to ask first.
  void begin(uint64_t now_ns, uint64_t due_ns);
  /// End the doubt: the peer was heard.
  void end() { on_ = false; }
  [[nodiscard]] bool on() const { return on_; }
  /// When doubt began: a datagram heard after that ends it.
  [[nodiscard]] uint64_t since_ns() const { return since_ns_; }
  /// When the next question is due; UINT64_MAX: never.
  [[nodiscard]] uint64_t due_ns() const { return on_ ? due_ns_ : UINT64_MAX; }
  /// Build the question, to be sent now; the next one is due after a longer interval each time. All
  /// questions of one doubt share a challenge, so a late answer counts. @param now the connection,
  /// which is up. @return 0; -EIO: the system has no random bytes.
  [[nodiscard]] int ask(uint64_t now_ns, const Attempt& now, const Self& self, Greeting* out);
  /// Whether a farewell proves that the peer does not know the connection.
  [[nodiscard]] bool answered_by(const Greeting& farewell, const Attempt& now) const;

 private:
  bool on_ = false;
  uint32_t asked_ = 0;
  uint64_t since_ns_ = 0;
  uint64_t due_ns_ = 0;
  Random challenge_{};
};

/// Whether a question is about a connection that is up or being made. If not, answer with a
/// farewell of Reason::kUnknown.
[[nodiscard]] bool knows(const Attempt& attempt, const Greeting& question);

}  // namespace rio::wire::udp
