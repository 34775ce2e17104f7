/// @file
/// Configuration of a message port.
#pragma once

#include <cstdint>
#include <string>

namespace rio::msg {

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
  /// dead.
  uint32_t deliver_ms = 60000;
  uint32_t response_timeout_us =
      100000;           ///< how long the card waits for a response before a message is in doubt
  std::string profile;  ///< path of the profile; empty: profile_path(); "none": no file
  Threads threads = Threads::kOne;
  /// Whether wait() sleeps instead of polling. Needs a card with interrupts, or a "shm:" or "udp:"
  /// card.
  bool sleeps = false;
  uint32_t first_number = 0;  ///< first message number of each session; 0: random. Tests set it to
                              ///< reach the wrap quickly
};

}  // namespace rio::msg
