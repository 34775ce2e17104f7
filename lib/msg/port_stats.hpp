/// @file
/// Counters of a port.
#pragma once

#include <cstdint>

namespace rio::msg {

/// Counts since the port was opened.
struct PortStats {
  uint64_t received = 0;  ///< numbered messages received in order
  uint64_t again = 0;     ///< messages resent because the card could not confirm their arrival
  uint64_t early = 0;     ///< messages that arrived before one with a lower number
  uint64_t twice = 0;     ///< duplicates
  uint64_t bad = 0;       ///< messages dropped: unknown session or context, or invalid
  uint64_t refused = 0;   ///< reports that a context of a peer has closed, or does not exist
  uint64_t cut_off = 0;   ///< sessions ended because the peer broke a rule
  uint64_t copied = 0;    ///< bytes copied by this library
  uint64_t placed = 0;    ///< bytes of large data that the card read or wrote where they are
  uint64_t restarts = 0;  ///< restarts of the transmit ring, filled by a peer that did not answer
  uint64_t rests = 0;     ///< how often the port stopped sending to a silent peer for a while
  uint64_t woken = 0;     ///< sleeps that have ended
  /// Long sleeps that ended by time-out although something had arrived: a wake-up was lost.
  uint64_t overslept = 0;
};

}  // namespace rio::msg
