/// @file
/// The buffers that arriving messages are put into.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "lib/msg/header.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio::msg {

/// Memory for so many messages, buffers or slots, kStrideBytes apart; the endpoint's.
/// @return 0; -ENOTSUP: the card wants another distance (told in the log); -errno.
[[nodiscard]] int alloc_area(Endpoint& endpoint, uint32_t count, pmd::DmaMemory* out);

/// Of buffers and slots. Heads of neighbours fall into different sets of the L1 cache.
inline constexpr uint32_t kStrideBytes = regs::kMessageBytesMax + regs::kSegmentBytesMax;

/// Of one port; its thread. A buffer is the card's (posted), a message's, or spare.
class Buffers {
 public:
  static constexpr uint32_t kBurst = 32;

  explicit Buffers(Endpoint& endpoint) : endpoint_(endpoint), ring_(endpoint.shared()) {}
  /// Allocates them, and gives the card the first ones. @return 0, -ENOTSUP, -ENOMEM, -errno.
  [[nodiscard]] int start(uint32_t count);

  /// Hot. The message in it is done with.
  void give_back(uint8_t* buffer) { spare_[spare_count_++] = buffer; }
  /// Hot. Give back the buffers of so many messages, each of which begins behind its header.
  void give_back(const iovec* messages, uint32_t count) {
    uint8_t** const to = spare_.get() + spare_count_;
#pragma GCC unroll 4
    for (size_t i = 0; i < count; ++i) {
      to[i] = static_cast<uint8_t*>(messages[i].iov_base) - kHeaderBytes;
    }
    spare_count_ += count;
  }
  /// Hot. The card has filled so many.
  void filled(uint32_t count) {
    posted_ -= count;
  }
  /// Hot. Give the card spare buffers if it lacks a burst of them.
  void top_up() {
    if (posted_ + kBurst <= kPosted) {
      refill();
    }
  }

 private:
  static constexpr uint32_t kPosted = 256;  // buffers that the card has

  void refill();

  std::unique_ptr<uint8_t*[]> spare_;
  uint32_t spare_count_ = 0;
  uint32_t posted_ = 0;
  uint64_t iova_minus_va_ = 0;
  Endpoint& endpoint_;
  pmd::SharedRxQueue& ring_;
};

}  // namespace rio::msg
