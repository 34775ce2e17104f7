/// @file
/// Message buffers for the shared receive queue and for sending.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>

#include "pmd/bus/bus.hpp"

namespace rio::pmd::mem {

/// A pool of 4096-byte buffers in one piece of bus memory, by index. Their distance is 4096 + 256
/// bytes, so that the heads of neighbours fall into different sets of the L1 cache. Last in, first
/// out. One thread; nothing below create() allocates.
class BufferPool {
 public:
  static constexpr uint32_t kBufferBytes = 4096;
  static constexpr uint32_t kCountMax = 1u << 20;

  /// @param bus outlives the pool. @param count 1 to kCountMax. @param align_bytes what the card
  /// asks of a shared buffer (Caps::shared_addr_align): power of two up to 4096; at least 256 is
  /// kept; above 256 the distance becomes 4096 + align_bytes.
  /// @return 0, -EINVAL, -ENOMEM, or what Bus::dma_alloc() says (logged there).
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

  /// Hot. Give n buffers back. Giving one back twice is a bug of the caller that is found only when
  /// the pool would overflow. @return how many were taken back: n, or fewer after such a bug.
  uint32_t put(const uint32_t* indices, uint32_t n) {
    const uint32_t room = count_ - free_count_;
    const uint32_t given = n < room ? n : room;
    std::memcpy(free_.get() + free_count_, indices, given * sizeof(uint32_t));
    free_count_ += given;
    return given;
  }

  /// Hot, so not checked. @param index below count().
  [[nodiscard]] uint8_t* va(uint32_t index) const {
    return base_va_ + uint64_t{index} * stride_bytes_;
  }
  [[nodiscard]] uint64_t iova(uint32_t index) const {
    return base_iova_ + uint64_t{index} * stride_bytes_;
  }

  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] uint32_t free_count() const { return free_count_; }
  [[nodiscard]] uint32_t stride_bytes() const { return stride_bytes_; }
  /// All of the pool, for MemoryMap::adopt().
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
