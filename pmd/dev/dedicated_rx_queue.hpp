/// @file
/// Dedicated receive queue: expected messages, straight into their destination.
#pragma once

#include <cstdint>

#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Receives the messages of one source and one mailbox, zero copy. Entries and messages must match
/// in number and size: the card stops the ring otherwise and names the entry (ring_state()). All
/// functions belong to one thread. [S0]; regs: dedicated_desc, entry_cpl.
class alignas(64) DedicatedRxQueue : public PostingQueue {
 public:
  /// For create().
  explicit DedicatedRxQueue(SharedKey /*key*/) {}
  /// Open the queue; from now on RingConfig::source and ::mbox no longer reach the shared queue,
  /// and are answered RETRY while no entry is posted. Control path. @param config ring is one of
  /// regs::Ring::kDedicated0 and the seven after it. @param bus outlives the queue.
  /// @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<DedicatedRxQueue>* out);

  /// Give entries to the card, with one BAR write if there were any. Their memory is the card's
  /// until their EntryDone. Does not call the poll hook.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next entry is
  /// one that the card cannot take (last_reject() says why; it is counted).
  uint16_t post(const DedicatedEntry* entries, uint16_t n);

  /// Fetch completed entries, in the order of completion; bytes is never above the entry's size.
  /// Calls the poll hook once, and looks again, when there is nothing. @return how many, 0 to `n`.
  uint16_t reap(EntryDone* out, uint16_t n);
  /// Whether reap() has something to return, or drop, without the poll hook.
  [[nodiscard]] bool ready() const { return cursor_.ready<regs::EntryCpl>(); }

 private:
  [[nodiscard]] bool fits(uint32_t size_bytes) const;
  [[nodiscard]] uint32_t post_run(const DedicatedEntry* entries, size_t n);

  uint32_t size_bytes_ = 0;  // of the entry posted last, which fits
  // Constant once created.
  regs::DedicatedDesc* entries_ = nullptr;
  uint64_t addr_misaligned_ = 0;  // bits that must be 0 in an address
  uint32_t size_misaligned_ = 0;  // and in a size
};

}  // namespace rio::pmd
