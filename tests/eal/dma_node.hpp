/// @file
/// A DMA device for tests: one channel, and memory to copy from and to.
#pragma once

#include <gtest/gtest.h>
#include <rte_dmadev.h>
#include <rte_malloc.h>
#include <rte_memory.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmd/dma/rte_dma_rio.h"

namespace rio::test {

inline constexpr uint32_t kLooks = 20'000'000;  // the longest wait
inline constexpr size_t kBytes = 3 << 20;       // more than one request of the card
inline constexpr uint64_t kWindowAt = 0x40000000;
inline constexpr uint16_t kKey = 0x5A5A;

/// The bus address of EAL's memory.
inline rte_iova_t iova(const void* va) {
  return rte_mem_virt2iova(va);
}

/// Zeroed memory of EAL.
struct Memory {
  explicit Memory(size_t bytes) : va(static_cast<uint8_t*>(rte_zmalloc("dma", bytes, 64))) {}
  ~Memory() { rte_free(va); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  uint8_t* va;
};

/// One channel of one device.
class Node {
 public:
  explicit Node(const char* name) : id_(static_cast<int16_t>(rte_dma_get_dev_id_by_name(name))) {}

  int start(rte_dma_direction direction, uint32_t dest_id = 0,
            rte_dma_rio_write write = RTE_DMA_RIO_NWRITE_R, uint16_t slots = 64) {
    rte_dma_conf conf{};
    conf.nb_vchans = 1;
    if (const int rc = rte_dma_configure(id_, &conf); rc != 0) {
      return rc;
    }
    rte_dma_vchan_conf channel{};
    channel.direction = direction;
    channel.nb_desc = slots;
    rte_dma_port_param* const port =
        direction == RTE_DMA_DIR_DEV_TO_MEM ? &channel.src_port : &channel.dst_port;
    if (direction != RTE_DMA_DIR_MEM_TO_MEM) {
      rte_dma_rio_port(port, dest_id, write, 1);
      port->reserved[1] |= spoil;
    }
    const int rc = rte_dma_vchan_setup(id_, 0, &channel);
    return rc != 0 ? rc : rte_dma_start(id_);
  }
  void stop() { EXPECT_EQ(rte_dma_stop(id_), 0); }
  int copy(rte_iova_t from, rte_iova_t to, uint32_t bytes,
           uint64_t flags = RTE_DMA_OP_FLAG_SUBMIT) {
    return rte_dma_copy(id_, 0, from, to, bytes, flags);
  }
  /// Waits for the next `n` statuses, while `other` works, too.
  std::vector<rte_dma_status_code> statuses(uint16_t n, Node* other = nullptr) {
    std::vector<rte_dma_status_code> all;
    for (uint32_t look = 0; look < kLooks && all.size() < n; ++look) {
      rte_dma_status_code some[32];
      uint16_t last = 0;
      const auto left = static_cast<uint16_t>(std::min<size_t>(n - all.size(), 32));
      const uint16_t got = rte_dma_completed_status(id_, 0, left, &last, some);
      all.insert(all.end(), some, some + got);
      if (other != nullptr) {
        rte_dma_completed(other->id_, 0, 1, nullptr, nullptr);
      }
    }
    return all;
  }
  rte_dma_status_code status(Node* other = nullptr) {
    const auto all = statuses(1, other);
    EXPECT_EQ(all.size(), 1u) << "no operation ended";
    return all.empty() ? RTE_DMA_STATUS_ERROR_UNKNOWN : all[0];
  }
  int16_t id() const { return id_; }

  uint64_t spoil = 0;  // bits to flip in the port's parameters

 private:
  int16_t id_;
};

}  // namespace rio::test
