/// @file
/// Buffers that messages land in: mbufs, so that long frames are handed over where they are.
#pragma once

#include <rte_mbuf.h>

#include <array>
#include <cstdint>

#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// A mempool of a port's own. Frames may be out there for longer than the port: the mempool is
/// freed, or used again, once they are back. Control path, unless a function says that it is hot.
class RxBuffers {
 public:
  /// @param count of buffers. @param priv_bytes as of the user's mbufs. @param align_bytes of the
  /// places that messages land in. @return 0, -ENOMEM, not logged.
  [[nodiscard]] int create(uint32_t count, uint16_t priv_bytes, uint32_t align_bytes,
                           int numa_node);
  ~RxBuffers();
  RxBuffers() = default;
  RxBuffers(const RxBuffers&) = delete;
  RxBuffers& operator=(const RxBuffers&) = delete;

  /// Hot. A buffer whose data begin where a message is to land. @return null: none is free.
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
  /// Hot. For the card.
  [[nodiscard]] static RxBuffer to_post(rte_mbuf* buffer) {
    return {rte_pktmbuf_iova(buffer), reinterpret_cast<uint64_t>(buffer)};
  }

 private:
  static constexpr uint32_t kSpares = 16;

  [[nodiscard]] bool refill();

  uint32_t spare_count_ = 0;
  std::array<rte_mbuf*, kSpares> spares_{};  // out of the mempool, to take many at once
  rte_mempool* pool_ = nullptr;
  uint64_t align_bytes_ = 1;
};

}  // namespace rio::pmd
