/// @file
/// Configuration and counters of a message port.
#pragma once

#include <cstdint>
#include <string>

namespace rio::msg {

/// Most rails, which are cards, of a port.
inline constexpr uint32_t kRailsMax = 8;

/// The threads that may use a port and its contexts.
enum class Threads : uint8_t {
  kOne,         ///< one thread; no locking
  kPerContext,  ///< several threads, each with contexts of its own; every call needs a Guard
                ///< (waiting.hpp)
};

struct PortConfig {
  std::string card = "emu:loop";  ///< name of the card, as for rio::Endpoint::open()
  uint32_t queue_pair = 0;
  uint32_t dest_id = 0;  ///< 0: keep the card's destID
  /// Receive buffers of 4 KiB. They bound the unexpected data that the port can hold. 64 to 16384.
  uint32_t buffers = 3840;
  /// Buffers that one peer may fill in one context before any is returned. 4 to 1024. A peer gets
  /// fewer when many peers share the buffers.
  uint32_t share = 256;
  uint32_t connect_ms = 10000;  ///< how long to keep asking a peer that does not answer
  /// How long to resend a message that does not arrive. A peer that is stopped for longer counts as
  /// dead. Time in which this port does not listen, since its process is stopped or does other
  /// work, counts as no more than 100 ms.
  uint32_t deliver_ms = 60000;
  uint32_t response_timeout_us =
      100000;           ///< how long the card waits for a response before a message is in doubt
  std::string profile;  ///< path of the profile; empty: profile_path(); "none": no file
  /// How messages and transfers are divided over several cards. Empty: as the environment variable
  /// RIO_RAIL_POLICY says, or weighted. rail_policy.hpp has the names.
  std::string rail_policy;
  Threads threads = Threads::kOne;
  /// Whether wait() sleeps instead of polling. Needs a card with interrupts, or a "shm:" or "udp:"
  /// card.
  bool sleeps = false;
  uint32_t first_number = 0;  ///< first message number of each session; 0: random. Tests set it to
                              ///< reach the wrap quickly

  [[nodiscard]] uint64_t connect_ns() const { return uint64_t{connect_ms} * 1'000'000; }
  [[nodiscard]] uint64_t deliver_ns() const { return uint64_t{deliver_ms} * 1'000'000; }
  [[nodiscard]] uint64_t response_timeout_ns() const {
    return uint64_t{response_timeout_us} * 1000;
  }
  /// How often the card sends a notification of a barrier again: for about as long as a message to
  /// a peer that is stopped is sent again, but no more than cards can.
  [[nodiscard]] uint32_t barrier_resends() const {
    constexpr uint64_t kCardsMost = 255;
    const uint64_t timeouts = deliver_ns() / response_timeout_ns();
    return static_cast<uint32_t>(timeouts < kCardsMost ? timeouts : kCardsMost);
  }
};

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
  uint64_t yields = 0;    ///< how often a thread that waited gave its CPU to others
  uint64_t woken = 0;     ///< sleeps that have ended
  /// Long sleeps that ended by time-out although something had arrived: a wake-up was lost.
  uint64_t overslept = 0;
};

}  // namespace rio::msg
