/// @file
/// The interfaces that a model card is connected to, its counters, and its activity.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "fpga/model/host_memory.hpp"
#include "fpga/model/wire.hpp"

namespace rio::model {

/// The card's time.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Nanoseconds, never backwards.
  [[nodiscard]] virtual uint64_t now_ns() = 0;
};

/// The time of this machine.
class HostClock final : public Clock {
 public:
  uint64_t now_ns() override { return base::now_ns(); }
};

/// Receives interrupts. Called by the thread that steps the card.
class IrqSink {
 public:
  virtual ~IrqSink() = default;
  virtual void raise(uint32_t vector) = 0;
};

/// The ends of one PCI function of a card, the caller's; they outlive the card.
struct FunctionEnds {
  uint8_t* bar = nullptr;  ///< BAR0's memory: Card::bar_bytes() of zeros, page-aligned
  HostMemory* memory = nullptr;
  IrqSink* irqs = nullptr;  ///< null: the function has no interrupts
};

/// The ends that a card is connected to; the first ones are of the physical function. The card owns
/// the wire; the caller owns the rest, which outlives the card.
struct Ends : FunctionEnds {
  Clock* clock = nullptr;
  std::vector<FunctionEnds> vfs;  ///< of the virtual functions, Config::vfs of them
  std::unique_ptr<Wire> wire;
};

/// Counters of block PORT, in its order; they wrap.
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

/// The cost of one ring on PCIe, as TLPs and their bytes: up is from the card to the host. A
/// request or write has 24 bytes beside its data, a completion of a read 20. One read request takes
/// up to 256 bytes of descriptors or of a message.
struct PcieCounts {
  uint64_t up_tlps = 0;
  uint64_t up_bytes = 0;
  uint64_t down_tlps = 0;
  uint64_t down_bytes = 0;

  static constexpr uint32_t kMost = 256;  ///< data bytes of a TLP

  void write(uint32_t bytes) {
    const uint32_t tlps = (bytes + kMost - 1) / kMost;
    up_tlps += tlps;
    up_bytes += bytes + 24 * tlps;
  }
  void read(uint32_t bytes) {
    const uint32_t tlps = (bytes + kMost - 1) / kMost;
    up_tlps += tlps;
    up_bytes += 24 * tlps;
    down_tlps += tlps;
    down_bytes += bytes + 20 * tlps;
  }
};

/// The counts of a card since it was created.
struct Statistics {
  PortCounts port;                     ///< current; the BAR's copy lags a few steps behind
  std::array<uint64_t, 32> faults{};   ///< drawn, by bit of Fault
  uint64_t refused = 0;                ///< accesses to unmapped memory
  uint64_t first_refused_address = 0;  ///< of the first such access, if there was one
  /// Of queue pair 0 in exact mode, by ring: the transmit ring and the receive rings.
  std::array<PcieCounts, regs::kRingsPerQp> pcie{};
};

/// The work that a card has under way, for a caller that steps it and wants to sleep when there is
/// none.
struct Activity {
  uint64_t done = 0;       ///< changes whenever the card has done something
  bool posted = false;     ///< an entry is posted and not completed
  bool under_way = false;  ///< `posted`, or something is in flight or waits to be taken
  bool barriers = false;   ///< a barrier is posted or runs: the card must take frames as they come
};

}  // namespace rio::model
