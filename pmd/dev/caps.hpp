/// @file
/// Capabilities of a card, decoded once at open.
#pragma once

#include <cstdint>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/mmio.hpp"

namespace rio::pmd {

/// regs: ID.CAP_*. Sizes and alignments in bytes.
struct Caps {
  uint32_t queue_pairs;
  uint32_t ring_log2_min;
  uint32_t ring_log2_max;
  uint32_t vectors;
  uint32_t tx_contexts;
  uint32_t rx_contexts;
  uint32_t letters;
  uint32_t order_depth;
  uint32_t inline_bytes;  ///< in one unit of a transmit entry
  uint32_t inline_units;  ///< most units of an entry with inline bytes, 1 to regs::kEntryUnits
  uint32_t pass_over;     ///< waiting entries of a transmit ring that later ones pass, 0: none
  uint32_t tx_addr_align;
  uint32_t shared_addr_align;
  uint32_t dedicated_addr_align;
  uint32_t dedicated_size_align;
  uint32_t dma_addr_align;
  uint32_t dma_bytes;
  uint32_t tick_ns;
  bool quirk_last_at_256;
  bool quirk_last_full_256;
  bool wide;
  bool short_receive;  ///< completions of the shared receive ring may have 16 bytes
  bool relaxed;        ///< payload may be written with relaxed ordering
  bool cumulative;     ///< completions of the transmit ring may report several messages
  bool dma;
  bool maint;
  bool atomics;
  bool is_vf;    ///< a virtual function: the physical one gives it queue pairs and destIDs
  uint32_t vfs;  ///< virtual functions that this physical one has
  /// Most inline bytes of a message.
  [[nodiscard]] uint32_t inline_bytes_max() const {
    return inline_units < 2 ? inline_bytes : regs::kInlineBytes + (inline_units - 1) * 32;
  }
  uint32_t push_slots;      ///< of each transmit ring, a power of two; 0: no push mode
  bool is_model;            ///< an emulated card: its figures say nothing about a real one
  uint32_t barrier_rounds;  ///< most rounds of a barrier; 0: the card has no barrier engine
  uint32_t barrier_slots;   ///< barrier descriptors that each queue pair keeps on the card
  uint32_t barrier_early;   ///< notifications kept for barriers not posted yet, of all queue pairs
};

/// Read them from the BAR. Control path. regs: ID.CAP_*, ID.HW_VERSION. @return 0, or -EPROTO where
/// they contradict the contract (`wrong` names the capability, a constant).
[[nodiscard]] int read_caps(Mmio& bar, Caps* out, const char** wrong);

/// Read those of a barrier engine. Control path. regs: BARRIER.CAP. @param qp a queue pair with a
/// barrier block. @param out only barrier_* are set. @return as read_caps().
[[nodiscard]] int read_barrier_caps(Mmio& bar, uint32_t qp, Caps* out, const char** wrong);

}  // namespace rio::pmd
