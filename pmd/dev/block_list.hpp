/// @file
/// The blocks that a card says it has.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "fpga/regs/gen/rio_regs.hpp"
#include "pmd/bus/mmio.hpp"

namespace rio::pmd {

/// Result of the walk along ID.NEXT. Control path. regs: BLOCK, NEXT.
class BlockList {
 public:
  /// Walk the chain once. Unknown types are skipped; a known type must lie where the contract puts
  /// it, since everything else in the driver takes its offset from there. Logs what is wrong.
  /// @param card_name for the log. @return 0; -ENODEV (all ones: no card, or gone); -EPROTO (wrong
  /// magic or version, offset outside of the BAR or not a word's, chain that loops, block in the
  /// wrong place).
  [[nodiscard]] int discover(Mmio& bar, const std::string& card_name);

  [[nodiscard]] bool has_rx_map() const { return has_rx_map_; }
  [[nodiscard]] bool has_port() const { return has_port_; }
  /// @param qp any number.
  [[nodiscard]] bool has_qp(uint32_t qp) const { return qp < regs::kMaxQps && has_qp_[qp]; }
  [[nodiscard]] bool has_window(uint32_t qp) const { return qp < regs::kMaxQps && has_window_[qp]; }

  /// The writer of a word.
  enum class Owner : uint8_t { kNobody, kCard, kHost };
  /// @param offset_bytes any; words outside of the known blocks have no owner.
  [[nodiscard]] Owner owner_of(uint32_t offset_bytes) const;

 private:
  [[nodiscard]] bool note(uint32_t offset_bytes, uint32_t header);

  bool has_rx_map_ = false;
  bool has_port_ = false;
  std::array<bool, regs::kMaxQps> has_qp_{};
  std::array<bool, regs::kMaxQps> has_window_{};
};

}  // namespace rio::pmd
