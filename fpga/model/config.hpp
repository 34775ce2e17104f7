/// @file
/// Configuration of a model card.
#pragma once

#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

/// Faults that can be injected. Bits of FaultConfig::kinds.
enum class Fault : uint32_t {
  kRetry = 1u << 0,         ///< the receiver answers RETRY
  kError = 1u << 1,         ///< the receiver answers ERROR
  kLostResponse = 1u << 2,  ///< a response is lost: the sender is in doubt
  kReorder = 1u << 3,       ///< segments leave out of order
  kSlowReceiver = 1u << 4,  ///< the receiver takes nothing for some steps
  kBadAddress = 1u << 5,    ///< a read of host memory fails
  kLinkDown = 1u << 6,      ///< the link goes down for some steps
  kStuckQueue = 1u << 7,    ///< the card ignores a ring for some steps
};

inline constexpr uint32_t kAllFaults = 0xFF;

struct FaultConfig {
  uint64_t seed = 0;
  double rate = 0.0;  ///< probability of a fault at each opportunity, 0 to 1
  uint32_t kinds = kAllFaults;
};

// Capabilities that all model cards have in common.
inline constexpr uint32_t kRingLog2Min = 3;
inline constexpr uint32_t kRingLog2Max = 15;
inline constexpr uint32_t kTxAddrLog2 = 3;  ///< of the alignment of a payload by address
inline constexpr uint64_t kTxUnaligned = (1u << kTxAddrLog2) - 1;  ///< address bits that must be 0
inline constexpr uint32_t kDmaBytesMax = 1u << 20;
inline constexpr uint32_t kTickNs = 100;
/// Messages that a completion reports in exact mode, at most: as on a card that waits for no
/// answer.
inline constexpr uint32_t kGatheredMost = 8;
inline constexpr uint32_t kCplsPerTlp = 4;  ///< short completions in one aligned write of 64 bytes

struct Config {
  uint32_t queue_pairs = 1;  ///< 1 to 31
  uint32_t vfs = 0;          ///< virtual functions, 0 to 30; each has ends of its own (Ends::vfs)
  bool exact = false;        ///< segment by segment, even without faults
  bool quirk_last_at_256 = true;
  bool quirk_last_full_256 = true;
  /// A defect, for tests of what notices it: words and interrupts that say "done" do not wait for
  /// posted writes. Only pcie_seed makes it visible.
  bool early_status = false;
  /// The words of a completion, or of several in one write, become visible in any order. Only
  /// pcie_seed makes it visible.
  bool torn = false;
  uint32_t tx_contexts = 64;  ///< messages of several segments sent at once, 1 to 1023
  uint32_t rx_contexts = 64;  ///< messages of several segments reassembled at once, 1 to 1023
  uint32_t flights = 4096;    ///< single-segment messages in flight of a queue pair, 1 to 65535
  uint32_t resting = 1024;    ///< letters of a queue pair that rest, 0 to 65535
  uint32_t poisoned = 64;     ///< poisoned contexts, 0 to 65535
  uint32_t letters = 4;       ///< 1 to 4
  /// Waiting entries of a transmit ring that the card passes over, 0 to 65535.
  uint32_t pass_over = 256;
  uint32_t push_slots_log2 = 0;   ///< log2 of the slots of push mode, 0 (no push mode) to 8
  bool barrier = true;            ///< each queue pair has a barrier engine
  uint32_t early_notices = 1024;  ///< barrier notifications of all queue pairs that may come
                                  ///< before their descriptor, 0 to 65535
  bool rail = true;               ///< the physical function has a rails block
  uint32_t shared_addr_log2 = 8;
  uint32_t dedicated_addr_log2 = 12;
  uint32_t dedicated_size_log2 = 8;
  uint32_t vectors = 64;
  FaultConfig faults;
  uint64_t pcie_seed = 0;  ///< not 0: the PCIe layer delays and reorders by this seed
};

/// Whether the card is segment by segment whatever the faults are.
[[nodiscard]] inline bool always_exact(const Config& c) {
  return c.exact || c.pcie_seed != 0 || c.vfs != 0;
}

[[nodiscard]] inline bool valid(const Config& c) {
  const auto in = [](uint32_t v, uint32_t lo, uint32_t hi) { return v >= lo && v <= hi; };
  return in(c.queue_pairs, 1, regs::kMaxQps) && c.vfs <= regs::kMaxVfs &&
         in(c.letters, 1, regs::kLetters) && in(c.tx_contexts, 1, 1023) &&
         in(c.rx_contexts, 1, 1023) && c.pass_over <= 0xFFFF && in(c.flights, 1, 0xFFFF) &&
         c.resting <= 0xFFFF && c.poisoned <= 0xFFFF &&
         c.push_slots_log2 <= regs::kPushSlotsLog2Max && c.shared_addr_log2 <= 12 &&
         c.dedicated_addr_log2 <= 12 && c.dedicated_size_log2 <= 12 && c.vectors <= 255 &&
         c.early_notices <= 0xFFFF && c.faults.rate >= 0.0 && c.faults.rate <= 1.0;
}

}  // namespace rio::model
