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
  [[nodiscard]] uint64_t take();
  void give(uint64_t iova);
  [[nodiscard]] uint8_t* va(uint64_t iova) const {
    return reinterpret_cast<uint8_t*>(iova + va_minus_iova_);
  }
  [[nodiscard]] size_t free_count() const { return memory_->free_count(); }

 private:
  MessagePool() = default;
  std::unique_ptr<pmd::mem::BufferPool> memory_;
  uint64_t va_minus_iova_ = 0;
};

}  // namespace rio::testpmd
