/// @file
/// Memory that cards reach: message buffers for all ports, buffers to send from, and other pieces.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "apps/testpmd/text.hpp"
#include "pmd/bus/bus.hpp"
#include "pmd/mem/buffer_pool.hpp"

namespace rio::testpmd {

/// Buffers of 4 KiB, named by their bus address, which a queue carries as cookie: the pool lies in
/// one piece, so the pointer is a constant away. take() and give() are for set-up; the hot loops
/// pass buffers from queue to queue.
class MessagePool {
 public:
  /// Once. @param buffers how many. @param align_bytes what the cards want of a buffer's address.
  /// @return 0, or -EINVAL with the remedy in `error`.
  [[nodiscard]] int allocate(pmd::Bus& bus, uint32_t buffers, uint32_t align_bytes,
                             std::string* error) {
    if (pmd::mem::BufferPool::create(bus, buffers, align_bytes, &memory_) != 0) {
      return fail(error,
                  "no memory for %u message buffers of 4 KiB; reserve hugepages (echo 256 "
                  ">/proc/sys/vm/nr_hugepages) or give EAL more memory (-m 512)",
                  buffers);
    }
    va_minus_iova_ = reinterpret_cast<uint64_t>(memory_->va(0)) - memory_->iova(0);
    return 0;
  }

  /// @return bus address of a buffer, 0 if none is left.
  [[nodiscard]] uint64_t take() {
    uint32_t index = 0;
    return memory_->get(&index, 1) == 1 ? memory_->iova(index) : 0;
  }
  void give(uint64_t iova) {
    const auto index = static_cast<uint32_t>((iova - memory_->iova(0)) / memory_->stride_bytes());
    (void)memory_->put(&index, 1);
  }
  [[nodiscard]] uint8_t* va(uint64_t iova) const {
    return reinterpret_cast<uint8_t*>(iova + va_minus_iova_);
  }
  [[nodiscard]] size_t free_count() const { return memory_->free_count(); }

 private:
  std::unique_ptr<pmd::mem::BufferPool> memory_;
  uint64_t va_minus_iova_ = 0;
};

/// Memory that a card reaches, freed with this object unless it is left to the card.
class CardMemory {
 public:
  CardMemory() = default;
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;
  ~CardMemory() {
    if (memory_.va != nullptr) {
      bus_->dma_free(memory_);
    }
  }
  /// Once. @param bus outlives the object. @return as Bus::dma_alloc().
  [[nodiscard]] int allocate(pmd::Bus& bus, uint64_t len_bytes) {
    bus_ = &bus;
    return bus.dma_alloc(len_bytes, 4096, &memory_);
  }
  /// The card may still use it: it stays allocated.
  void leave() { memory_ = {}; }

  [[nodiscard]] uint8_t* va(uint64_t at = 0) const {
    return static_cast<uint8_t*>(memory_.va) + at;
  }
  [[nodiscard]] uint64_t iova(uint64_t at = 0) const { return memory_.iova + at; }
  /// @param iova within the memory. @return its address in this process.
  [[nodiscard]] uint8_t* va_of(uint64_t iova) const { return va(iova - memory_.iova); }
  [[nodiscard]] pmd::IovaRun run() const { return {memory_.va, memory_.iova, memory_.len_bytes}; }

 private:
  pmd::Bus* bus_ = nullptr;
  pmd::DmaMemory memory_;
};

/// Buffers to send from, named by their bus address. Each has room for the payload at its offset,
/// then for a copy, which is sent where the card cannot take the payload itself. Their distance
/// keeps their heads out of one cache set.
class SendBuffers {
 public:
  /// @param align_bytes what the card asks of an address; the same answer holds for all buffers.
  SendBuffers(uint32_t size_bytes, uint32_t offset_bytes, uint32_t align_bytes)
      : size_bytes_(size_bytes),
        offset_bytes_(offset_bytes),
        bounced_((offset_bytes & (align_bytes - 1)) != 0) {}
  /// Once. @return 0, or -EINVAL with the remedy in `error`.
  [[nodiscard]] int allocate(pmd::Bus& bus, uint32_t count, std::string* error) {
    return memory_.allocate(bus, uint64_t{count} * kStride) == 0
               ? 0
               : fail(error,
                      "no memory for %u buffers to send from; reserve more hugepages or give EAL "
                      "more memory (-m 512)",
                      count);
  }
  [[nodiscard]] uint64_t buffer(uint32_t index) const {
    return memory_.iova(uint64_t{index} * kStride);
  }
  [[nodiscard]] uint8_t* payload(uint64_t buffer) const {
    return memory_.va_of(buffer) + offset_bytes_;
  }
  [[nodiscard]] bool bounced() const { return bounced_; }
  /// Bus address of what is sent.
  [[nodiscard]] uint64_t wire(uint64_t buffer) const {
    return buffer + (bounced_ ? kBounceAt : offset_bytes_);
  }
  void bounce(uint64_t buffer) const {
    uint8_t* const bytes = memory_.va_of(buffer);
    std::memcpy(bytes + kBounceAt, bytes + offset_bytes_, size_bytes_);
  }

 private:
  static constexpr uint32_t kBounceAt = 8192;
  static constexpr uint32_t kStride = kBounceAt + 4096 + 256;

  const uint32_t size_bytes_;
  const uint32_t offset_bytes_;
  const bool bounced_;
  CardMemory memory_;
};

}  // namespace rio::testpmd
