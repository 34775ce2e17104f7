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

/// The buffers of a port that no card has and no message fills. One per port; used only on the
/// port's thread. Each rail posts them to its card: BufferRing.
class Buffers {
 public:
  /// Allocate `count` buffers, all spare. @param endpoint owns the memory; other cards register it.
  /// @return 0, -ENOTSUP, -ENOMEM, -errno.
  [[nodiscard]] int create(Endpoint& endpoint, uint32_t count);
  /// The memory of all buffers.
  [[nodiscard]] const pmd::DmaMemory& memory() const { return memory_; }

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
  /// Number of spare buffers.
  [[nodiscard]] uint32_t spare_count() const {
    return spare_count_;
  }
  /// The `n` buffers that were returned last, which are still in the cache. @param n up to
  /// spare_count(). @return the first of them; valid until the next call.
  [[nodiscard]] uint8_t* const* last(uint32_t n) const {
    return spare_.get() + spare_count_ - n;
  }
  /// The last `n` buffers are spare no more.
  void take(uint32_t n) {
    spare_count_ -= n;
  }

 private:
  std::unique_ptr<uint8_t*[]> spare_;
  uint32_t spare_count_ = 0;
  pmd::DmaMemory memory_;
};

/// The receive buffers that a rail has posted to its card. One per rail; used only on the port's
/// thread.
class BufferRing {
 public:
  static constexpr uint32_t kBurst = 32;
  static constexpr uint32_t kPosted = 256;  ///< target number of buffers posted to the card

  BufferRing(Endpoint& endpoint, Buffers& buffers)
      : buffers_(buffers), endpoint_(endpoint), ring_(endpoint.shared()) {}
  /// Make the memory of the buffers known to the card, and post the first ones. @return 0; -EXDEV:
  /// the card finds the memory in several pieces (logged); -ENOMEM, -errno.
  [[nodiscard]] int start();

  /// Hot. Note that the card has filled `count` posted buffers.
  void filled(uint32_t count) { posted_ -= count; }
  /// Hot. Post spare buffers if the card is short of at least one burst.
  void top_up() {
    if (posted_ + kBurst <= kPosted) {
      refill();
    }
  }

 private:
  void refill();

  uint32_t posted_ = 0;
  uint64_t iova_minus_va_ = 0;
  Buffers& buffers_;
  Endpoint& endpoint_;
  pmd::SharedRxQueue& ring_;
};

}  // namespace rio::msg
