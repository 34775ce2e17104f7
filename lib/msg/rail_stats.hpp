/// @file
/// Counters of one rail of a port.
///
/// Thread rule: plain values; any thread.
#pragma once

#include <cstdint>

namespace rio::msg {

/// Counts since the port was opened. The card's queues count messages and bytes, with headers;
/// nothing more is counted while messages flow. RailPage copies the members as words.
struct RailStats {
  uint64_t sent = 0;            ///< messages delivered, the library's own too
  uint64_t sent_bytes = 0;      ///< of these
  uint64_t received = 0;        ///< messages received, the library's own too
  uint64_t received_bytes = 0;  ///< of these
  uint64_t remote = 0;          ///< remote reads, writes and atomic operations that have succeeded
  uint64_t remote_bytes = 0;    ///< of these
  uint64_t failed = 0;          ///< messages and remote operations not delivered, or in doubt
  uint64_t again = 0;           ///< messages resent by this rail
  uint64_t moves = 0;           ///< times that the messages to a peer left this rail for another
  uint64_t downs = 0;           ///< times that a path of this rail went down
  uint64_t paths = 0;           ///< peers that this rail has reached in their present session
  uint64_t paths_up = 0;        ///< of these, peers that it reaches now
  uint64_t gone = 0;            ///< 1: the card is gone, was reset, or has failed; else 0
};

}  // namespace rio::msg
