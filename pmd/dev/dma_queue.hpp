/// @file
/// DMA queue: NREAD, NWRITE, NWRITE_R, SWRITE and atomics.
#pragma once

#include <cstdint>

#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Remote memory access. All functions belong to one thread. regs: dma_desc, entry_cpl;
/// RIO Part 1 §3.1.
class alignas(64) DmaQueue : public PostingQueue {
 public:
  /// For create().
  explicit DmaQueue(SharedKey /*key*/) {}
  /// Start the ring. Control path. @param bus outlives the queue.
  /// @return as Ring::start, or -ENOTSUP where Caps::dma is false.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<DmaQueue>* out);

  /// Post requests, with one BAR write if there were any, then call the poll hook. The memory is
  /// the card's until the EntryDone.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next request is
  /// one that the card cannot take (last_reject() says why; it is counted).
  uint16_t post(const DmaRequest* requests, uint16_t n);

  /// Fetch completed requests, in the order of completion; bytes is never above the request's
  /// length. Calls the poll hook once, and looks again, when there is nothing.
  /// @return how many, 0 to `n`.
  uint16_t reap(EntryDone* out, uint16_t n);
  /// Hot. Whether reap() would fetch something without the poll hook.
  [[nodiscard]] bool has_done() const { return cursor_.ready<regs::EntryCpl>(); }

 private:
  [[nodiscard]] Reject check(const DmaRequest& request) const;

  // Constant once created.
  regs::DmaDesc* entries_ = nullptr;
  uint64_t addr_misaligned_ = 0;  // bits that must be 0 in both addresses
  uint32_t length_bytes_max_ = 0;
  bool atomics_ = false;
};

}  // namespace rio::pmd
