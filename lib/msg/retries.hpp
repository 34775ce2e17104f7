/// @file
/// Resends messages, with their old numbers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/msg/again.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_stats.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. A link with messages to resend is held: nothing
/// else is sent to that peer until they have arrived.
class Retries {
 public:
  Retries(Outbox& outbox, Peers& peers, PortStats& stats)
      : outbox_(outbox), peers_(peers), stats_(stats) {}

  /// Queue a failed message for resending; if the link rests, when the rest is over.
  void keep(Link& link, Again message);
  /// Keep a message that the card returned because its ring was stopped. @param resent it had been
  /// resent before.
  void keep_flushed(Again message, bool resent) {
    flushed_.push_back({std::move(message), resent});
  }
  /// The message in a ring entry is completed. @return when it first failed, by now_ns(); 0: it was
  /// not resent.
  [[nodiscard]] uint64_t take_since(uint32_t entry);
  /// Whether the message last posted in this entry is a resent one.
  [[nodiscard]] bool is_resent(uint32_t entry) const;

  /// Hold a link until all its resent messages have arrived.
  void hold(Link& link);
  /// The ring is half full. If one peer, which does not accept its messages, fills most of it, hold
  /// that peer's link.
  void hold_if_greedy();

  /// The ring runs again: post the messages that it returned.
  void post_flushed();

  /// The link's rest is over: resend the messages kept meanwhile.
  void unpark(const Link& link);
  /// The session of a resting link has ended: drop the messages kept for it.
  void drop_parked(const Link& link);

  /// Whether any message is to be resent, now or after a rest.
  [[nodiscard]] bool has_any() const { return !again_.empty() || !parked_.empty(); }
  /// Whether any message is to be resent now.
  [[nodiscard]] bool has_due() const { return !again_.empty(); }
  /// Resend messages that are due, and release links whose messages have arrived.
  void progress() {
    if (!again_.empty() || !resent_.empty()) {
      send_again();
    }
    if (!held_.empty()) {
      release_held();
    }
  }
  /// Visit all messages kept for a link in a session. @param visit(const Again&).
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
  // Messages of one link that may be resent at a time: as many as the card has letters for each
  // peer and mailbox, so that they do not block other peers.
  static constexpr uint32_t kAgainMax = 4;

  void send_again();
  void release_held();
  void arrived_or_failed(const Resent& resent);

  Outbox& outbox_;
  Peers& peers_;
  PortStats& stats_;
  std::vector<Again> again_;
  std::vector<Again> parked_;  // messages of resting links
  std::vector<Flushed> flushed_;
  std::vector<Resent> resent_;
  std::vector<uint32_t> held_;  // indices of links
};

}  // namespace rio::msg
