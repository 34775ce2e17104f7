/// @file
/// The objects that the sender and the receiver of large data use.
#pragma once

#include <cstdint>

#include "lib/msg/card_health.hpp"
#include "lib/msg/inflows.hpp"
#include "lib/msg/large_control.hpp"
#include "lib/msg/outbox.hpp"
#include "lib/msg/peers.hpp"
#include "lib/msg/port_stats.hpp"
#include "lib/msg/registrations.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// The objects of one port; each outlives the sender and the receiver.
struct LargeWorks {
  Endpoint& endpoint;
  Outbox& outbox;
  Peers& peers;
  Inflows& inflows;
  LargeControl& control;
  Registrations& memory;
  const CardHealth& health;
  PortStats& stats;
  uint32_t response_timeout_us;
};

}  // namespace rio::msg
