/// @file
/// Decodes and checks transmit descriptors. docs/card.md, Sending
#pragma once

#include "fpga/model/config.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

inline constexpr uint32_t kSsize256 = 14;  ///< code of 256-byte segments

/// Bytes of a segment. @param code ssize code of the specification, 9 to 14.
[[nodiscard]] constexpr uint32_t ssize_bytes(uint32_t code) {
  return 1u << (code - 6);
}

/// Number of segments of a message. @pre its ssize code is valid.
[[nodiscard]] inline uint32_t segments_of(const regs::TxDesc& desc) {
  const uint32_t code = regs::tx_desc::Control::ssize.get(desc.control);
  return (desc.length + ssize_bytes(code) - 1) >> (code - 6);
}

/// A bit mask of all segments of a message.
[[nodiscard]] constexpr uint16_t all_segments(uint32_t segments) {
  return static_cast<uint16_t>((1u << segments) - 1);
}

/// Whether a message's descriptor is valid. @param wide its second half, or null.
[[nodiscard]] bool acceptable(const regs::TxDesc& desc, const regs::TxWide* wide);

}  // namespace rio::model
