/// @file
/// Message buffers for the shared receive queue and for sending.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "pmd/bus/bus.hpp"

namespace rio::pmd::mem {

/// A pool of 4096-byte buffers in one piece of bus memory, by index. Their distance is 4096 + 256
/// bytes, so that the heads of neighbours use different sets of the L1 cache. Last in, first out.
/// One thread; only create() allocates.
class BufferPool {
 public:
  static constexpr uint32_t kBufferBytes = 4096;
  static constexpr uint32_t kCountMax = 1u << 20;

  /// Create a pool. @param bus outlives the pool. @param count 1 to kCountMax. @param align_bytes
  /// the card's alignment of shared buffers (Caps::shared_addr_align): a power of two up to 4096.
  /// 256 is the least used; above it the distance is 4096 + align_bytes. @return 0, -EINVAL,
  /// -ENOMEM, or what Bus::dma_alloc() returns (logged there).
  [[nodiscard]] static int create(Bus& bus, uint32_t count, uint32_t align_bytes,
                                  std::unique_ptr<BufferPool>* out);
  /// The card must have stopped using the buffers.
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// Hot. Take up to n buffers. @return how many; their indices are in `indices`.
  [[nodiscard]] uint32_t get(uint32_t* indices, uint32_t n) {
    const uint32_t taken = n < free_count_ ? n : free_count_;
    free_count_ -= taken;
    std::memcpy(indices, free_.get() + free_count_, taken * sizeof(uint32_t));
    return taken;
  }

  /// Hot. Give n buffers back. Giving one back twice is the caller's bug, found only when the pool
  /// would overflow. @return how many were taken back: n, or fewer after such a bug.
  uint32_t put(const uint32_t* indices, uint32_t n) {
    const uint32_t room = count_ - free_count_;
    const uint32_t given = n < room ? n : room;
    std::memcpy(free_.get() + free_count_, indices, given * sizeof(uint32_t));
    free_count_ += given;
    return given;
  }

  /// Hot: not checked. @param index below count().
  [[nodiscard]] uint8_t* va(uint32_t index) const {
    return base_va_ + uint64_t{index} * stride_bytes_;
  }
  [[nodiscard]] uint64_t iova(uint32_t index) const {
    return base_iova_ + uint64_t{index} * stride_bytes_;
  }

  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] uint32_t free_count() const { return free_count_; }
  [[nodiscard]] uint32_t stride_bytes() const { return stride_bytes_; }
  /// The memory of the whole pool, for MemoryMap::adopt().
  [[nodiscard]] const DmaMemory& memory() const { return memory_; }

 private:
  BufferPool(Bus& bus, const DmaMemory& memory, uint32_t count, uint32_t stride_bytes);

  std::unique_ptr<uint32_t[]> free_;
  uint8_t* base_va_;
  uint64_t base_iova_;
  uint32_t free_count_;
  uint32_t count_;
  uint32_t stride_bytes_;
  DmaMemory memory_;
  Bus& bus_;
};

}  // namespace rio::pmd::mem
