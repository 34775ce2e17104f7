/// @file
/// The receive buffers of a port.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/msg/header.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// Allocate memory for `count` messages (receive buffers or transmit slots), kStrideBytes apart.
/// The endpoint owns it.
/// @return 0; -ENOTSUP: the card needs another alignment (logged); -errno.
[[nodiscard]] int alloc_area(Endpoint& endpoint, uint32_t count, pmd::DmaMemory* out);

/// Distance between buffers or slots. Chosen so that the heads of neighbours fall into different
/// sets of the L1 cache.
inline constexpr uint32_t kStrideBytes = regs::kMessageBytesMax + regs::kSegmentBytesMax;

/// One per port; used only on the port's thread. A buffer is posted to the card, holds a message,
/// or is spare.
class Buffers {
 public:
  static constexpr uint32_t kBurst = 32;

  explicit Buffers(Endpoint& endpoint) : endpoint_(endpoint), ring_(endpoint.shared()) {}
  /// Allocate `count` buffers and post the first ones to the card. @return 0, -ENOTSUP, -ENOMEM,
  /// -errno.
  [[nodiscard]] int start(uint32_t count);

  /// Hot. Return a buffer: its message is no longer needed.
  void give_back(uint8_t* buffer) { spare_[spare_count_++] = buffer; }
  /// Hot. Return the buffers of `count` messages. Each iovec points behind its message's header.
  void give_back(const iovec* messages, uint32_t count) {
    uint8_t** const to = spare_.get() + spare_count_;
#pragma GCC unroll 4
    for (size_t i = 0; i < count; ++i) {
      to[i] = static_cast<uint8_t*>(messages[i].iov_base) - kHeaderBytes;
    }
    spare_count_ += count;
  }
  /// Hot. Note that the card has filled `count` posted buffers.
  void filled(uint32_t count) {
    posted_ -= count;
  }
  /// Hot. Post spare buffers if the card is short of at least one burst.
  void top_up() {
    if (posted_ + kBurst <= kPosted) {
      refill();
    }
  }

 private:
  static constexpr uint32_t kPosted = 256;  // target number of buffers posted to the card

  void refill();

  std::unique_ptr<uint8_t*[]> spare_;
  uint32_t spare_count_ = 0;
  uint32_t posted_ = 0;
  uint64_t iova_minus_va_ = 0;
  Endpoint& endpoint_;
  pmd::SharedRxQueue& ring_;
};

}  // namespace rio::msg
