/// @file
/// The card's state of a ring.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "fpga/model/ends.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

inline constexpr uint32_t kTxRing = static_cast<uint32_t>(regs::Ring::kTx);
inline constexpr uint32_t kSharedRing = static_cast<uint32_t>(regs::Ring::kShared);
inline constexpr uint32_t kDoorbellRing = static_cast<uint32_t>(regs::Ring::kDoorbell);
inline constexpr uint32_t kDmaRing = static_cast<uint32_t>(regs::Ring::kDma);
inline constexpr uint32_t kMaintRing = static_cast<uint32_t>(regs::Ring::kMaint);
inline constexpr uint32_t kBarrierRing = static_cast<uint32_t>(regs::Ring::kBarrier);
inline constexpr uint32_t kEventRing = static_cast<uint32_t>(regs::Ring::kEvent);
inline constexpr uint32_t kDedicatedRing = static_cast<uint32_t>(regs::Ring::kDedicated0);

struct Pair;

/// Free-running indices; entries are copied when they are fetched, in order.
struct Ring {
  const uint8_t* base = nullptr;  ///< submission ring in this process
  uint8_t* cbase = nullptr;       ///< completion ring in this process
  const uint32_t* tail_word = nullptr;
  uint32_t mask = 0;
  uint32_t head = 0;  ///< next entry to fetch
  uint32_t tail = 0;  ///< last value read
  uint32_t cidx = 0;  ///< next completion
  uint32_t cmask = 0;
  uint32_t outstanding = 0;  ///< sending rings: entries fetched and not completed
  uint8_t cshift = 0;        ///< log2 of completion entries
  regs::RingState state = regs::RingState::kStopped;
  bool held = false;  ///< stuck by a fault
  bool irq = false;
  bool irq_due = false;  ///< a completion since the last arm has not raised an interrupt yet

  uint16_t gen = 0;
  uint8_t vector = 0;
  uint32_t started_us =
      0;  ///< time of the start; distinguishes indices of this run of the ring from earlier ones
  uint32_t arm = 0;    ///< last value of ARM
  uint32_t armed = 0;  ///< completion index that the last arm, or the start, has told
  uint32_t moderation_us = 0;
  uint64_t last_irq_ns = 0;
  uint64_t base_iova = 0;
  uint64_t cbase_iova = 0;
  Pair* pair = nullptr;
  uint32_t number = 0;    ///< in its pair
  bool relaxed = false;   ///< RING_FORMAT.RELAXED
  bool brief = false;     ///< shared receive ring: RING_FORMAT.COMPLETION
  uint8_t cpl_bytes = 0;  ///< of a completion
  uint8_t waiting = 0;    ///< exact mode: short completions before `cidx` that are not written yet
  regs::SharedShortCpl line[4]{};  ///< these, by the low bits of their index
  bool cumulative = false;         ///< transmit ring: RING_FORMAT.COMPLETION
  regs::TxCpl gathered{};          ///< transmit ring, exact mode: a completion that may still grow
  uint32_t next_gathered = 0;      ///< index of the message by which it grows; valid if it is there
  bool gathers = false;            ///< it is there
  uint32_t fetched = 0;    ///< entries before this one are in read requests that were counted
  uint32_t slots_at = 0;   ///< transmit ring: BAR offset of its slots; 0: no push mode
  uint32_t next_slot = 0;  ///< free-running number of the slot that is taken next
  PcieCounts pcie;         ///< since the card was made

  /// Whether the card does what its entries say, rather than using them for arrivals.
  [[nodiscard]] bool sends() const {
    return number == kTxRing || number == kDmaRing || number == kMaintRing ||
           number == kBarrierRing;
  }
  [[nodiscard]] bool running() const { return state == regs::RingState::kRunning; }
  [[nodiscard]] uint32_t posted() const { return tail - head; }
  /// Whether it has posted entries that are not fetched. Core::poll_tail() updates the tail itself.
  [[nodiscard]] bool waits() const {
    return running() && __atomic_load_n(tail_word, __ATOMIC_RELAXED) != head;
  }
  [[nodiscard]] const uint8_t* entry(uint32_t index, uint32_t log2_bytes) const {
    return base + (static_cast<uint64_t>(index & mask) << log2_bytes);
  }
  /// Copy an entry. @tparam Desc its type.
  template <class Desc>
  [[nodiscard]] Desc fetch(uint32_t index) const {
    Desc desc;
    std::memcpy(&desc, entry(index, std::countr_zero(sizeof(Desc))), sizeof(Desc));
    return desc;
  }
  /// Count the reads of the next `units` entries, which are posted; they bring those behind them,
  /// too.
  void count_fetch(uint32_t entry_bytes, uint32_t units = 1) {
    fetched = static_cast<int32_t>(head - fetched) > 0 ? head : fetched;
    while (static_cast<int32_t>(head + units - fetched) > 0) {
      const uint32_t count = std::min(tail - fetched, PcieCounts::kMost / entry_bytes);
      pcie.read(count * entry_bytes);
      fetched += count;
    }
  }
  /// Whether the next `units` entries cross 4 KiB or the ring's end.
  [[nodiscard]] bool crosses(uint32_t entry_bytes, uint32_t units) const {
    const uint64_t at = base_iova + uint64_t{head & mask} * entry_bytes;
    return units > entries_in_a_row() || at % 4096 + units * entry_bytes > 4096;
  }
  /// Contiguous entries up to the end of the ring's memory.
  [[nodiscard]] uint32_t entries_in_a_row() const { return mask + 1 - (head & mask); }
  /// Contiguous completions up to the end of the lap.
  [[nodiscard]] uint32_t completions_in_a_row() const { return cmask + 1 - (cidx & cmask); }
  /// The phase bit of the next completion.
  [[nodiscard]] uint32_t phase() const { return (~(cidx >> cshift) & 1u) << 31; }
};

/// The word PLACE of a short completion. @param bytes padded. @param place mailbox and letter.
[[nodiscard]] constexpr uint32_t short_place(uint32_t bytes, uint32_t segments, uint32_t place,
                                             uint32_t map_entry) {
  using Place = regs::shared_short_cpl::Place;
  static_assert(Place::letter.lsb == Place::mbox.lsb + 6);
  return bytes | (segments - 1) << Place::segments.lsb | place << Place::mbox.lsb |
         map_entry << Place::map_entry.lsb;
}

/// Sizes of each kind of ring. regs: descriptors.
struct RingKind {
  uint16_t entry_bytes;  ///< 0: no submission entries
  uint8_t centry_bytes;
};

[[nodiscard]] constexpr RingKind ring_kind(uint32_t ring) {
  switch (static_cast<regs::Ring>(ring)) {
    case regs::Ring::kTx:
      return {sizeof(regs::TxDesc), sizeof(regs::TxCpl)};
    case regs::Ring::kShared:
      return {sizeof(regs::SharedDesc), sizeof(regs::SharedCpl)};
    case regs::Ring::kDoorbell:
      return {0, sizeof(regs::DoorbellCpl)};
    case regs::Ring::kDma:
      return {sizeof(regs::DmaDesc), sizeof(regs::EntryCpl)};
    case regs::Ring::kMaint:
      return {sizeof(regs::MaintDesc), sizeof(regs::EntryCpl)};
    case regs::Ring::kEvent:
      return {0, sizeof(regs::EventCpl)};
    case regs::Ring::kBarrier:
      return {sizeof(regs::BarrierDesc), sizeof(regs::BarrierCpl)};
    case regs::Ring::kReserved7:
      return {0, 0};
    default:
      return {sizeof(regs::DedicatedDesc), sizeof(regs::EntryCpl)};
  }
}

}  // namespace rio::model
