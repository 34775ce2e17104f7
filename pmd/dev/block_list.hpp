/// @file
/// The list of blocks that a card announces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/mmio.hpp"

namespace rio::pmd {

/// Result of the walk along ID.NEXT. Control path. regs: BLOCK, NEXT.
class BlockList {
 public:
  /// Walk the chain once. Unknown types are skipped; a known type must lie where the contract puts
  /// it, since everything else in the driver takes its offset from there. Logs what is wrong.
  /// @param card_name for the log. @return 0; -ENODEV (all ones: no card, or gone); -EPROTO (wrong
  /// magic, a block of an earlier edition than regs::kEdition, offset outside of the BAR or not a
  /// word's, chain that loops, block in the wrong place).
  [[nodiscard]] int discover(Mmio& bar, const std::string& card_name);

  [[nodiscard]] bool has_rx_map() const { return has(regs::BlockType::kRxMap, 0); }
  [[nodiscard]] bool has_port() const { return has(regs::BlockType::kPort, 0); }
  /// Whether the card has a queue pair. @param qp any number.
  [[nodiscard]] bool has_qp(uint32_t qp) const { return has(regs::BlockType::kQp, qp); }
  [[nodiscard]] bool has_window(uint32_t qp) const { return has(regs::BlockType::kWindow, qp); }
  /// Whether a queue pair has a barrier engine. @param qp any number.
  [[nodiscard]] bool has_barrier(uint32_t qp) const { return has(regs::BlockType::kBarrier, qp); }

  /// Whether the card says how busy it is. A virtual function does not.
  [[nodiscard]] bool has_rail() const { return has(regs::BlockType::kRail, 0); }

  /// The side that writes a word.
  enum class Owner : uint8_t { kNone, kCard, kHost };
  /// The owner of a word. @param offset_bytes any; words outside of the known blocks have none.
  [[nodiscard]] Owner owner_of(uint32_t offset_bytes) const;

 private:
  struct Block {
    regs::BlockType type;
    uint32_t instance;  // queue pair; 0 of a block without one
    uint32_t base;
    uint32_t size_bytes;
  };
  [[nodiscard]] bool note(uint32_t offset_bytes, uint32_t header);
  [[nodiscard]] bool has(regs::BlockType type, uint32_t instance) const;

  std::vector<Block> blocks_;
};

}  // namespace rio::pmd
