/// @file
/// Peers that do not answer. Entries of the ring are used again in order, so one that is not
/// answered stands in the way of all that come after it. The ring is then stopped, which the card
/// bounds, and started again; the silent peer is left alone until it answers a question that costs
/// no other peer anything. See docs/decisions/0019-a-peer-that-does-not-answer.md.
#pragma once

#include <cstdint>
#include <vector>

#include "lib/msg/card_health.hpp"
#include "lib/msg/dma.hpp"
#include "lib/msg/large.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_stats.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/sessions.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. No call waits.
class Silence {
 public:
  /// Each outlives this.
  struct Works {
    Endpoint& endpoint;
    Dma* dma;  ///< null: the card has none
    Peers& peers;
    Outbox& outbox;
    Retries& retries;
    Sessions& sessions;
    Large& large;
    CardHealth& health;
    PortStats& stats;
  };

  /// @param response_timeout_us, deliver_ms as PortConfig's.
  Silence(const Works& works, uint32_t response_timeout_us, uint32_t deliver_ms)
      : works_(works),
        response_timeout_ns_(uint64_t{response_timeout_us} * 1000),
        deliver_ns_(uint64_t{deliver_ms} * 1'000'000) {}

  /// Now and then: stop the ring if it does not move and others pay for that; restart it when it
  /// has stopped.
  void look_at_ring();
  /// Whether a silent peer costs others anything. One alone that is silent waits for itself only.
  /// @param end of the entries that are looked at.
  [[nodiscard]] bool others_wait(uint32_t silent_dest_id, uint32_t end) const;

  /// Nothing is posted for the peer until it is heard of, and for as long as its letters rest after
  /// a time-out.
  void begin_rest(Link& link);
  void end_rest(Link& link);
  /// Now and then: end the rests that are over, and the sessions of peers that rest for too long.
  void look_at_rests();
  [[nodiscard]] bool any_rests() const { return !resting_.empty(); }

 private:
  void begin_restart();
  void look_at_stop();
  void finish_restart();
  void give_up(const char* what);
  [[nodiscard]] bool still_rests(Link& link, uint64_t now);
  void ask(Link& link);
  [[nodiscard]] bool can_ask() const;
  [[nodiscard]] bool have_answer_memory();
  [[nodiscard]] pmd::TxQueue& ring() const { return works_.outbox.ring(); }

  Works works_;
  uint64_t response_timeout_ns_;
  uint64_t deliver_ns_;
  Stuck stuck_{};
  uint64_t stop_ns_ = 0;
  std::vector<uint32_t> resting_;  // indices of links
  pmd::IovaRun answer_{};          // where the peer's answer goes, which nothing reads
};

}  // namespace rio::msg
