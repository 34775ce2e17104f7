/// @file
/// Ends sessions with peers that have died or left the fabric. The card's events report this at
/// once, long before a time-out would.
#pragma once

#include <cstdint>
#include <unordered_set>

#include "lib/msg/peers.hpp"
#include "lib/msg/sessions.hpp"
#include "lib/msg/silence.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread.
class Departures {
 public:
  Departures(pmd::EventQueue& events, Peers& peers, Sessions& sessions, Silence& silence)
      : events_(events), peers_(peers), sessions_(sessions), silence_(silence) {}

  /// Read the card's events, and end the sessions of peers that have gone.
  /// @param take_all takes all arrivals; called before a session ends, so that the peer's last
  /// messages, which arrived before the event, are not lost.
  template <class TakeAll>
  void look(TakeAll&& take_all) {
    pmd::CardEvent events[kBurst];
    for (uint32_t n = kBurst; n == kBurst;) {
      n = events_.burst(events, kBurst);
      for (uint32_t i = 0; i < n; ++i) {
        if (Link* const link = note(events[i]); link != nullptr) {
          take_all();
          end(*link);
        }
      }
    }
  }
  /// Whether the process at this destID has gone and no other has taken the destID since.
  [[nodiscard]] bool has_gone(uint32_t dest_id) const { return gone_.count(dest_id) != 0; }

 private:
  static constexpr uint32_t kBurst = 32;

  [[nodiscard]] Link* note(const pmd::CardEvent& event);
  void end(Link& link);

  pmd::EventQueue& events_;
  Peers& peers_;
  Sessions& sessions_;
  Silence& silence_;
  std::unordered_set<uint32_t> gone_;  // destIDs
};

}  // namespace rio::msg
