/// @file
/// Handles peers that do not answer. Ring entries are reused in order, so an unanswered one blocks
/// all later ones. The ring is then stopped and restarted, and the silent peer rests until it
/// answers a small read. See docs/decisions/0019-a-peer-that-does-not-answer.md.
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
  /// The objects it works with; each outlives this.
  struct Works {
    Endpoint& endpoint;
    Dma* dma;  ///< null: the card has no DMA queue
    Peers& peers;
    Outbox& outbox;
    Retries& retries;
    Sessions& sessions;
    Large& large;
    CardHealth& health;
    PortStats& stats;
  };

  /// @param response_timeout_us, deliver_ms as in PortConfig.
  Silence(const Works& works, uint32_t response_timeout_us, uint32_t deliver_ms)
      : works_(works),
        response_timeout_ns_(uint64_t{response_timeout_us} * 1000),
        deliver_ns_(uint64_t{deliver_ms} * 1'000'000) {}

  /// Stop the ring if it makes no progress and other peers wait for it; restart it once it has
  /// stopped. Called every now and then.
  void check_ring();
  /// Whether a silent peer delays other peers. @param end end of the ring entries to check.
  [[nodiscard]] bool others_wait(uint32_t silent_dest_id, uint32_t end) const;

  /// Let a peer rest: nothing is posted for it until it answers, and until the card may reuse its
  /// letters after a time-out.
  void begin_rest(Link& link);
  void end_rest(Link& link);
  /// End rests that are over, and sessions of peers that have rested for too long. Called every now
  /// and then.
  void check_rests();
  [[nodiscard]] bool any_rests() const { return !resting_.empty(); }

 private:
  void begin_restart();
  void poll_stop();
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
  pmd::IovaRun answer_{};          // memory for the answer of a peer, which nothing reads
};

}  // namespace rio::msg
