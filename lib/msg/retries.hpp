/// @file
/// Messages that are sent once more, with the number that they have.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/msg/again.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_stats.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. A link that has such messages is held: nothing
/// else goes there until they have arrived.
class Retries {
 public:
  Retries(Outbox& outbox, Peers& peers, PortStats& stats)
      : outbox_(outbox), peers_(peers), stats_(stats) {}

  /// It failed, and is sent once more; not while the link rests.
  void keep(Link& link, Again message);
  /// The card gave it back, since its ring was stopped. @param resent it had failed before.
  void keep_flushed(Again message, bool resent) {
    flushed_.push_back({std::move(message), resent});
  }
  /// The message in that entry of the ring is not on its way any more.
  /// @return when it failed for the first time, by now_ns(); 0: it has not yet.
  [[nodiscard]] uint64_t take_since(uint32_t entry);
  /// Whether the message that was last in that entry is on its way once more.
  [[nodiscard]] bool is_resent(uint32_t entry) const;

  /// Nothing more goes there until all that is sent once more has arrived.
  void hold(Link& link);
  /// The ring is half full. Mostly that is one peer, which does not take what is sent: it is held.
  void hold_if_greedy();

  /// The ring runs again: what it gave back is posted as if nothing had been.
  void post_flushed();

  /// The link rests no more: what was kept for it goes.
  void unpark(const Link& link);
  /// The link rests, and its session has ended.
  void drop_parked(const Link& link);

  /// Whether there is anything that is sent once more, or waits for the end of a rest.
  [[nodiscard]] bool has_any() const { return !again_.empty() || !parked_.empty(); }
  /// Whether there is anything to be sent now.
  [[nodiscard]] bool has_due() const { return !again_.empty(); }
  /// Send what is due, and let links go on that are done.
  void progress() {
    if (!again_.empty() || !resent_.empty()) {
      send_again();
    }
    if (!held_.empty()) {
      release_held();
    }
  }
  /// All that are kept for that link and its session. @param visit(const Again&).
  template <class Visit>
  void for_each(const Link& link, Visit&& visit) const {
    const auto one = [&](const Again& message) {
      if (message.link == link.index() && message.session == link.session) {
        visit(message);
      }
    };
    for (const Again& message : again_) {
      one(message);
    }
    for (const Again& message : parked_) {
      one(message);
    }
    for (const Flushed& message : flushed_) {
      one(message.message);
    }
  }

 private:
  // Messages of a link that are sent once more at a time: the card has as many letters for each
  // mailbox of a peer, so they stop no other peer.
  static constexpr uint32_t kAgainMax = 4;

  void send_again();
  void release_held();
  void arrived_or_failed(const Resent& resent);

  Outbox& outbox_;
  Peers& peers_;
  PortStats& stats_;
  std::vector<Again> again_;
  std::vector<Again> parked_;  // for links that rest
  std::vector<Flushed> flushed_;
  std::vector<Resent> resent_;
  std::vector<uint32_t> held_;  // indices of links
};

}  // namespace rio::msg
