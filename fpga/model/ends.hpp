/// @file
/// What a model card is connected to, what it counts, and what it is at.
#pragma once

#include <cstdint>
#include <memory>

#include "fpga/model/clock.hpp"
#include "fpga/model/host_memory.hpp"
#include "fpga/model/wire.hpp"

namespace rio::model {

/// Raises interrupts; called by the thread that steps the card.
class IrqSink {
 public:
  virtual ~IrqSink() = default;
  virtual void raise(uint32_t vector) = 0;
};

/// The ends that a card is connected to. Everything but the wire stays the caller's and outlives
/// the card.
struct Ends {
  uint8_t* bar = nullptr;  ///< BAR0's memory: Card::bar_bytes() of zeros, page-aligned
  HostMemory* memory = nullptr;
  Clock* clock = nullptr;
  IrqSink* irqs = nullptr;  ///< null: the card has no interrupts
  std::unique_ptr<Wire> wire;
};

/// Counters of block PORT; they wrap.
struct PortCounts {
  uint32_t tx_packets = 0;
  uint32_t rx_packets = 0;
  uint32_t tx_retries = 0;
  uint32_t rx_retries = 0;
  uint32_t rx_errors = 0;
  uint32_t tx_timeouts = 0;
  uint32_t rx_timeouts = 0;
  uint32_t rx_unmapped = 0;
};

/// The work that a card has under way, for a caller that steps it and wants to know whether it may
/// sleep.
struct Activity {
  uint64_t done = 0;       ///< another value: the card has done something since
  bool posted = false;     ///< something is posted, and not completed
  bool under_way = false;  ///< that, or something flies, or waits to be taken
};

}  // namespace rio::model
