/// @file
/// A queue pair and its queues.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "pmd/dev/barrier_queue.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/dedicated_rx_queue.hpp"
#include "pmd/dev/dma_queue.hpp"
#include "pmd/dev/maint_queue.hpp"
#include "pmd/dev/notice_queue.hpp"
#include "pmd/dev/shared_rx_queue.hpp"
#include "pmd/dev/tx_queue.hpp"
#include "pmd/dev/window_table.hpp"

namespace rio::pmd {

/// A bit for each ring of a queue pair, by regs::Ring.
[[nodiscard]] constexpr uint32_t ring_bit(regs::Ring ring) {
  return 1u << static_cast<uint32_t>(ring);
}

/// How a queue pair is opened. Sizes are log2 of entries, within Caps.
struct QueuePairConfig {
  uint32_t tx_log2 = 9;
  uint32_t shared_log2 = 9;
  uint32_t dedicated_log2 = 9;
  uint32_t doorbell_log2 = 8;
  uint32_t dma_log2 = 7;
  uint32_t maint_log2 = 4;
  uint32_t event_log2 = 6;
  uint32_t barrier_log2 = 5;
  uint32_t start_index = 0;                 ///< of every ring; any value (for tests of the wrap)
  uint32_t stop_timeout_ms = kStopSlackMs;  ///< slack of starts and stops, see stop_limit_ms()
  /// Rings to open. 0: transmit, shared, doorbell, event, and, where the card and the queue pair
  /// have them, DMA and (queue pair 0) maintenance.
  uint32_t rings = 0;
  /// Open the barrier ring beside `rings`; needs Caps::barrier_rounds. Then the card treats
  /// doorbells whose information has bit 15 as notifications of barriers.
  bool barriers = false;
  uint32_t barrier_resends = 3;  ///< how often a notification is sent again after a time-out
  uint32_t barrier_reserve = 0;  ///< early notifications for which the card sets room aside
  /// Interrupt vector of each ring, -1 for none.
  std::array<int, regs::kRingsPerQp> irq_vectors = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                    -1, -1, -1, -1, -1, -1, -1, -1};
  uint16_t irq_moderation_us = 0;
  bool push = false;  ///< short bursts to send go through the card's slots; needs Caps::push_slots
  bool receive_times = false;  ///< RxMessage::time_ticks is wanted: costs longer completions
};

/// Owns the queues. Opening, closing and stopping are control path, one thread; each queue then
/// belongs to the thread that polls it. The accessors require a ring that was opened.
class QueuePair {
 public:
  /// Called by Card::open_queue_pair, which checks the number. @param card outlives the queue pair.
  [[nodiscard]] static int create(Card& card, uint32_t qp, const QueuePairConfig& config,
                                  std::unique_ptr<QueuePair>* out);
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] TxQueue& tx() { return *tx_; }
  [[nodiscard]] SharedRxQueue& shared() { return *shared_; }
  [[nodiscard]] DoorbellQueue& doorbells() { return *doorbells_; }
  [[nodiscard]] DmaQueue& dma() { return *dma_; }
  [[nodiscard]] MaintQueue& maint() { return *maint_; }
  [[nodiscard]] EventQueue& events() { return *events_; }
  [[nodiscard]] BarrierQueue& barriers() { return *barriers_; }
  /// Inbound windows; only if has_windows().
  [[nodiscard]] WindowTable& windows() { return *windows_; }
  [[nodiscard]] bool has_windows() const { return windows_ != nullptr; }
  /// Rings that are open, by ring_bit(); dedicated ones included.
  [[nodiscard]] uint32_t rings() const;

  /// QueueBase::arm() of several queues. @param rings ring_bit()s of open rings.
  void arm(uint32_t rings);

  /// Open dedicated queue `i`. @param i 0 to 7; @param mbox 0 to 3; @param out the queue, which the
  /// queue pair keeps. @return 0, -EINVAL, -EBUSY (it is open), and as Ring::start.
  [[nodiscard]] int open_dedicated(uint32_t i, uint32_t source, uint32_t mbox,
                                   DedicatedRxQueue** out);
  /// Stop dedicated queue `i` and free it; entries that were not reaped are the caller's again.
  /// @return 0, -ENOENT (not open), -ETIMEDOUT (it stays open), -ENODEV (card gone: closed).
  [[nodiscard]] int close_dedicated(uint32_t i);
  /// Dedicated queue `i` if it is open, else null.
  [[nodiscard]] DedicatedRxQueue* dedicated(uint32_t i);

  /// Whether the card has a barrier engine for this queue pair.
  [[nodiscard]] bool has_barrier_engine() const { return card_.blocks().has_barrier(qp_); }
  /// Open the barrier ring later than the queue pair. Control path.
  /// @return 0; -EBUSY (it is open; logged), -ENOTSUP (no engine; logged), and as Ring::start.
  [[nodiscard]] int open_barriers();
  /// Stop the barrier ring and free it: all barriers end, and their peers are told. Control path.
  /// @return 0, -ENOENT (not open), -ETIMEDOUT (it stays open), -ENODEV (card gone: closed).
  [[nodiscard]] int close_barriers();

  /// Counts of dedicated queue `i`, including earlier times when it was open. Control path. @param
  /// i 0 to 7.
  [[nodiscard]] RingTotals dedicated_totals(uint32_t i) const;

  [[nodiscard]] uint32_t index() const { return qp_; }
  /// The source ID in force. Reads the BAR.
  [[nodiscard]] uint32_t dest_id() { return card_.dest_id(qp_); }

  /// Stop all rings. Posted entries complete with kFlushed and can be reaped; afterwards the memory
  /// in them is the caller's. All rings are asked, even if one does not answer.
  /// @return 0, or the first error: -ETIMEDOUT (memory must stay as it is), -ENODEV (card gone).
  [[nodiscard]] int stop();

 private:
  QueuePair(Card& card, uint32_t qp, const QueuePairConfig& config);
  [[nodiscard]] int check_idle(uint32_t rings_present);
  [[nodiscard]] int start(uint32_t rings);
  [[nodiscard]] int refuse_barriers();
  [[nodiscard]] RingConfig ring_config(uint32_t ring, uint32_t log2) const;
  template <class Self, class Visit>
  static void for_each_open(Self& self, const Visit& visit);

  Card& card_;
  Mmio bar_;
  uint32_t qp_;
  QueuePairConfig config_;
  uint32_t stop_ms_;  // limit of starts and stops
  SharedPtr<TxQueue> tx_;
  SharedPtr<SharedRxQueue> shared_;
  SharedPtr<DoorbellQueue> doorbells_;
  SharedPtr<DmaQueue> dma_;
  SharedPtr<MaintQueue> maint_;
  SharedPtr<EventQueue> events_;
  SharedPtr<BarrierQueue> barriers_;
  std::unique_ptr<WindowTable> windows_;
  std::array<SharedPtr<DedicatedRxQueue>, regs::kDedicatedQueues> dedicated_;
  std::array<RingTotals, regs::kDedicatedQueues> closed_;  // of dedicated queues, while closed
};

}  // namespace rio::pmd
