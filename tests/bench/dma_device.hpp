/// @file
/// A dma_rio device of a benchmark, with one channel.
#pragma once

#include <rte_dmadev.h>

#include <cstdint>

namespace rio::bench {

/// Ends the program if there is no such device. @param dest_id of the node that is written or read.
/// @return its number, started.
[[nodiscard]] int16_t start_dma(const char* name, rte_dma_direction direction, uint32_t dest_id);

/// Lets the emulated card of an idle device work, once.
inline void step_card(int16_t device) {
  (void)rte_dma_completed(device, 0, 1, nullptr, nullptr);
}

}  // namespace rio::bench
