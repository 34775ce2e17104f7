/// @file
/// Shared receive queue: every message that no dedicated queue claims.
#pragma once

#include <cstdint>
#include <memory>

#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Receives "unexpected" messages into 4 KiB buffers. All functions belong to one thread.
/// [S0]; regs: shared_desc, shared_cpl.
class alignas(64) SharedRxQueue : public PostingQueue {
 public:
  /// Start the ring, without buffers. Control path. @param bus outlives the queue.
  /// @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  std::unique_ptr<SharedRxQueue>* out);

  /// Give buffers of regs::kMessageBytesMax to the card, with one BAR write if there were any.
  /// They are the card's until their RxMessage. Does not call the poll hook.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next buffer is
  /// not aligned (last_reject() says so; it is counted).
  uint16_t post(const RxBuffer* buffers, uint16_t n);

  /// Fetch messages in the order in which they became whole. A message that failed comes with its
  /// status and its buffer, too; length_bytes is never above regs::kMessageBytesMax. Calls the poll
  /// hook once, and looks again, when there is nothing. @return how many, 0 to `n`.
  uint16_t burst(RxMessage* out, uint16_t n);

 private:
  SharedRxQueue() = default;
  [[nodiscard]] uint32_t post_run(const RxBuffer* buffers, size_t n);

  // Constant.
  regs::SharedDesc* entries_ = nullptr;
  uint64_t addr_misaligned_ = 0;  // bits that must be 0 in an address
};

}  // namespace rio::pmd
