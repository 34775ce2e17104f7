/// @file
/// Sends the library's news to peers when there is room. No call here waits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"

namespace rio::msg {

/// A kReset to send, because a message arrived that belongs to no session.
struct Reset {
  Rail* rail;  ///< that the message came by
  uint32_t dest_id;
  uint32_t key;
  uint32_t number;  ///< number of the first message not received
  uint32_t tries;
};

/// One per port; used only on the port's thread. News for a peer is noted in its link (ToSay);
/// Peers lists the links with news.
class Speaker {
 public:
  static constexpr uint64_t kAgainNs = 2'000'000;  ///< time until an unanswered hello is repeated

  /// @param instance as MessagePort::instance().
  Speaker(const PortObjects& objects, uint32_t instance) : on_(objects), instance_(instance) {}

  /// Send all pending news, as far as there is room.
  void speak();
  /// Ask the peer for a session. The answer must arrive within connect_ms.
  void ask(Link& link);
  /// Queue a reset for a peer that sent a message of an unknown session. No link is created for it.
  /// If the queue is full the reset is dropped: the next message of the peer causes another one.
  void tell_unknown(const Reset& reset);

  /// Whether peers may not have received yet that the last context of this id has closed.
  [[nodiscard]] bool news_may_be_out(uint32_t context) const;
  /// Forget news that the peer has received.
  void forget_news(uint32_t context) {
    for (auto& of_rail : told_at_) {
      of_rail[context] = 0;
    }
  }

 private:
  static constexpr uint32_t kResetsMax = 64;
  static constexpr uint32_t kResetTries = 16;

  [[nodiscard]] bool speak(Link& link);
  [[nodiscard]] bool say_contexts(Link& link);
  [[nodiscard]] bool say_resets();
  [[nodiscard]] bool say_refused(Link& link, uint32_t context);
  [[nodiscard]] bool say_total(Link& link, Kind kind, uint32_t from, RecvAccount& account);
  [[nodiscard]] bool say_session(const Link& link, Kind kind);

  PortObjects on_;
  uint32_t instance_;
  std::vector<Reset> resets_;
  // Ring index after the news that a context has closed; by rail and context.
  std::array<std::array<uint32_t, kContexts>, kRailsMax> told_at_{};
};

}  // namespace rio::msg
