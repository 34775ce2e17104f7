/// @file
/// Tells peers what they have to be told, when there is room; no call here waits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "lib/msg/again.hpp"
#include "lib/msg/card_health.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread. News for a peer is noted in its link (ToSay);
/// Peers lists those links.
class Speaker {
 public:
  /// @param instance as MessagePort::instance(). @param connect_ms as PortConfig's.
  Speaker(Outbox& outbox, Peers& peers, const CardHealth& health, uint32_t instance,
          uint32_t connect_ms)
      : outbox_(outbox),
        peers_(peers),
        health_(health),
        instance_(instance),
        connect_ms_(connect_ms) {}

  /// Say all that there is to say, as far as there is room.
  void speak();
  /// Ask the peer for a session; the answer has to come within connect_ms.
  void ask(Link& link);
  /// The answer has not come in the time that it may take: ask once more.
  void ask_again(Link& link, uint64_t now_ns);
  /// Ask the peer for a sign that it knows the session still.
  void ask_for_sign(Link& link, uint64_t now_ns);
  /// Tell a peer that what it sent belongs to no session. No link is made for it, and what does not
  /// fit in is dropped: a peer that sends more is told then.
  void tell_unknown(const Reset& reset);

  /// Whether the news that the last context of this id has closed may still be on its way.
  [[nodiscard]] bool news_may_be_out(uint32_t context) const;
  /// It has arrived.
  void forget_news(uint32_t context) { told_at_[context] = 0; }

 private:
  static constexpr uint32_t kResetsMax = 64;
  static constexpr uint32_t kResetTries = 16;

  [[nodiscard]] bool speak(Link& link);
  [[nodiscard]] bool say_contexts(Link& link);
  [[nodiscard]] bool say_resets();
  [[nodiscard]] bool say_refused(Link& link, uint32_t context);
  [[nodiscard]] bool say_total(Link& link, Kind kind, uint32_t from, RecvAccount& account);
  [[nodiscard]] bool say_session(const Link& link, Kind kind);

  Outbox& outbox_;
  Peers& peers_;
  const CardHealth& health_;
  uint32_t instance_;
  uint32_t connect_ms_;
  std::vector<Reset> resets_;
  std::array<uint32_t, kContexts> told_at_{};  // ring entry after the news of their last end
};

}  // namespace rio::msg
