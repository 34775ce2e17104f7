/// @file
/// Push mode: short bursts of the transmit queue written into the card's slots, in place of a
/// doorbell. docs/decisions/0040-push-mode.md
#pragma once

#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/mmio.hpp"
#include "pmd/bus/shared_ptr.hpp"
#include "pmd/dev/entry_window.hpp"

namespace rio::pmd {

/// Copies posted entries into slots. Each entry is in the ring, too, so whatever does not go into a
/// slot goes by a doorbell. One thread, the queue's. regs: push_slot.
class Pusher {
 public:
  /// Longest burst that goes through slots, in units: a longer one costs the card one read, but the
  /// CPU 64 bytes for each entry.
  static constexpr uint32_t kUnitsMax = 4;

  /// For make_shared_object(). @param qp queue pair. @param slots of its transmit ring, a power of
  /// two, filled with zeros. @param start_index of the ring.
  Pusher(SharedKey /*key*/, uint32_t qp, uint32_t slots, uint32_t start_index);

  /// Begin again with a ring that was started at this index.
  void begin(uint32_t start_index);
  /// Hot. Write the entries that were posted since the last call into slots, if all fit.
  /// @return false: write the doorbell, which is right for any entries.
  [[nodiscard]] bool push(Mmio& bar, regs::TxDesc* entries, const EntryWindow& window);
  /// Entries that were written into slots. Any thread.
  [[nodiscard]] uint64_t pushed() const { return pushed_.get(); }

 private:
  void write(Mmio& bar, regs::TxDesc* entry, uint32_t index);

  uint32_t first_at_;  // BAR offset of slot 0
  uint32_t mask_;
  uint32_t next_ = 0;  // free-running number of the next slot
  uint32_t told_ = 0;  // index past the entries that the card was told of
  Counter pushed_;
  uint32_t last_[1u << regs::kPushSlotsLog2Max];  // the index that each slot had last
};

}  // namespace rio::pmd
