/// @file
/// The rails block: the card keeps its status up to date in host memory, where it is read without
/// the BAR. [S3], docs/card.md, Rails
#pragma once

#include <cstdint>
#include <memory>

#include "pmd/bus/bus.hpp"
#include "pmd/dev/card.hpp"
#include "pmd/dev/rail_state.hpp"

namespace rio::pmd {

/// The status of one card, which it writes every so often from create() to close(). A card has one
/// such block; a second object for it takes the block from the first one. create(), close() and the
/// destructor are control path, one thread. regs: RAIL, rail_status
class RailWatch {
 public:
  /// Let the card write its status to memory of the bus, and wait for the first one.
  /// @param card outlives the object. @param period_us between two writes, at least 1. @param
  /// timeout_ms of each change of the block.
  /// @return 0; -ENOTSUP: the card has no rails block (a virtual function never has); -EINVAL
  /// (period); -EPROTO: the card refuses the block's words; -ENOMEM, -ETIMEDOUT, -ENODEV. Logged.
  [[nodiscard]] static int create(Card& card, uint32_t period_us, uint32_t timeout_ms,
                                  std::unique_ptr<RailWatch>* out);
  /// As close(), whose result is lost.
  ~RailWatch();
  RailWatch(const RailWatch&) = delete;
  RailWatch& operator=(const RailWatch&) = delete;

  /// Read the card's last status: no BAR access, log, or allocation. Any thread, also several at
  /// once. While a write of the card is seen in part, it looks again, kLooksMost times in all, and
  /// calls the bus's hook in between; otherwise it does not call the hook, so an emulated card that
  /// works inside its host writes only while its queues are polled.
  /// @return 0; as read_rail_state(); -ENODEV after close().
  [[nodiscard]] int read(RailState* out) const;

  /// Disable the block, wait until the card writes no more, free the memory. Again: nothing.
  /// @return 0; -ENODEV (the card is gone: the memory is freed); -ETIMEDOUT: the memory stays
  /// allocated, since the card may still write.
  [[nodiscard]] int close();

  /// Looks at a status that is not whole.
  static constexpr uint32_t kLooksMost = 8;

 private:
  explicit RailWatch(Bus& bus, uint32_t timeout_ms);
  [[nodiscard]] int enable(uint32_t period_us);
  [[nodiscard]] int command(bool enable, bool* is_enabled);

  Bus& bus_;
  Mmio bar_;
  PollHook hook_;
  uint32_t timeout_ms_;
  DmaMemory memory_;  // none after close()
};

}  // namespace rio::pmd
