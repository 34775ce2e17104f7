#include "fpga/model/config.hpp"

#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

bool valid(const Config& c) {
  const auto in = [](uint32_t v, uint32_t lo, uint32_t hi) { return v >= lo && v <= hi; };
  return in(c.queue_pairs, 1, regs::kMaxQps) && in(c.letters, 1, regs::kLetters) &&
         in(c.tx_contexts, 1, 1023) && in(c.rx_contexts, 1, 1023) &&
         in(c.ring_log2_min, 1, c.ring_log2_max) && c.ring_log2_max <= 20 && c.tx_addr_log2 <= 12 &&
         c.shared_addr_log2 <= 12 && c.dedicated_addr_log2 <= 12 && c.dedicated_size_log2 <= 12 &&
         c.dma_bytes >= 256 && c.tick_ns >= 1 && c.vectors <= 255 && c.faults.rate >= 0.0 &&
         c.faults.rate <= 1.0;
}

}  // namespace rio::model
