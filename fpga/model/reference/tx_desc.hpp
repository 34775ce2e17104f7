/// @file
/// Decodes and checks transmit descriptors. docs/card.md, Sending
#pragma once

#include "fpga/model/config.hpp"
#include "fpga/model/core/flow.hpp"
#include "fpga/regs/gen/rio_regs.hpp"

namespace rio::model {

inline constexpr uint32_t kSsize256 = 14;  ///< code of 256-byte segments

/// Bytes of a segment. @param code ssize code of the specification, 9 to 14.
[[nodiscard]] constexpr uint32_t ssize_bytes(uint32_t code) {
  return 1u << (code - 6);
}

/// Whether an entry is only to be passed.
[[nodiscard]] constexpr bool is_skip(const regs::TxDesc& desc) {
  return regs::tx_desc::Control::op.get(desc.control) == static_cast<uint32_t>(regs::TxOp::kSkip);
}

/// Units of an entry.
[[nodiscard]] constexpr uint32_t units_of(const regs::TxDesc& desc) {
  return regs::tx_desc::Control::units.get(desc.control) + 1;
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

/// Whether a segment of a message was sent and was not refused.
[[nodiscard]] inline bool begun(const TxMsg& msg) {
  return msg.unsent != all_segments(msg.whole ? 1 : msg.segments);
}

/// Check a message with several addresses: all pieces except the last must be multiples of 8, and
/// together have the message's length.
[[nodiscard]] inline bool pieces_acceptable(const regs::TxDesc& desc, const regs::TxWide& wide) {
  using Control = regs::tx_desc::Control;
  const uint32_t addrs = Control::addrs.get(desc.control);
  const uint64_t addr[] = {desc.addr, wide.addr1, wide.addr2, wide.addr3};
  const uint64_t len[] = {desc.aux & 0xFFFFFFFFu, wide.len1, wide.len2, wide.len3};
  uint64_t total = 0;
  for (uint32_t i = 0; i < addrs; ++i) {
    total += len[i];
    if ((addr[i] & kTxUnaligned) != 0 || len[i] == 0 || (i + 1 < addrs && (len[i] & 7) != 0)) {
      return false;
    }
  }
  return total == desc.length;
}

/// Whether a message's descriptor is valid. @param wide its second unit, if it has more than one.
[[nodiscard]] inline bool acceptable(const regs::TxDesc& desc, const regs::TxWide& wide) {
  using Control = regs::tx_desc::Control;
  const uint32_t control = desc.control;
  const uint32_t code = Control::ssize.get(control);
  const uint32_t units = units_of(desc);
  const uint32_t limit = regs::kInlineBytes + (units - 1) * uint32_t{sizeof(regs::TxWide)};
  const bool in_desc = Control::inline_.get(control) != 0;
  const uint32_t addrs = Control::addrs.get(control);
  if (desc.length == 0 || desc.length > regs::kMessageBytesMax || code < 9 || code > kSsize256 ||
      Control::prio.get(control) > 2 || (in_desc && desc.length > limit) ||
      (!in_desc && (desc.addr & kTxUnaligned) != 0) || segments_of(desc) > regs::kSegmentsMax ||
      (segments_of(desc) > 1 && Control::mbox.get(control) >= regs::kMultiMailboxes)) {
    return false;
  }
  if (addrs == 0) {
    return in_desc || units == 1;
  }
  return units == 2 && !in_desc && addrs != 1 && addrs <= regs::kWideAddrs &&
         pieces_acceptable(desc, wide);
}

}  // namespace rio::model
