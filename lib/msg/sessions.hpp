/// @file
/// Begins and ends sessions with peers, also those of peers that do not answer in time.
#pragma once

#include <cstdint>

#include "lib/msg/buffers.hpp"
#include "lib/msg/inflows.hpp"
#include "lib/msg/large.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/speaker.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. News for the peer is noted in the link and sent by
/// Speaker, so nothing here ever waits.
class Sessions {
 public:
  /// @param dest_id the card's.
  Sessions(const PortObjects& objects, uint32_t dest_id) : on_(objects), dest_id_(dest_id) {}

  /// A hello, welcome or reset arrived by a rail. @return false: it is invalid.
  [[nodiscard]] bool on_message(Rail& rail, uint32_t source, Kind kind, const SessionBody& body);
  /// The session is up: each side knows that the other one has its key.
  void begin(Link& link);
  /// End a session. Contexts with a route to the peer are told the error. @param lost contexts for
  /// Link::lost.
  void end(Link& link, int error, uint64_t lost = ~0ull);
  /// End a session, and tell the peer with a reset.
  void reset(Link& link, int error);
  /// The peer broke the protocol: end the session and tell the peer. Logs a warning, once for each
  /// peer.
  void cut_off(Link& link);
  /// If a card is gone, end all sessions and transfers on it. Called every now and then.
  void check_card();
  /// Check all links that Peers::watch() was called for: ask again, or give up. Called every now
  /// and then.
  void check_deadlines();
  /// When check_deadlines() next has something to do, by now_ns(). @param bound_ns upper bound of
  /// the result.
  [[nodiscard]] uint64_t next_deadline_ns(uint64_t bound_ns) const;
  /// The peer's process has ended.
  void peer_gone(Link& link) {
    if (link.state == LinkState::kUp || link.keys.remote != 0) {
      forget_peer(link, nullptr);
    }
  }
  /// The process at this destID is known to be `instance`: end a session with any other instance.
  void meet_instance(uint32_t dest_id, uint32_t instance);

  /// A context of ours has closed; its slot is no longer in the table.
  void close_context(uint16_t id);
  /// Count of ended sessions; also increments when Link::lost of an ended session changes.
  [[nodiscard]] uint64_t ended() const { return ended_; }

 private:
  [[nodiscard]] bool on_hello(Rail& rail, uint32_t source, const SessionBody& body);
  [[nodiscard]] Link* known(const Rail& rail, uint32_t source) const;
  [[nodiscard]] bool meet(Link& link, const SessionBody& body);
  void forget_peer(Link& link, const uint32_t* not_taken);
  void card_gone(Rail& rail);
  void tell_contexts(const Link& link) const;
  void check_deadline(Link& link, uint64_t now);
  [[nodiscard]] bool end_if_hole(Link& link, uint64_t now);

  PortObjects on_;
  uint32_t dest_id_;
  uint64_t ended_ = 0;
};

}  // namespace rio::msg
