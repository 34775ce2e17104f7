/// @file
/// Resends messages, with their old numbers, and finds those that an ended session has not
/// delivered.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "lib/msg/config.hpp"
#include "lib/msg/listening_clock.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. A link with messages to resend is held: nothing
/// else is sent to that peer until they have arrived.
class Retries {
 public:
  Retries(Peers& peers, ListeningClock& listening, PortStats& stats)
      : peers_(peers), listening_(listening), stats_(stats) {}

  /// Queue a failed message for resending; if the link rests, when the rest is over.
  void keep(Link& link, Again message);
  /// Keep a message that the card returned because its ring was stopped.
  void keep_flushed(Again message) { flushed_.push_back(std::move(message)); }
  /// The message in an entry of a rail's ring is completed. @return when it first failed, by
  /// the ListeningClock; 0: it was not resent.
  [[nodiscard]] uint64_t take_since(const Rail& rail, uint32_t entry);

  /// Whether the message last posted in this entry is a resent one.
  [[nodiscard]] bool is_resent(const Rail& rail, uint32_t entry) const;

  /// Hold a link until all its resent messages have arrived.
  void hold(Link& link);
  /// Much of a rail's ring is in use. If one peer, which does not accept its messages, fills most
  /// of it, hold that peer's link.
  void hold_if_greedy(const Rail& rail);

  /// A ring runs again: post the messages that it returned.
  void post_flushed();

  /// The session of a resting link has ended: drop the messages kept for it.
  void drop(const Link& link);

  /// The card of a rail is gone, and completes nothing any more: resend what was in its ring by
  /// other rails.
  void salvage(const Rail& rail);

  /// Whether any message is to be resent, now or after a rest.
  [[nodiscard]] bool has_any() const { return !again_.empty(); }
  /// Whether any message is to be resent now.
  [[nodiscard]] bool has_due() const;
  /// Resend messages that are due, and release links whose messages have arrived.
  void progress() {
    if (has_due() || !resent_.empty()) {
      send_again();
    }
    if (!held_.empty()) {
      release_held();
    }
  }

  /// Another process has the peer's destID: search the ring and the messages to resend; sets
  /// Link::unsent. @param key the peer's key of the session. @param not_taken null, or number of
  /// the first message that the new process did not receive. @return contexts that may have lost a
  /// message, for Link::lost.
  [[nodiscard]] uint64_t find_lost(Link& link, uint32_t key, const uint32_t* not_taken) const;
  /// Search again, when the new process reports which messages it did not receive only after the
  /// session has ended. Sets Link::lost and Link::unsent.
  void find_lost_late(Link& link, uint32_t not_taken) const;

 private:
  /// A resent message that is in the ring.
  struct Resent {
    uint32_t link;     // index
    uint32_t session;  // of the link
    const Rail* rail;
    uint32_t entry;     // index in the rail's ring, free-running
    uint64_t since_ns;  // as Again::since_ns
  };

  // Messages of one link that may be resent at a time: as many as the card has letters for each
  // peer and mailbox, so that they do not block other peers.
  static constexpr uint32_t kAgainMax = 4;

  void send_again();
  void release_held();
  void arrived_or_failed(const Resent& resent);

  Peers& peers_;
  ListeningClock& listening_;
  PortStats& stats_;
  std::vector<Again> again_;    // those of resting links wait for the end of the rest
  std::vector<Again> flushed_;  // messages that the card returned unsent from its stopped ring
  std::vector<Resent> resent_;
  std::vector<uint32_t> held_;  // indices of links
};

}  // namespace rio::msg
