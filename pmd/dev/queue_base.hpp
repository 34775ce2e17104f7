/// @file
/// What the queues have in common beside their rings: completions to walk, tail, hook, counts.
#pragma once

#include <cstdint>

#include "pmd/dev/caps.hpp"
#include "pmd/dev/ring.hpp"
#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// Where a queue is in its completion ring. One thread, hot.
struct CompletionCursor {
  void* base = nullptr;
  uint32_t mask = 0;
  uint32_t phase_shift = 0;  // moves the lap's lowest bit to bit 31
  uint32_t consumed = 0;     // free-running index of the next completion

  /// XORed to a last word it leaves the phase bit 0 if the completion at `consumed` is there.
  [[nodiscard]] uint32_t flip() const {
    return ~(consumed << phase_shift) & regs::tx_cpl::Status::phase.mask();
  }
  /// Completions before the ring wraps, and with it the phase.
  [[nodiscard]] uint32_t to_wrap() const { return mask + 1 - (consumed & mask); }
  template <class Cpl>
  [[nodiscard]] const Cpl* at() const {
    return static_cast<const Cpl*>(base) + (consumed & mask);
  }
};

inline constexpr uint32_t kPhaseBit = regs::tx_cpl::Status::phase.mask();
inline constexpr uint32_t kCodeMask = regs::tx_cpl::Status::code.mask();
static_assert(kPhaseBit == regs::entry_cpl::Status::phase.mask() &&
              kPhaseBit == regs::shared_cpl::Status::phase.mask() &&
              kPhaseBit == regs::doorbell_cpl::Status::phase.mask() &&
              kPhaseBit == regs::event_cpl::Status::phase.mask());

/// Base of the queues; not used by itself. A queue belongs to one thread at a time; only stats()
/// may be called by another one, which then sees counts that are a burst old.
class QueueBase {
 public:
  QueueBase(const QueueBase&) = delete;
  QueueBase& operator=(const QueueBase&) = delete;

  /// Counts since create().
  [[nodiscard]] QueueStats stats() const { return stats_; }
  /// BAR accesses of the bursts and of arm(): no reads, and a write a burst at most.
  [[nodiscard]] MmioCounts mmio() const { return bar_.counts(); }
  /// Control path, reads the BAR. @param error, entry why and where the card stopped the ring, set
  /// on success; may be null. @return regs::RingState, or -ENODEV (card gone), -EPROTO.
  [[nodiscard]] int ring_state(regs::RingError* error, uint32_t* entry) {
    return ring_.state(error, entry);
  }
  /// Control path. Posted entries then complete with kFlushed; reap them, and their memory is the
  /// caller's again. @return 0, -ETIMEDOUT (memory must stay as it is), -ENODEV (card gone).
  [[nodiscard]] int stop(uint32_t timeout_ms) { return ring_.stop(timeout_ms); }
  /// Ask for an interrupt once there are completions that no burst has returned. Look once more
  /// after arming and before sleeping. One BAR write. regs: QP.ARM
  void arm() { bar_.write32(ring_.arm_offset(), cursor_.consumed); }

 protected:
  QueueBase() = default;
  ~QueueBase() = default;

  /// Start the ring and point the hot fields at it. @return as Ring::start.
  [[nodiscard]] int start(Bus& bus, const Caps& caps, const RingConfig& config,
                          const RingShape& shape);

  // Written by the bursts.
  CompletionCursor cursor_;
  QueueStats stats_;
  Mmio bar_;
  // Read by the bursts.
  PollHook hook_;
  uint32_t tail_offset_ = 0;

  Ring ring_;
};

}  // namespace rio::pmd
