/// @file
/// Bounce buffers, 4 KiB each, for bytes that the card cannot take in place.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "pmd/bus/bus.hpp"

namespace rio::pmd::mem {

/// A pool of buffers that the card can reach, aligned to 4 KiB in both address spaces, handed out
/// by index, last in first out (the warm one first). One thread; nothing below create() allocates.
class BouncePool {
 public:
  static constexpr uint32_t kBufferBytes = 4096;
  /// Stands for "no buffer": all are taken.
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kCountMax = 1u << 20;

  /// Create a pool. @param bus outlives the pool. @param count 1 to kCountMax. @return 0, -EINVAL,
  /// or what Bus::dma_alloc() returns (logged there).
  [[nodiscard]] static int create(Bus& bus, uint32_t count, std::unique_ptr<BouncePool>* out);
  /// The card must have stopped using the buffers.
  ~BouncePool();
  BouncePool(const BouncePool&) = delete;
  BouncePool& operator=(const BouncePool&) = delete;

  /// Take a buffer with arbitrary content. @return index below count(), or kNone.
  [[nodiscard]] uint32_t get() {
    if (free_.empty()) [[unlikely]] {
      return kNone;
    }
    const uint32_t index = free_.back();
    free_.pop_back();
    taken_[index] = 1;
    return index;
  }

  /// Give a buffer back. @return 0, -EINVAL (not an index of this pool), -EALREADY (it is free
  /// already); after an error nothing has changed.
  [[nodiscard]] int put(uint32_t index) {
    if (index >= count_ || taken_[index] == 0) [[unlikely]] {
      return index >= count_ ? -EINVAL : -EALREADY;
    }
    taken_[index] = 0;
    free_.push_back(index);  // never grows: capacity is count_
    return 0;
  }

  /// Address of a buffer. @param index below count().
  [[nodiscard]] uint8_t* va(uint32_t index) const {
    assert(index < count_);
    return static_cast<uint8_t*>(memory_.va) + uint64_t{index} * kBufferBytes;
  }
  [[nodiscard]] uint64_t iova(uint32_t index) const {
    assert(index < count_);
    return memory_.iova + uint64_t{index} * kBufferBytes;
  }

  /// Sender: fill a taken buffer. @param len_bytes up to wire_bytes. @param wire_bytes up to 4096;
  /// the rest up to it is zeroed, so that no earlier user's bytes are sent.
  void copy_in(uint32_t index, const void* from, uint32_t len_bytes, uint32_t wire_bytes) {
    assert(len_bytes <= wire_bytes && wire_bytes <= kBufferBytes);
    uint8_t* to = va(index);
    std::memcpy(to, from, len_bytes);
    std::memset(to + len_bytes, 0, wire_bytes - len_bytes);
  }

  /// Receiver: empty a taken buffer. @param len_bytes up to 4096.
  void copy_out(uint32_t index, void* to, uint32_t len_bytes) {
    assert(len_bytes <= kBufferBytes);
    std::memcpy(to, va(index), len_bytes);
  }

  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] uint32_t free_count() const { return static_cast<uint32_t>(free_.size()); }

 private:
  BouncePool(Bus& bus, const DmaMemory& memory, uint32_t count);

  std::vector<uint32_t> free_;
  std::vector<uint8_t> taken_;
  DmaMemory memory_;
  uint32_t count_;
  Bus& bus_;
};

}  // namespace rio::pmd::mem
