/// @file
/// Large data in a port: both directions, made when the first of it begins, and what peers say
/// about it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/msg/context_slot.hpp"
#include "lib/msg/large_control.hpp"
#include "lib/msg/receiver.hpp"
#include "lib/msg/registrations.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {

/// Of one port; its thread.
class Large {
 public:
  /// @param buffers of the port.
  Large(Endpoint& endpoint, Outbox& outbox, Peers& peers, Inflows& inflows,
        const ContextSlots& contexts, const CardHealth& health, PortStats& stats,
        uint32_t response_timeout_us, uint32_t buffers)
      : control_(outbox),
        memory_(endpoint),
        works_{endpoint,           outbox, peers, inflows, control_, memory_, health, stats,
               response_timeout_us},
        contexts_(contexts),
        buffers_(buffers) {}

  /// Makes both directions, if need be. @return 0, -ENOMEM.
  [[nodiscard]] int start();
  [[nodiscard]] bool started() const { return receiver_ != nullptr; }
  /// After start().
  [[nodiscard]] Sender& sender() {
    awake_ = true;
    return *sender_;
  }
  /// After start().
  [[nodiscard]] Receiver& receiver() {
    awake_ = true;
    return *receiver_;
  }
  /// The user's memory, as the card reaches it.
  [[nodiscard]] Registrations& memory() { return memory_; }

  /// Hot. Whether progress() has anything to do, or late_possible().
  [[nodiscard]] bool awake() const { return awake_; }
  void progress();
  /// Whether large data is under way.
  [[nodiscard]] bool busy() const;
  /// Whether large data may come that no transfer waits for.
  [[nodiscard]] bool late_possible() const { return started() && receiver_->late_possible(); }

  /// Keep the body of a message that came early, which loses its buffer. @return false: it is too
  /// long to be right.
  [[nodiscard]] static bool keep_body(Numbered* message);
  /// A message about large data, in its turn. @return false: the peer has lied.
  [[nodiscard]] bool on_message(Link& link, const Numbered& message);

  /// The ring that was stopped runs again.
  void resume();
  void end_session(Link& link, int error);
  /// Before all sessions end: the card does nothing any more.
  void card_gone();
  /// A context of ours closes.
  void close_context(Link& link, uint16_t context);

 private:
  static constexpr uint32_t kAnswersMax = 4096;  // that a peer may wait for

  [[nodiscard]] bool on_request(Link& link, const Header& header, std::span<const uint8_t> body);
  [[nodiscard]] bool on_control(Link& link, const HeaderWords& header,
                                std::span<const uint8_t> body);

  bool awake_ = false;  // busy() or late_possible() may be true
  LargeControl control_;
  Registrations memory_;
  LargeWorks works_;
  const ContextSlots& contexts_;
  uint32_t buffers_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
};

}  // namespace rio::msg
