/// @file
/// How two members come to a connection: pure, without I/O.
///
/// A member that wants a connection says hello, is answered by an accept that echoes its challenge,
/// and sends a datagram of the connection. The called member is connected when that datagram comes:
/// before, the caller has not shown that it is at its address. If both call, the accepts cross, and
/// the connection is the same.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "fpga/wire/udp/greeting.hpp"
#include "fpga/wire/udp/session.hpp"

namespace rio::wire::udp {

/// A member's description of itself.
struct Self {
  Random member{};
  uint32_t first_id = 0;  ///< 0: it does not matter to others
  uint32_t ids = 1;
  uint64_t fabric = 0;
  Key key;
};

/// One try of ours to be connected with a peer, or what came of it.
struct Attempt {
  Random challenge{};
  uint32_t session = 0;          ///< what datagrams to us bear; not 0
  std::optional<Greeting> they;  ///< what the peer said last
  uint32_t datagram_bytes = 0;   ///< longest that surely reaches the peer

  /// Make a greeting for the peer. @param seen_bytes of the datagram that is answered; 0: none.
  [[nodiscard]] Greeting say(uint8_t kind, const Self& self, uint32_t seen_bytes) const;
  /// Whether an accept or farewell answers what we have said.
  [[nodiscard]] bool answered_by(const Greeting& greeting) const {
    return greeting.to_session == session && greeting.echo == challenge;
  }
  /// Whether a hello is of the connection that this is.
  [[nodiscard]] bool same(const Greeting& hello) const {
    return they.has_value() && they->member == hello.member && they->challenge == hello.challenge;
  }
  /// A hello has come. @param seen_bytes its length.
  void hear_hello(const Greeting& hello, uint32_t seen_bytes);
  /// An accept that answered_by() has come.
  void hear_accept(const Greeting& accept);
  /// The terms of the connection. `they` must be there.
  [[nodiscard]] Agreed agree(const Key& key) const;
};

/// When a member that is called is called again.
class Calls {
 public:
  /// Call from now on.
  void begin(uint64_t now_ns);
  void end() { tries_ = 0; }
  [[nodiscard]] bool calling() const { return tries_ != 0; }
  [[nodiscard]] uint64_t due_ns() const { return next_ns_; }
  /// Whether no answer has come for so long that no member is there.
  [[nodiscard]] bool in_vain(uint64_t now_ns) const { return now_ns - begun_ns_ > kPatienceNs; }
  /// A call is made now. @param path_bytes the longest datagram to be tried.
  /// @return bytes of the hello: now and then a short one, as the path may not take the others.
  [[nodiscard]] uint32_t call(uint64_t now_ns, uint32_t path_bytes);

  static constexpr uint64_t kPatienceNs = 5'000'000'000;

 private:
  uint64_t begun_ns_ = 0;
  uint64_t next_ns_ = 0;
  uint32_t tries_ = 0;
};

}  // namespace rio::wire::udp
