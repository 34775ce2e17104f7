/// @file
/// Handles peers that have gone, and peers that do not answer. The card's events report that a peer
/// has died or left the fabric. Where the card cannot pass over messages that wait, or too many
/// wait, an unanswered message blocks all later ones: the ring is stopped and restarted, and the
/// silent peer rests until it answers a small read. See
/// docs/decisions/0019-a-peer-that-does-not-answer.md.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/retries.hpp"
#include "lib/msg/sessions.hpp"

namespace rio::msg {

/// One per rail; used only on the port's thread. No call waits.
class Silence {
 public:
  Silence(const PortObjects& objects, Rail& rail);

  /// Stop the ring if it makes no progress and other peers wait for it; restart it once it has
  /// stopped. Let a peer rest whose message others have passed long ago. Called every now and then.
  void check_ring();
  /// Whether a silent peer delays other peers. @param end end of the ring entries to check.
  [[nodiscard]] bool others_wait(uint32_t silent_dest_id, uint32_t end) const;

  /// A message was not answered: its path is in doubt. If the peer is reached by another one now,
  /// the messages behind it are called back.
  void doubt(Path& path);
  /// The messages to a peer have left a path that fails: stop the ring, so that those that the card
  /// still has are returned at once, and not one after the other when their time is over.
  void call_back(const Path& path);

  /// Let a peer rest: nothing is posted for it until it answers, and until the card may reuse its
  /// letters after a time-out.
  void begin_rest(Path& path);
  void end_rest(Path& path);
  /// End rests that are over, and sessions of peers that have rested for too long. Called every now
  /// and then.
  void check_rests();
  [[nodiscard]] bool any_rests() const { return !resting_.empty(); }

  /// Read the card's events, and end the sessions of peers that have gone.
  /// @param take_all takes all arrivals; called before a session ends, so that the peer's last
  /// messages, which arrived before the event, are not lost.
  template <class TakeAll>
  void look_for_gone(TakeAll&& take_all) {
    pmd::CardEvent events[kBurst];
    for (uint32_t n = kBurst; n == kBurst;) {
      n = events_.burst(events, kBurst);
      for (uint32_t i = 0; i < n; ++i) {
        if (Path* const path = note_event(events[i]); path != nullptr) {
          take_all();
          path_gone(*path);
        }
      }
    }
  }
  /// Whether the process at this destID has gone and no other has taken the destID since.
  [[nodiscard]] bool has_gone(uint32_t dest_id) const { return gone_.count(dest_id) != 0; }

 private:
  static constexpr uint32_t kBurst = 32;

  void path_gone(Path& path);
  [[nodiscard]] Path* note_event(const pmd::CardEvent& event);
  void check_straggler();
  void begin_restart(Path* silent);
  [[nodiscard]] bool moves(Path& path);
  void stop();
  void poll_stop();
  void finish_restart();
  void give_up(const char* what);
  [[nodiscard]] bool still_rests(Path& path, uint64_t now);
  void ask(Path& path);
  [[nodiscard]] bool can_ask() const;
  [[nodiscard]] pmd::TxQueue& ring() const;

  /// Tracks how long the ring's oldest entry has gone unanswered.
  struct Stuck {
    uint32_t oldest;    // index of that entry, free-running
    uint32_t end;       // end of the entries already posted when tracking began
    uint32_t looks;     // checks of the ring since, each a chance for the peer to answer
    uint64_t since_ns;  // when tracking began, by now_ns(); 0: not tracking
  };

  PortObjects works_;
  Rail& rail_;
  pmd::EventQueue& events_;
  Stuck stuck_{};
  bool wants_stop_ = false;
  uint64_t stop_ns_ = 0;
  std::vector<Path*> resting_;
  std::unordered_set<uint32_t> gone_;  // destIDs
  pmd::IovaRun answer_{};              // memory for the answer of a peer, which nothing reads
};

}  // namespace rio::msg
