/// @file
/// Barriers that the card carries out: descriptors in a ring, and slots on the card. [S1]
#pragma once

#include <array>
#include <cstdint>

#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Barriers of a queue pair. A barrier is posted in the ring, or loaded once into a slot on the
/// card and then started by one BAR write each time. While the ring runs, the card treats doorbells
/// whose information has bit 15 as notifications of barriers; they reach no doorbell queue.
///
/// All functions belong to one thread. A group has one barrier at a time, with the next epoch each
/// time; lib/barrier makes descriptors. regs: barrier, barrier_desc, barrier_cpl.
class alignas(64) BarrierQueue : public PostingQueue {
 public:
  /// For create().
  explicit BarrierQueue(SharedKey /*key*/) {}
  /// Set up the engine of the queue pair, and start the ring. Control path. @param bus outlives the
  /// queue. @return as Ring::start, or -ENOTSUP where Caps::barrier_rounds is 0.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<BarrierQueue>* out);

  /// Post requests, with one BAR write if there were any, then call the poll hook. The descriptors
  /// are copied.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next request is
  /// one that the card cannot take (last_reject() says why; it is counted).
  uint16_t post(const BarrierRequest* requests, uint16_t n);

  /// Write a descriptor into a slot on the card; nothing is sent. Control path: 4 BAR writes of 64
  /// bytes. @param slot below Caps::barrier_slots. @param desc its `epoch` and `cookie` do not
  /// count. @param cookie comes back in each BarrierDone of the slot, any value.
  /// @return 0; -EINVAL (no such slot, or the card cannot take it), -EBUSY (the slot runs); logged.
  [[nodiscard]] int load(uint32_t slot, const regs::BarrierDesc& desc, uint64_t cookie);
  /// Run the descriptor of a slot with an epoch: one BAR write of 4 bytes, no read; then call the
  /// poll hook. The card ignores a write of the epoch that the slot ran last, so this barrier is
  /// posted in the ring. @param slot loaded, and not running. @return false: the slot is not
  /// (last_reject(), counted), or the ring is full (kNone).
  bool go(uint32_t slot, uint32_t epoch);

  /// Hot. Whether reap() would find something without its poll hook, for a caller that has let the
  /// card work by another queue's hook.
  [[nodiscard]] bool is_ready() const { return cursor_.ready<regs::BarrierCpl>(); }
  /// Fetch barriers that have ended, in the order of completion. Calls the poll hook once, and
  /// looks again, when there is nothing. @return how many, 0 to `n`.
  uint16_t reap(BarrierDone* out, uint16_t n);

  /// Barriers of the ring and of slots that were not reaped, at most 65535.
  [[nodiscard]] uint16_t outstanding() const;
  /// Barriers that go() started in slots, which are no entries of the ring, since create(). Any
  /// thread, like stats().
  [[nodiscard]] uint64_t slots_started() const { return slots_started_.get(); }
  /// Whether a slot was started and its BarrierDone was not reaped. @param slot any value.
  [[nodiscard]] bool is_running(uint32_t slot) const {
    return slot < slot_count_ && slots_[slot].state >= SlotState::kRunning;
  }
  /// Visit the barriers that are not completed, after the card has gone. Control path. @param each
  /// called with the cookie of each barrier.
  template <class Each>
  void for_each_outstanding(Each&& each) const {
    PostingQueue::for_each_outstanding(each);
    for (const Slot& slot : slots_) {
      if (slot.state == SlotState::kRunning) {
        each(slot.cookie);
      }
    }
  }
  /// As PostingQueue::restart(). Slots stay loaded.
  [[nodiscard]] int restart();

 private:
  enum class SlotState : uint8_t { kEmpty, kLoaded, kRunning, kInRing };
  struct Slot {
    uint64_t cookie;
    uint32_t word;   // the value in GO
    uint32_t epoch;  // of the barrier that runs
    uint32_t entry;  // kInRing: the entry that the epoch was posted in
    SlotState state;
  };

  [[nodiscard]] bool is_known(const regs::BarrierDesc& desc) const;
  void write_entry(uint32_t index, const BarrierRequest& request);
  [[nodiscard]] bool go_in_ring(uint32_t slot, uint32_t epoch);
  void clear_go();
  [[nodiscard]] uint32_t entry_of(uint32_t index) const;
  [[nodiscard]] bool is_ours(uint32_t index) const;
  [[nodiscard]] bool claim(uint32_t index, BarrierDone* out);
  [[nodiscard]] uint32_t reap_slow(BarrierDone* out);
  [[nodiscard]] uint8_t slot_of_entry(uint32_t entry);

  // Constant once created.
  PollHook start_hook_;
  regs::BarrierDesc* entries_ = nullptr;
  uint32_t rounds_max_ = 0;
  uint32_t slot_count_ = 0;
  uint32_t go_at_ = 0;  // offset of the first GO
  // Written by the bursts.
  Counter slots_started_;
  uint32_t slots_running_ = 0;  // kRunning
  uint32_t slots_in_ring_ = 0;  // kInRing
  std::array<Slot, regs::kBarrierSlots> slots_{};
  std::array<regs::BarrierDesc, regs::kBarrierSlots> loaded_{};  // contents of the slots
};

}  // namespace rio::pmd
