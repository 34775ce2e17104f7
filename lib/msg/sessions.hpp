/// @file
/// Sessions with peers: how they begin and how they end.
#pragma once

#include <cstdint>

#include "lib/msg/buffers.hpp"
#include "lib/msg/card_health.hpp"
#include "lib/msg/context_slot.hpp"
#include "lib/msg/dma.hpp"
#include "lib/msg/inflows.hpp"
#include "lib/msg/large.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_stats.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/speaker.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. News for the peer is noted in the link and sent by
/// Speaker, so nothing here ever waits.
class Sessions {
 public:
  /// The objects that hold anything of a session; each outlives this.
  struct Holders {
    Peers& peers;
    Outbox& outbox;
    Retries& retries;
    Speaker& speaker;
    Buffers& buffers;
    Inflows& inflows;
    Large& large;
    Dma* dma;  ///< null: the card has none
    CardHealth& health;
    const ContextSlots& contexts;
    PortStats& stats;
  };

  /// @param dest_id of the card.
  Sessions(const Holders& holders, uint32_t dest_id) : on_(holders), dest_id_(dest_id) {}

  /// HELLO, WELCOME or RESET. @return false: of no sense.
  [[nodiscard]] bool on_message(uint32_t source, Kind kind, const SessionBody& body);
  /// Both sides know that the other one has heard their key.
  void begin(Link& link);
  /// End it. Contexts with a route to the peer hear of the error. @param lost contexts for
  /// Link::lost.
  void end(Link& link, int error, uint64_t lost = ~0ull);
  /// End it, and tell the peer that what it sends belongs to no session.
  void reset(Link& link, int error);
  /// The peer broke a rule: end the session and tell it; a warning is logged, once.
  void cut_off(Link& link);
  /// Now and then: if the card is gone, end all, and all that the card still had to read or write.
  void look_at_card();
  /// The process that was the peer is no more.
  void peer_gone(Link& link) {
    if (link.state == LinkState::kUp || link.keys.remote != 0) {
      forget_peer(link, nullptr);
    }
  }
  /// The process at this destID is known to be `instance`: end a session with any other one.
  void meet_instance(uint32_t dest_id, uint32_t instance);

  /// A context of ours is closed: its slot is not in the table any more.
  void close_context(uint16_t id);
  /// How many have ended; also grows when Link::lost of an ended one changes.
  [[nodiscard]] uint64_t ended() const { return ended_; }

 private:
  [[nodiscard]] bool on_hello(uint32_t source, const SessionBody& body);
  [[nodiscard]] bool meet(Link& link, const SessionBody& body);
  void forget_peer(Link& link, const uint32_t* not_taken);
  void tell_contexts(const Link& link) const;
  static void clear(Link& link);

  Holders on_;
  uint32_t dest_id_;
  uint64_t ended_ = 0;
};

}  // namespace rio::msg
