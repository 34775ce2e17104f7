/// @file
/// Large data of a port. The sender and the receiver are created on first use; this also dispatches
/// the peers' messages about large data.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "lib/msg/inflows.hpp"
#include "lib/msg/large_control.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/receiver.hpp"
#include "lib/msg/sender.hpp"

namespace rio::msg {

/// One per port; used only on the port's thread.
class Large {
 public:
  explicit Large(const PortObjects& objects) : works_(objects) {}

  /// Create the sender and the receiver if they do not exist. @return 0, -ENOMEM.
  [[nodiscard]] int start();
  [[nodiscard]] bool started() const { return receiver_ != nullptr; }
  /// Only after start().
  [[nodiscard]] Sender& sender() {
    awake_ |= kActive;
    return *sender_;
  }
  /// Only after start().
  [[nodiscard]] Receiver& receiver() {
    awake_ |= kActive;
    return *receiver_;
  }

  /// Hot. Whether the port's progress takes the long way: is_active(), or stay_awake() was called.
  [[nodiscard]] bool awake() const { return awake_ != 0; }
  /// Hot. Whether progress() has anything to do, or large data may arrive that no transfer expects.
  [[nodiscard]] bool is_active() const { return (awake_ & kActive) != 0; }
  /// The port has several rails, so its progress never takes the short way.
  void stay_awake() { awake_ |= kRails; }
  void progress();
  /// Take what the cards have completed. Bounded.
  void take_all();
  /// Whether large data is under way.
  [[nodiscard]] bool busy() const;
  /// Handle a message about large data, in order of its number. @return false: the peer broke the
  /// protocol.
  [[nodiscard]] bool on_message(Link& link, const Numbered& message);

  /// The transmit ring of a rail runs again after a stop.
  void resume(const Rail& rail);
  void end_session(Link& link, int error);
  /// The card of a rail is gone. Called before all sessions end.
  void card_gone(Rail& rail);
  /// A context of ours closes: end its transfers with this peer.
  void close_context(Link& link, uint16_t context);

 private:
  static constexpr uint8_t kActive = 1;          // of awake_
  static constexpr uint8_t kRails = 2;           // of awake_
  static constexpr uint32_t kAnswersMax = 4096;  // most answers that one peer may have pending

  [[nodiscard]] bool on_request(Link& link, const Header& header, std::span<const uint8_t> body);
  [[nodiscard]] bool on_control(Link& link, const HeaderWords& header,
                                std::span<const uint8_t> body);

  uint8_t awake_ = 0;  // kActive, kRails
  PortObjects works_;
  std::unique_ptr<Sender> sender_;
  std::unique_ptr<Receiver> receiver_;
};

}  // namespace rio::msg
