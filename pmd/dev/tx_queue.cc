#include "pmd/dev/tx_queue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "pmd/dev/entry_reap.hpp"

namespace rio::pmd {
namespace {

using Control = regs::tx_desc::Control;

constexpr uint32_t kSsize256 = 14;      // code of 256 bytes. RIO Part 2 §4.1.5
constexpr uint32_t kSsizeCodeBase = 8;  // flags carry the code less this
constexpr uint32_t kPrioMax = 2;
constexpr uint32_t kDoorbellBytes = 2;

// What TxMessage::flags alone decide. bytes_max is 0 where the short way does not apply: inline,
// doorbell, or nonsense.
struct FlagsMeaning {
  uint32_t control;
  uint16_t segment_bytes;
  uint16_t bytes_max;
};

constexpr FlagsMeaning meaning_of(uint32_t flags) {
  const uint32_t size_code = flags >> TxFlags::kSsizeShift;
  const uint32_t ssize = size_code == 0 ? kSsize256 : kSsizeCodeBase + size_code;
  const uint32_t prio = flags & TxFlags::kPrioMask;
  if (ssize > kSsize256 || prio > kPrioMax) {
    return {0, 0, 0};
  }
  const auto segment_bytes = static_cast<uint16_t>(regs::kSegmentBytesMax >> (kSsize256 - ssize));
  return {Control::op.put(static_cast<uint32_t>(regs::TxOp::kMessage)) |
              Control::order.put((flags & TxFlags::kOrder) != 0 ? 1 : 0) | Control::prio.put(prio) |
              Control::ssize.put(ssize),
          segment_bytes, static_cast<uint16_t>(segment_bytes * regs::kSegmentsMax)};
}

constexpr std::array<FlagsMeaning, 256> make_meanings() {
  std::array<FlagsMeaning, 256> meanings{};
  for (uint32_t flags = 0; flags < meanings.size(); ++flags) {
    const bool by_address = (flags & (TxFlags::kInline | TxFlags::kDoorbell)) == 0;
    meanings[flags] = by_address ? meaning_of(flags) : FlagsMeaning{0, 0, 0};
  }
  return meanings;
}

constexpr std::array<FlagsMeaning, 256> kMeanings = make_meanings();

// One message by address that the card can take; everything else is left to the general way.
[[nodiscard, gnu::always_inline]] inline bool fill(const TxMessage& message, uint64_t misaligned,
                                                   regs::TxDesc* entry, uint64_t* cookie) {
  const FlagsMeaning& meaning = kMeanings[message.flags];
  const uint32_t length_bytes = message.length_bytes;
  const uint32_t mbox = message.mbox;
  const uint32_t mboxes =
      length_bytes > meaning.segment_bytes ? regs::kMultiMailboxes : regs::kMailboxes;
  if (length_bytes - 1 >= meaning.bytes_max || mbox >= mboxes || (message.iova & misaligned) != 0)
      [[unlikely]] {
    return false;
  }
  entry->control = meaning.control | mbox << Control::mbox.lsb;
  entry->dest_id = message.dest_id;
  entry->cookie = static_cast<uint32_t>(message.cookie);
  entry->length = length_bytes;
  entry->addr = message.iova;
  entry->aux = 0;
  *cookie = message.cookie;
  return true;
}

// Up to 16 bytes, zeros behind them.
void load_bytes(const void* data, uint32_t length_bytes, uint64_t words[2]) {
  words[0] = 0;
  words[1] = 0;
  std::memcpy(words, data, length_bytes);
}

}  // namespace

int TxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config,
                    std::unique_ptr<TxQueue>* out) {
  std::unique_ptr<TxQueue> queue(new (std::nothrow) TxQueue);
  if (queue == nullptr) {
    return -ENOMEM;
  }
  if (const int error =
          queue->start(bus, caps, config, {sizeof(regs::TxDesc), sizeof(regs::TxCpl)});
      error != 0) {
    return error;
  }
  if (queue->window_.create(config.log2, config.start_index) != 0) {
    return -ENOMEM;
  }
  queue->entries_ = static_cast<regs::TxDesc*>(queue->ring_.entries());
  queue->addr_misaligned_ = caps.tx_addr_align - 1;
  queue->inline_bytes_max_ = std::min(caps.inline_bytes, regs::kInlineBytes);
  queue->wide_ = caps.wide;
  *out = std::move(queue);
  return 0;
}

Reject TxQueue::check_header(uint32_t length_bytes, uint32_t mbox, uint32_t flags,
                             uint32_t* control) {
  const FlagsMeaning meaning = meaning_of(flags);
  if (meaning.bytes_max == 0) {
    return Reject::kOperation;
  }
  if (length_bytes - 1 >= meaning.bytes_max) {
    return Reject::kLength;
  }
  const uint32_t mboxes =
      length_bytes > meaning.segment_bytes ? regs::kMultiMailboxes : regs::kMailboxes;
  if (mbox >= mboxes) {
    return Reject::kMailbox;
  }
  *control = meaning.control | Control::mbox.put(mbox);
  return Reject::kNone;
}

uint32_t TxQueue::post_run(const TxMessage* messages, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::TxDesc* const entries = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  const uint64_t misaligned = addr_misaligned_;
  size_t k = 0;
  for (; k + 4 <= n; k += 4) {
    if (!fill(messages[k], misaligned, &entries[k], &cookies[k]) ||
        !fill(messages[k + 1], misaligned, &entries[k + 1], &cookies[k + 1]) ||
        !fill(messages[k + 2], misaligned, &entries[k + 2], &cookies[k + 2]) ||
        !fill(messages[k + 3], misaligned, &entries[k + 3], &cookies[k + 3])) {
      break;  // one by one, again
    }
  }
  while (k < n && fill(messages[k], misaligned, &entries[k], &cookies[k])) {
    ++k;
  }
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
}

uint16_t TxQueue::burst(const TxMessage* messages, uint16_t n) {
  last_reject_ = Reject::kNone;
  const uint32_t head_before = window_.head();
  uint32_t done = 0;
  while (done < n) {
    done += post_run(messages + done, std::min(n - done, window_.room_in_a_row()));
    if (done == n || !post_any(messages[done])) {
      break;
    }
    ++done;
  }
  ring_doorbell(head_before);
  return static_cast<uint16_t>(done);
}

uint16_t TxQueue::burst_gather(const TxGather* messages, uint16_t n) {
  last_reject_ = Reject::kNone;
  const uint32_t head_before = window_.head();
  uint32_t done = 0;
  while (done < n && post_gather(messages[done])) {
    ++done;
  }
  ring_doorbell(head_before);
  return static_cast<uint16_t>(done);
}

void TxQueue::ring_doorbell(uint32_t head_before) {
  if (window_.head() != head_before) {
    // Doorbell: entries visible before it (barrier in write32); pairs with the card's fetch, which
    // reads entries only below the tail that it has seen.
    bar_.write32(tail_offset_, window_.head());
  }
  hook_();
}

bool TxQueue::refuse(Reject why) {
  last_reject_ = why;
  ++stats_.rejected;
  return false;
}

bool TxQueue::post_any(const TxMessage& message) {
  if (window_.room() == 0) {
    return false;
  }
  if ((message.flags & TxFlags::kDoorbell) != 0) {
    const uint32_t prio = message.flags & TxFlags::kPrioMask;
    if (prio > kPrioMax) {
      return refuse(Reject::kOperation);
    }
    if (message.info > 0xFFFFu) {
      return refuse(Reject::kLength);
    }
    const uint32_t control = Control::op.put(static_cast<uint32_t>(regs::TxOp::kDoorbell)) |
                             Control::prio.put(prio) | Control::ssize.put(kSsize256);
    const auto info = static_cast<uint16_t>(message.info);
    return post_inline(message, control, &info, kDoorbellBytes);
  }
  uint32_t control = 0;
  if (const Reject why = check_header(message.length_bytes, message.mbox, message.flags, &control);
      why != Reject::kNone) {
    return refuse(why);
  }
  if ((message.flags & TxFlags::kInline) != 0) {
    return post_inline(message, control, message.data, message.length_bytes);
  }
  if ((message.iova & addr_misaligned_) != 0) {
    return refuse(Reject::kAlignment);
  }
  const uint32_t slot = window_.head() & window_.mask();
  entries_[slot] = {control,
                    message.dest_id,
                    static_cast<uint32_t>(message.cookie),
                    message.length_bytes,
                    message.iova,
                    0};
  window_.cookies()[slot] = message.cookie;
  window_.post(1);
  return true;
}

bool TxQueue::post_inline(const TxMessage& message, uint32_t control, const void* data,
                          uint32_t length_bytes) {
  const bool doorbell = (message.flags & TxFlags::kDoorbell) != 0;
  const bool wide = !doorbell && length_bytes > inline_bytes_max_;
  if (wide && (!wide_ || length_bytes > regs::kWideInlineBytes)) {
    return refuse(Reject::kLength);
  }
  if (wide && window_.room() < 2) {
    return false;
  }
  const uint32_t slot = window_.head() & window_.mask();
  const uint32_t near_bytes = std::min(length_bytes, regs::kInlineBytes);
  uint64_t words[2];
  load_bytes(data, near_bytes, words);
  entries_[slot] = {control | Control::inline_.put(1) | Control::wide.put(wide ? 1 : 0),
                    message.dest_id,
                    static_cast<uint32_t>(message.cookie),
                    length_bytes,
                    words[0],
                    words[1]};
  window_.cookies()[slot] = message.cookie;
  if (!wide) {
    window_.post(1);
    return true;
  }
  uint8_t far[sizeof(regs::TxWide)] = {};
  std::memcpy(far, static_cast<const uint8_t*>(data) + near_bytes, length_bytes - near_bytes);
  std::memcpy(&entries_[(slot + 1) & window_.mask()], far, sizeof far);
  window_.post_pair();
  return true;
}

bool TxQueue::post_gather(const TxGather& message) {
  constexpr uint32_t kSpecial = TxFlags::kInline | TxFlags::kDoorbell;
  const uint32_t count = message.count;
  if (!wide_ || count < 2 || count > regs::kWideAddrs || (message.flags & kSpecial) != 0) {
    return refuse(Reject::kOperation);
  }
  if (window_.room() < 2) {
    return false;
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
  const Reject why = check_header(sum_bytes, message.mbox, message.flags, &control);
  if (why != Reject::kNone) {
    return refuse(why);
  }
  if (empty || length_bits % 8 != 0) {
    return refuse(Reject::kLength);
  }
  if ((addr_bits & addr_misaligned_) != 0) {
    return refuse(Reject::kAlignment);
  }
  const uint32_t slot = window_.head() & window_.mask();
  entries_[slot] = {control | Control::wide.put(1) | Control::addrs.put(count),
                    message.dest_id,
                    static_cast<uint32_t>(message.cookie),
                    sum_bytes,
                    iova[0],
                    length[0]};
  const regs::TxWide second = {iova[1], iova[2], iova[3], length[1], length[2], length[3], 0};
  std::memcpy(&entries_[(slot + 1) & window_.mask()], &second, sizeof second);
  window_.cookies()[slot] = message.cookie;
  window_.post_pair();
  return true;
}

uint16_t TxQueue::reap(TxDone* out, uint16_t n) {
  uint32_t given = reap_burst<TxReap>(cursor_, window_, stats_, &entries_->length, out, n);
  if (given == 0 && n != 0) [[unlikely]] {
    hook_();
    given = reap_burst<TxReap>(cursor_, window_, stats_, &entries_->length, out, n);
  }
  return static_cast<uint16_t>(given);
}

uint16_t TxQueue::free_count() const {
  return static_cast<uint16_t>(std::min(window_.room(), 0xFFFFu));
}

uint16_t TxQueue::outstanding() const {
  return static_cast<uint16_t>(std::min(window_.outstanding(), 0xFFFFu));
}

}  // namespace rio::pmd
