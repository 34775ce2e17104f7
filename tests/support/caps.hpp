/// @file
/// Capabilities of a card like [S0], with all options.
#pragma once

#include "pmd/dev/caps.hpp"

namespace rio::test {

inline pmd::Caps full_caps() {
  pmd::Caps caps{};
  caps.queue_pairs = 4;
  caps.ring_log2_min = 1;
  caps.ring_log2_max = 16;
  caps.vectors = 8;
  caps.tx_contexts = 64;
  caps.rx_contexts = 64;
  caps.letters = 4;
  caps.inline_bytes = 16;
  caps.inline_units = 2;
  caps.tx_addr_align = 8;
  caps.shared_addr_align = 256;
  caps.dedicated_addr_align = 4096;
  caps.dedicated_size_align = 256;
  caps.dma_addr_align = 8;
  caps.dma_bytes = 65536;
  caps.tick_ns = 8;
  caps.quirk_last_at_256 = true;
  caps.quirk_last_full_256 = true;
  caps.wide = true;
  caps.dma = true;
  caps.maint = true;
  caps.atomics = true;
  caps.barrier_rounds = 20;
  caps.barrier_slots = 16;
  caps.barrier_early = 256;
  return caps;
}

}  // namespace rio::test
