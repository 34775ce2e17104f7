/// @file
/// Whether the peer of a connection still has it: pure, without I/O.
///
/// A process that was started again at its predecessor's port, or that gave this side up while it
/// was stopped, drops what comes for a connection that it does not know. So a side that hears
/// nothing asks, by a challenge of its own. The peer answers by a datagram of the connection, or by
/// a farewell that echoes the challenge, which is the only proof that ends the connection.
#pragma once

#include <cstdint>

#include "fpga/sim/udp/contact.hpp"

namespace rio::sim::udp {

/// Used by one thread. Times are the caller's, of a clock that never goes back.
class Doubt {
 public:
  /// Doubt, unless that is done already. @param due_ns when to ask first.
  void begin(uint64_t now_ns, uint64_t due_ns);
  /// The peer was heard.
  void end() { on_ = false; }
  [[nodiscard]] bool on() const { return on_; }
  /// What is heard later ends it.
  [[nodiscard]] uint64_t since_ns() const { return since_ns_; }
  /// When the next question is due; UINT64_MAX: never.
  [[nodiscard]] uint64_t due_ns() const { return on_ ? due_ns_ : UINT64_MAX; }
  /// The question, which is asked now; the next one is due later each time. All of one doubt have
  /// the same challenge, so a late answer counts.
  /// @param now the connection, which is up. @return 0; -EIO: the system has no random bytes.
  [[nodiscard]] int ask(uint64_t now_ns, const Attempt& now, const Self& self, Greeting* out);
  /// Whether a farewell is the peer's word that it does not know the connection.
  [[nodiscard]] bool answered_by(const Greeting& farewell, const Attempt& now) const;

 private:
  bool on_ = false;
  uint32_t asked_ = 0;
  uint64_t since_ns_ = 0;
  uint64_t due_ns_ = 0;
  Random challenge_{};
};

/// Whether a question is about a connection that is up or being made. Otherwise a farewell with
/// Reason::kUnknown is the answer.
[[nodiscard]] bool knows(const Attempt& attempt, const Greeting& question);

}  // namespace rio::sim::udp
