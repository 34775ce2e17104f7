/// @file
/// Messages that arrive for a context. Every field is untrusted until it was compared with what the
/// context knows of the peer.
#pragma once

#include "lib/tag/large_moves.hpp"
#include "lib/tag/unexpected.hpp"

namespace rio::tag {

/// Takes messages out of the context's inbox and gives them to receives, or keeps them. One thread.
class Intake {
 public:
  /// All outlive the intake. @param sessions may be called by all functions but arrive_alone().
  Intake(EngineState& state, UnexpectedStore& store, LargeMoves& large, SessionWatch& sessions)
      : state_(state), store_(store), large_(large), sessions_(sessions) {}

  /// Hot. Take one whole message that is alone in the inbox, as in a ping-pong: like drain(),
  /// without the steps that pay for many messages only. @return false: it is another kind, or no
  /// receive waits for it; it is still there.
  [[nodiscard]] bool arrive_alone();
  /// Hot. Empty the inbox.
  void drain();
  /// Take the oldest of the inbox, whatever it is.
  void arrive(const iovec& bytes, const msg::Origin& origin);
  /// The oldest of the inbox breaks a rule: drop it, and end the session. @param what for the log.
  void cut_off(const msg::Origin& origin, const char* what);

  /// Hot. Whether any message in several parts is under way.
  [[nodiscard]] bool any_incoming() const { return incoming_ != 0; }
  /// Whether one of this sender is.
  [[nodiscard]] bool has_incoming(const msg::Origin& origin) const;

  /// A receive takes over a message of which not all parts have arrived.
  static void redirect(Peer& peer, RecvRequest& request);
  /// The rest of a message in several parts will not come.
  void fail_incoming(Peer& peer, int error);

 private:
  void arrive_run(const msg::Origin& origin);
  static void complete(RecvRequest& request, Address source, const iovec& bytes, uint32_t head,
                       Requests* done);
  [[nodiscard]] const char* arrive_data(const iovec& bytes, const msg::Origin& origin,
                                        uint32_t head);
  [[nodiscard]] bool arrive_first(Peer& peer, const iovec& bytes, bool has_immediate);
  [[nodiscard]] bool arrive_part(Peer& peer, const iovec& bytes, msg::Kind kind);
  void end_incoming(Peer& peer);
  void drop_arrived();

  EngineState& state_;
  uint32_t incoming_ = 0;  // peers with a message in several parts under way
  UnexpectedStore& store_;
  LargeMoves& large_;
  SessionWatch& sessions_;
};

}  // namespace rio::tag
