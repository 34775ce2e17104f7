#include "fpga/model/reference/tx_desc.hpp"

namespace rio::model {
namespace {

using Control = regs::tx_desc::Control;

/// Check a message with several addresses: all pieces except the last must be multiples of 8, and
/// together have the message's length.
bool pieces_acceptable(const regs::TxDesc& desc, const regs::TxWide& wide) {
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

}  // namespace

bool acceptable(const regs::TxDesc& desc, const regs::TxWide* wide) {
  const uint32_t control = desc.control;
  const uint32_t code = Control::ssize.get(control);
  const uint32_t limit = wide == nullptr ? regs::kInlineBytes : regs::kWideInlineBytes;
  const bool in_desc = Control::inline_.get(control) != 0;
  const uint32_t addrs = Control::addrs.get(control);
  if (desc.length == 0 || desc.length > regs::kMessageBytesMax || code < 9 || code > kSsize256 ||
      Control::prio.get(control) > 2 || (in_desc && desc.length > limit) ||
      (!in_desc && (desc.addr & kTxUnaligned) != 0) || segments_of(desc) > regs::kSegmentsMax ||
      (segments_of(desc) > 1 && Control::mbox.get(control) >= regs::kMultiMailboxes)) {
    return false;
  }
  if (addrs == 0) {
    return in_desc || wide == nullptr;
  }
  return wide != nullptr && !in_desc && addrs != 1 && addrs <= regs::kWideAddrs &&
         pieces_acceptable(desc, *wide);
}

}  // namespace rio::model
