/// @file
/// The objects of a port, as they see each other.
#pragma once

#include "lib/msg/config.hpp"
#include "lib/msg/context_slot.hpp"
#include "lib/msg/listening_clock.hpp"

namespace rio::msg {

class Buffers;
class Inflows;
class Large;
class LargeControl;
class Paths;
class Peers;
class Rails;
class Retries;
class Sessions;
class Sorter;
class Speaker;

/// Each outlives all calls among them; some are constructed after the objects that refer to them.
/// The objects that a port has for each card are in its Rail.
struct PortObjects {
  const PortConfig& config;
  Rails& rails;
  Buffers& buffers;
  Peers& peers;
  Paths& paths;
  Large& large;
  LargeControl& control;
  const ContextSlots& contexts;
  Inflows& inflows;
  Retries& retries;
  Speaker& speaker;
  Sessions& sessions;
  Sorter& sorter;
  ListeningClock& listening;
  PortStats& stats;
};

}  // namespace rio::msg
