/// @file
/// Dedicated receive queue: expected messages, straight into their destination.
#pragma once

#include <cstdint>
#include <memory>

#include "pmd/dev/entry_window.hpp"
#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Receives the messages of one source and one mailbox, zero copy. Entries and messages must match
/// in number and size: the card stops the ring otherwise and names the entry (ring_state()). All
/// functions belong to one thread. [S0]; regs: dedicated_desc, entry_cpl.
class alignas(64) DedicatedRxQueue : public QueueBase {
 public:
  /// Open the queue; from now on RingConfig::source and ::mbox no longer reach the shared queue,
  /// and are answered RETRY while no entry is posted. Control path. @param config ring is one of
  /// regs::Ring::kDedicated0 and the seven after it. @param bus outlives the queue.
  /// @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  std::unique_ptr<DedicatedRxQueue>* out);

  /// Give entries to the card, with one BAR write if there were any. Their memory is the card's
  /// until their EntryDone. Does not call the poll hook.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next entry is
  /// one that the card cannot take (last_reject() says why; it is counted).
  uint16_t post(const DedicatedEntry* entries, uint16_t n);

  /// Fetch completed entries, in the order of completion; bytes is never above the entry's size.
  /// Calls the poll hook once, and looks again, when there is nothing. @return how many, 0 to `n`.
  uint16_t reap(EntryDone* out, uint16_t n);

  /// Entries that are free, at most 65535.
  [[nodiscard]] uint16_t free_count() const;
  /// Entries that the card has, at most 65535.
  [[nodiscard]] uint16_t outstanding() const;
  /// Why the last post stopped early; kNone if the ring was full or everything was taken.
  [[nodiscard]] Reject last_reject() const { return last_reject_; }

 private:
  /// Bits that must be 0 in an address and in a size.
  struct Misaligned {
    uint64_t addr;
    uint32_t size;
  };

  DedicatedRxQueue() = default;
  [[nodiscard]] static bool fill(const DedicatedEntry& entry, const Misaligned& wrong,
                                 regs::DedicatedDesc* desc, uint64_t* cookie, uint32_t* size_bytes);
  [[nodiscard]] uint32_t post_run(const DedicatedEntry* entries, size_t n);
  void refuse(const DedicatedEntry& entry);

  EntryWindow window_;
  Reject last_reject_ = Reject::kNone;
  // Constant.
  regs::DedicatedDesc* entries_ = nullptr;
  Misaligned misaligned_{};
};

}  // namespace rio::pmd
