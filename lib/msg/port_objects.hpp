/// @file
/// The objects of a port, as they see each other.
#pragma once

#include "lib/msg/config.hpp"
#include "lib/msg/context_slot.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

class Buffers;
class CardHealth;
class Dma;
class Inflows;
class Large;
class LargeControl;
class Outbox;
class Peers;
class Registrations;
class Retries;
class Sessions;
class Silence;
class Speaker;

/// Each outlives all calls among them; some are constructed after the objects that refer to them.
struct PortObjects {
  const PortConfig& config;
  Endpoint& endpoint;
  Dma* dma;  ///< null: the card has no DMA queue
  Outbox& outbox;
  Buffers& buffers;
  Peers& peers;
  Large& large;
  LargeControl& control;
  Registrations& memory;
  const ContextSlots& contexts;
  Inflows& inflows;
  Retries& retries;
  CardHealth& health;
  Speaker& speaker;
  Sessions& sessions;
  Silence& silence;
  PortStats& stats;
};

}  // namespace rio::msg
