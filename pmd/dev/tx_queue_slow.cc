// The slow path of posting, one by one: messages that differ from the one before, are not by
// address, or are gathered.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "pmd/dev/tx_queue.hpp"
#include "pmd/dev/tx_words.hpp"

namespace rio::pmd {
namespace {

using tx::Control;

constexpr uint32_t kDoorbellBytes = 2;

}  // namespace

Reject TxQueue::refusal(uint32_t length_bytes, uint32_t flags) {
  const tx::FlagMeaning& meaning = tx::kMeanings[flags];
  if (meaning.length_bytes_max == 0) {
    return Reject::kOperation;
  }
  return length_bytes - 1 >= meaning.length_bytes_max ? Reject::kLength : Reject::kMailbox;
}

bool TxQueue::post_slow(const TxMessage& message) {
  const uint32_t flags = message.flags;
  uint32_t length_bytes = message.length_bytes;
  uint32_t control = 0;
  if (window_.room() == 0) {
    return false;
  }
  if ((flags & TxFlags::kDoorbell) != 0) {
    const uint32_t prio = flags & TxFlags::kPrioMask;
    if (prio > tx::kPrioMax || message.info > 0xFFFFu) {
      return refuse(prio > tx::kPrioMax ? Reject::kOperation : Reject::kLength);
    }
    control = Control::op.put(static_cast<uint32_t>(regs::TxOp::kDoorbell)) |
              Control::prio.put(prio) | Control::ssize.put(tx::kSsize256) | Control::inline_.put(1);
    length_bytes = kDoorbellBytes;
  } else if (!tx::control_of(tx::kMeanings, length_bytes, message.mbox, flags, &control)) {
    return refuse(refusal(length_bytes, flags));
  }
  uint64_t words[2] = {message.iova, 0};  // the address, or the doorbell's information
  if ((flags & tx::kSpecialFlags) == TxFlags::kInline) {
    if (length_bytes > inline_bytes_) {
      return post_long_inline(message, control);
    }
    tx::load_upto_16(static_cast<const uint8_t*>(message.data), length_bytes, words);
    control |= Control::inline_.put(1);
  } else if ((flags & tx::kSpecialFlags) == 0 && (message.iova & addr_misaligned_) != 0) {
    return refuse(Reject::kAlignment);
  }
  const uint32_t slot = window_.head() & window_.mask();
  entries_[slot] = {control, message.dest_id, 0, length_bytes, words[0], words[1]};
  window_.cookies()[slot] = message.cookie;
  window_.post(1);
  return true;
}

/// Makes room for an entry of several units, which must not cross 4 KiB or the ring's end: skips
/// the units before such a place. The ring begins at one. @return false: the ring is full.
bool TxQueue::make_room(uint32_t units) {
  const uint32_t apart = std::min<uint32_t>(window_.mask() + 1, 4096 / sizeof(regs::TxDesc));
  const uint32_t left = apart - (window_.head() & (apart - 1));
  const uint32_t skipped = left < units ? left : 0;
  if (window_.room() < units + skipped) {
    return false;
  }
  for (uint32_t i = 0; i < skipped; ++i) {
    entries_[(window_.head() + i) & window_.mask()].control =
        Control::op.put(static_cast<uint32_t>(regs::TxOp::kSkip));
  }
  window_.skip(skipped);
  end_next();  // the window has marks
  return true;
}

bool TxQueue::post_long_inline(const TxMessage& message, uint32_t control) {
  const uint32_t length_bytes = message.length_bytes;
  if (length_bytes > inline_bytes_max_) {
    return refuse(Reject::kLength);
  }
  const uint32_t units =
      length_bytes <= regs::kInlineBytes ? 2 : 1 + (length_bytes - regs::kInlineBytes + 31) / 32;
  if (!make_room(units)) {
    return false;
  }
  const uint32_t slot = window_.head() & window_.mask();
  regs::TxDesc* const entry = &entries_[slot];
  entry[units - 1] = {};  // zeros behind the last byte
  *entry = {control | Control::inline_.put(1) | Control::units.put(units - 1),
            message.dest_id,
            0,
            length_bytes,
            0,
            0};
  std::memcpy(reinterpret_cast<uint8_t*>(entry) + offsetof(regs::TxDesc, addr), message.data,
              length_bytes);
  window_.cookies()[slot] = message.cookie;
  window_.post_several(units);
  return true;
}

bool TxQueue::stage_gather(const TxGather& message) {
  const uint32_t count = message.count;
  if (!wide_ || count < 2 || count > regs::kWideAddrs || (message.flags & tx::kSpecialFlags) != 0) {
    return refuse(Reject::kOperation);
  }
  uint64_t iova[regs::kWideAddrs] = {};
  uint16_t length[regs::kWideAddrs] = {};
  uint32_t sum_bytes = 0;
  uint64_t addr_bits = 0;
  uint32_t length_bits = 0;
  bool empty = false;
  for (uint32_t i = 0; i < count; ++i) {
    iova[i] = message.iova[i];
    length[i] = message.length_bytes[i];
    sum_bytes += length[i];
    addr_bits |= iova[i];
    empty |= length[i] == 0;
    length_bits |= i + 1 < count ? length[i] : 0u;
  }
  uint32_t control = 0;
  if (!tx::control_of(tx::kMeanings, sum_bytes, message.mbox, message.flags, &control)) {
    return refuse(refusal(sum_bytes, message.flags));
  }
  if (empty || length_bits % 8 != 0) {
    return refuse(Reject::kLength);
  }
  if ((addr_bits & addr_misaligned_) != 0) {
    return refuse(Reject::kAlignment);
  }
  if (!make_room(2)) {
    return false;
  }
  const uint32_t slot = window_.head() & window_.mask();
  entries_[slot] = {control | Control::units.put(1) | Control::addrs.put(count),
                    message.dest_id,
                    0,
                    sum_bytes,
                    iova[0],
                    length[0]};
  const regs::TxWide second = {iova[1], iova[2], iova[3], length[1], length[2], length[3], 0};
  std::memcpy(&entries_[slot + 1], &second, sizeof second);
  window_.cookies()[slot] = message.cookie;
  window_.post_several(2);
  return true;
}

}  // namespace rio::pmd
