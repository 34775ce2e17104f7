/// @file
/// Counters of a port.
#pragma once

#include <cstdint>

namespace rio::msg {

/// Counted since the port was opened.
struct PortStats {
  uint64_t received = 0;  ///< numbered messages, in their order
  uint64_t again = 0;     ///< sent once more, since the card could not say that they arrived
  uint64_t early = 0;     ///< arrived before one with a lower number
  uint64_t twice = 0;     ///< arrived once more
  uint64_t bad = 0;       ///< of no session, no context, or no sense: dropped
  uint64_t refused = 0;   ///< reports that a context of a peer has closed, or does not exist
  uint64_t cut_off = 0;   ///< sessions ended because the peer broke a rule
  uint64_t copied = 0;    ///< bytes copied by this library
  uint64_t placed = 0;    ///< bytes of large data that the card read or wrote where they are
  uint64_t restarts = 0;  ///< of the transmit ring, since a peer that did not answer filled it
  uint64_t rests = 0;     ///< peers that were left alone for a while, each time
  uint64_t woken = 0;     ///< sleeps of threads that have ended
  /// Long sleeps that only the clock ended, though something had come: a wake-up was lost.
  uint64_t overslept = 0;
};

}  // namespace rio::msg
