/// @file
/// Message buffers for all ports: one piece of memory that every card can reach.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "pmd/bus/bus.hpp"
#include "pmd/mem/buffer_pool.hpp"

namespace rio::testpmd {

/// Buffers of 4 KiB, named by their bus address, which a queue carries as cookie: the pool lies in
/// one piece, so the pointer is a constant away. take() and give() are for set-up; the hot loops
/// pass buffers from queue to queue.
class MessagePool {
 public:
  /// @param buffers how many. @param align_bytes what the cards want of a buffer's address.
  /// @return 0, or -errno with the remedy in `error`.
  [[nodiscard]] static int create(pmd::Bus& bus, uint32_t buffers, uint32_t align_bytes,
                                  std::unique_ptr<MessagePool>* out, std::string* error);

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
  MessagePool() = default;
  std::unique_ptr<pmd::mem::BufferPool> memory_;
  uint64_t va_minus_iova_ = 0;
};

inline int MessagePool::create(pmd::Bus& bus, uint32_t buffers, uint32_t align_bytes,
                               std::unique_ptr<MessagePool>* out, std::string* error) {
  std::unique_ptr<MessagePool> pool(new MessagePool());
  const int rc = pmd::mem::BufferPool::create(bus, buffers, align_bytes, &pool->memory_);
  if (rc != 0) {
    *error = "no memory for " + std::to_string(buffers) +
             " message buffers of 4 KiB; reserve "
             "hugepages (echo 256 >/proc/sys/vm/nr_hugepages) or give EAL more memory (-m 512)";
    return rc;
  }
  pool->va_minus_iova_ = reinterpret_cast<uint64_t>(pool->memory_->va(0)) - pool->memory_->iova(0);
  *out = std::move(pool);
  return 0;
}

}  // namespace rio::testpmd
