/// @file
/// How a port is made.
#pragma once

#include <cstdint>
#include <string>

namespace rio::msg {

/// The threads that use a port and its contexts.
enum class Threads : uint8_t {
  kOne,         ///< one thread; nothing is locked
  kPerContext,  ///< each context belongs to a thread; calls are made under a Guard, waiting.hpp
};

struct PortConfig {
  std::string card = "emu:loop";  ///< as rio::Endpoint::open() takes it
  uint32_t queue_pair = 0;
  uint32_t dest_id = 0;  ///< 0: the one that the card has
  /// Buffers of 4 KiB for what was not asked for: the bound of unexpected data. 64 to 16384.
  uint32_t buffers = 3840;
  /// Of them, what a peer may fill in one context before any is given back. 4 to 1024; fewer where
  /// many peers share the buffers.
  uint32_t share = 256;
  uint32_t connect_ms = 10000;  ///< how long a peer that does not answer is asked
  /// How long a message that does not arrive is sent again: a peer that is stopped for longer is
  /// dead.
  uint32_t deliver_ms = 60000;
  uint32_t response_timeout_us = 100000;  ///< of the card, until a message is in doubt
  std::string profile;                    ///< path; empty: as profile_path() says; "none": no file
  Threads threads = Threads::kOne;
  /// wait() sleeps: the card has to have interrupts, or to be one of "shm:" or "udp:".
  bool sleeps = false;
  uint32_t first_number = 0;  ///< of the messages of a session; 0: any. For tests, of the wrap
};

}  // namespace rio::msg
