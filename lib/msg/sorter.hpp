/// @file
/// Handles arrivals that the fast path of Intake cannot: session messages, early or duplicate ones,
/// the library's own ones, and the first one after any of them.
#pragma once

#include <cstdint>

#include "lib/msg/buffers.hpp"
#include "lib/msg/inflows.hpp"
#include "lib/msg/large.hpp"
#include "lib/msg/link.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_objects.hpp"
#include "lib/msg/sessions.hpp"
#include "lib/msg/silence.hpp"
#include "lib/msg/speaker.hpp"

namespace rio::msg {

/// An arrival as the card reported it.
struct Arrival {
  uint8_t* buffer;
  uint32_t source;
  uint32_t length_bytes;
};

/// One per port; used only on the port's thread. Every field of a header is untrusted until it was
/// checked.
class Sorter {
 public:
  explicit Sorter(const PortObjects& objects) : works_(objects) {}

  /// Process one arrival at a rail, and put its buffer into an inbox or return it. Numbered
  /// messages are processed in order of their numbers.
  void take(Rail& rail, const Arrival& arrival);

 private:
  void on_session(Rail& rail, const Arrival& arrival, Kind kind);
  [[nodiscard]] bool keep_early(Link& link, Numbered message);
  void take_in_order(Link& link, Numbered next);
  [[nodiscard]] static bool take_early(Link& link, Numbered* next);
  void deliver(Link& link, const Numbered& message);
  void on_control(Link& link, const HeaderWords& header);
  void on_alive(Link& link);
  [[nodiscard]] bool on_refused(Link& link, const HeaderWords& header);
  void drop(const Numbered& message) {
    if (message.buffer != nullptr) {
      works_.buffers.give_back(message.buffer);
    }
  }

  PortObjects works_;
};

}  // namespace rio::msg
