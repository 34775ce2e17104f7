/// @file
/// Buffers that messages land in: mbufs, so that long frames can be handed over without a copy.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// The mempool of a port. Users may hold its frames longer than the port lives: the mempool is
/// freed, or reused, once they are back. Control path, unless a function is marked hot.
class RxBuffers {
 public:
  /// Create the mempool. @param priv_bytes as of the user's mbufs. @param align_bytes of the places
  /// where messages land. @return 0, -ENOMEM, not logged.
  [[nodiscard]] int create(uint32_t count, uint16_t priv_bytes, uint32_t align_bytes,
                           int numa_node);
  ~RxBuffers();
  RxBuffers() = default;
  RxBuffers(const RxBuffers&) = delete;
  RxBuffers& operator=(const RxBuffers&) = delete;

  /// Hot. Take a buffer; its data begin where a message may land. @return null: none is free.
  [[nodiscard]] rte_mbuf* take() {
    if (spare_count_ == 0 && !refill()) [[unlikely]] {
      return nullptr;
    }
    rte_mbuf* const buffer = spares_[--spare_count_];
    const uint64_t first = rte_mbuf_data_iova_default(buffer);
    buffer->data_off = static_cast<uint16_t>(RTE_PKTMBUF_HEADROOM + (-first & (align_bytes_ - 1)));
    return buffer;
  }
  /// Give back the buffers that take() keeps ready.
  void put_back_spares();
  /// Hot. The buffer, as it is posted to the card.
  [[nodiscard]] static RxBuffer to_post(rte_mbuf* buffer) {
    return {rte_pktmbuf_iova(buffer), reinterpret_cast<uint64_t>(buffer)};
  }

 private:
  static constexpr uint32_t kSpares = 16;

  [[nodiscard]] bool refill();

  uint32_t spare_count_ = 0;
  std::array<rte_mbuf*, kSpares> spares_{};  // taken from the mempool many at a time
  rte_mempool* pool_ = nullptr;
  uint64_t align_bytes_ = 1;
};

}  // namespace rio::pmd
