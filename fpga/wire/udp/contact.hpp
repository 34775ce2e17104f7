/// @file
/// The handshake by which two members connect, and the question whether the peer still has the
/// connection: pure, without I/O. Times are the caller's, of a monotonic clock.
///
/// A member that wants a connection sends a hello, gets an accept that echoes its challenge, and
/// sends a datagram of the connection. Only that datagram connects the called member: before, the
/// caller has not proved that it is at its address. If both call, the accepts cross, and they get
/// the same connection.
///
/// A process that restarted at its predecessor's port, or that gave up this side while it was
/// stopped, drops datagrams of unknown connections. So a side that hears nothing asks, with a
/// challenge of its own. The peer answers with a datagram of the connection, or with a farewell
/// that echoes the challenge: the only proof that ends the connection.
#pragma once

#include <cstdint>
#include <optional>

#include "fpga/wire/udp/connection.hpp"
#include "fpga/wire/udp/datagram.hpp"

namespace rio::wire::udp {

/// A member's description of itself.
struct Self {
  Random member{};
  uint32_t first_id = 0;  ///< 0: the other side chooses by itself
  uint32_t ids = 1;
  uint64_t fabric = 0;
  Key key;
};

/// An attempt to connect with a peer, or the resulting connection.
struct Attempt {
  Random challenge{};
  uint32_t session = 0;          ///< session number in datagrams to us; not 0
  std::optional<Greeting> they;  ///< the peer's last greeting
  uint32_t datagram_bytes = 0;   ///< longest that is known to reach the peer

  /// Make a greeting for the peer. @param seen_bytes of the datagram that is answered; 0: none.
  [[nodiscard]] Greeting say(uint8_t kind, const Self& self, uint32_t seen_bytes) const;
  /// Whether an accept or a farewell answers our greeting.
  [[nodiscard]] bool answered_by(const Greeting& greeting) const {
    return greeting.to_session == session && greeting.echo == challenge;
  }
  /// Whether a hello belongs to this connection.
  [[nodiscard]] bool same(const Greeting& hello) const {
    return they.has_value() && they->member == hello.member && they->challenge == hello.challenge;
  }
  /// Note a hello, or an accept that passed answered_by(). @param through_bytes longest datagram
  /// that has come through: the hello's length, or what the accept says.
  void hear(const Greeting& greeting, uint32_t through_bytes);
  /// The terms of the connection. `they` must be set.
  [[nodiscard]] Agreed agree(const Key& key) const;
};

/// Decides when to repeat the call of a member.
class Calls {
 public:
  void begin(uint64_t now_ns);
  void end() { tries_ = 0; }
  [[nodiscard]] bool calling() const { return tries_ != 0; }
  [[nodiscard]] uint64_t due_ns() const { return next_ns_; }
  /// Whether no answer came for so long that no member can be there.
  [[nodiscard]] bool in_vain(uint64_t now_ns) const { return now_ns - begun_ns_ > kPatienceNs; }
  /// Note a call made now. @param path_bytes the longest datagram to be tried. @return length of
  /// the hello; now and then a short one, since the path may not carry long ones.
  [[nodiscard]] uint32_t call(uint64_t now_ns, uint32_t path_bytes);

  static constexpr uint64_t kPatienceNs = 5'000'000'000;

 private:
  uint64_t begun_ns_ = 0;
  uint64_t next_ns_ = 0;
  uint32_t tries_ = 0;
};

/// Decides when to ask a silent peer, and whether it has answered. Used by one thread.
class Doubt {
 public:
  /// Begin to doubt, unless that has already begun. @param due_ns when to ask first.
  void begin(uint64_t now_ns, uint64_t due_ns);
  /// End the doubt: the peer was heard.
  void end() { due_ns_ = UINT64_MAX; }
  [[nodiscard]] bool on() const { return due_ns_ != UINT64_MAX; }
  /// When doubt began: a datagram heard after that ends it.
  [[nodiscard]] uint64_t since_ns() const { return since_ns_; }
  /// When the next question is due; UINT64_MAX: never.
  [[nodiscard]] uint64_t due_ns() const { return due_ns_; }
  /// Build the question, to be sent now; the next one is due after a longer interval each time. All
  /// questions of one doubt share a challenge, so a late answer counts. @param now the connection,
  /// which is up. @return 0; -EIO: the system has no random bytes.
  [[nodiscard]] int ask(uint64_t now_ns, const Attempt& now, const Self& self, Greeting* out);
  /// Whether a farewell proves that the peer does not know the connection.
  [[nodiscard]] bool answered_by(const Greeting& farewell, const Attempt& now) const;

 private:
  uint32_t asked_ = 0;
  uint64_t since_ns_ = 0;
  uint64_t due_ns_ = UINT64_MAX;  // UINT64_MAX: no doubt
  Random challenge_{};
};

/// Whether a question is about a connection that is up or being made. If not, answer with a
/// farewell of Reason::kUnknown.
[[nodiscard]] bool knows(const Attempt& attempt, const Greeting& question);

}  // namespace rio::wire::udp
