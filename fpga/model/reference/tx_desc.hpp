/// @file
/// What a transmit descriptor says, and whether a card may send it. docs/card.md, Sending
#pragma once

#include "fpga/model/config.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

inline constexpr uint32_t kSsize256 = 14;  ///< code of 256-byte segments

/// Bytes of a segment. @param code of the specification, 9 to 14.
[[nodiscard]] constexpr uint32_t ssize_bytes(uint32_t code) {
  return 1u << (code - 6);
}

/// Segments that a message travels in. Its ssize code is legal.
[[nodiscard]] inline uint32_t segments_of(const regs::TxDesc& desc) {
  const uint32_t code = regs::tx_desc::Control::ssize.get(desc.control);
  return (desc.length + ssize_bytes(code) - 1) >> (code - 6);
}

/// All segments of a message, a bit each.
[[nodiscard]] constexpr uint16_t all_segments(uint32_t segments) {
  return static_cast<uint16_t>((1u << segments) - 1);
}

/// Whether a message's descriptor keeps the contract. @param wide its second half, or null.
[[nodiscard]] bool acceptable(const Config& config, const regs::TxDesc& desc,
                              const regs::TxWide* wide);

}  // namespace rio::model
