#include "pmd/dev/tx_queue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

#include "pmd/dev/reap.hpp"

namespace rio::pmd {
namespace {

using Control = regs::tx_desc::Control;

constexpr uint32_t kSsize256 = 14;      // code of 256 bytes. RIO Part 2 §4.1.5
constexpr uint32_t kSsizeCodeBase = 8;  // flags carry the code less this
constexpr uint32_t kPrioMax = 2;
constexpr uint32_t kDoorbellBytes = 2;

// The key is the second half of a TxMessage, loaded at once.
static_assert(offsetof(TxMessage, dest_id) == 16 && offsetof(TxMessage, length_bytes) == 20 &&
              offsetof(TxMessage, mbox) == 22 && offsetof(TxMessage, flags) == 23);

[[nodiscard]] uint64_t key_of(const TxMessage& message) {
  uint64_t key = 0;
  std::memcpy(&key, reinterpret_cast<const uint8_t*>(&message) + offsetof(TxMessage, dest_id),
              sizeof key);
  return key;
}

// What TxFlags say, by their value.
struct FlagMeaning {
  uint32_t control;           // word of the descriptor, less the mailbox
  uint16_t segment_bytes;     // 0 if invalid
  uint16_t length_bytes_max;  // 0 if invalid, so that no length fits
};

constexpr FlagMeaning meaning_of(uint32_t flags) {
  const uint32_t size_code = flags >> TxFlags::kSsizeShift;
  const uint32_t ssize = size_code == 0 ? kSsize256 : kSsizeCodeBase + size_code;
  const uint32_t prio = flags & TxFlags::kPrioMask;
  if (ssize > kSsize256 || prio > kPrioMax) {
    return {0, 0, 0};
  }
  const uint32_t segment_bytes = regs::kSegmentBytesMax >> (kSsize256 - ssize);
  return {Control::op.put(static_cast<uint32_t>(regs::TxOp::kMessage)) |
              Control::order.put((flags & TxFlags::kOrder) != 0 ? 1 : 0) | Control::prio.put(prio) |
              Control::ssize.put(ssize),
          static_cast<uint16_t>(segment_bytes),
          static_cast<uint16_t>(segment_bytes * regs::kSegmentsMax)};
}

constexpr uint32_t kSpecialFlags = TxFlags::kInline | TxFlags::kDoorbell;

// @param no_lengths flags with which no length fits.
constexpr std::array<FlagMeaning, 256> make_meanings(uint32_t no_lengths) {
  std::array<FlagMeaning, 256> meanings{};
  for (uint32_t flags = 0; flags < meanings.size(); ++flags) {
    meanings[flags] = (flags & no_lengths) == 0 ? meaning_of(flags) : FlagMeaning{0, 0, 0};
  }
  return meanings;
}

using Meanings = std::array<FlagMeaning, 256>;
constexpr Meanings kMeanings = make_meanings(0);
constexpr Meanings kMeaningsByAddress = make_meanings(kSpecialFlags);

// Control word of a message. @return false if the card cannot take it; refusal() says why.
[[nodiscard, gnu::always_inline]] inline bool control_of(const Meanings& meanings,
                                                         uint32_t length_bytes, uint32_t mbox,
                                                         uint32_t flags, uint32_t* control) {
  const FlagMeaning& meaning = meanings[flags];
  const uint32_t mboxes =
      length_bytes > meaning.segment_bytes ? regs::kMultiMailboxes : regs::kMailboxes;
  *control = meaning.control | mbox << Control::mbox.lsb;
  return length_bytes - 1 < meaning.length_bytes_max && mbox < mboxes;
}

constexpr uint32_t kKeyMboxShift = 48;  // of the mailbox in a key

// Header of a message by address. @return false if it is none, or the card cannot take it.
[[nodiscard]] bool header_of(const TxMessage& message, TxHeader* header) {
  uint32_t control = 0;
  if (!control_of(kMeaningsByAddress, message.length_bytes, 0, message.flags, &control)) {
    return false;
  }
  const bool several = message.length_bytes > kMeaningsByAddress[message.flags].segment_bytes;
  const uint64_t mboxes = several ? regs::kMultiMailboxes : regs::kMailboxes;
  const uint64_t mbox_mask = (mboxes - 1) << kKeyMboxShift;
  header->key = key_of(message) & ~(uint64_t{0xFF} << kKeyMboxShift);
  header->fixed = ~mbox_mask;
  header->control_dest = control | uint64_t{message.dest_id} << 32;
  header->length_bytes = message.length_bytes;
  return true;
}

// Messages by address that differ from the one that a header was made of by no more than mailbox,
// address and cookie; everything else is left to others. What is wrong with them is gathered.
struct Alike {
  const TxHeader& header;
  uint64_t keys = 0;
  uint64_t addrs = 0;

  // Writes entry and cookie, for good or, if right() says no, for nothing.
  [[gnu::always_inline]] void fill(const TxMessage& message, regs::TxDesc* entry,
                                   uint64_t* cookie) {
    const uint64_t mbox = key_of(message) ^ header.key;  // in its place, if nothing else differs
    const uint64_t iova = message.iova;
    const uint64_t whole_cookie = message.cookie;
    keys |= mbox;
    settle(keys);
    addrs |= iova;
    settle(addrs);
    const uint64_t control_dest = header.control_dest | mbox >> (kKeyMboxShift - Control::mbox.lsb);
    std::memcpy(entry, &control_dest, sizeof control_dest);
    std::memcpy(&entry->cookie, &whole_cookie, sizeof whole_cookie);  // upper half for a moment
    entry->length = header.length_bytes;
    entry->addr = iova;
    entry->aux = 0;
    *cookie = whole_cookie;
  }
  [[nodiscard, gnu::always_inline]] bool right(uint64_t misaligned) const {
    return (keys & header.fixed) == 0 && (addrs & misaligned) == 0;
  }
};

template <class Word>
[[nodiscard]] uint64_t load(const uint8_t* data) {
  Word word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

// 1 to 8 bytes, zeros behind, without reading further and without a call.
[[nodiscard]] inline uint64_t load_upto_8(const uint8_t* data, uint32_t length_bytes) {
  if (length_bytes >= 4) {  // two words that overlap
    return load<uint32_t>(data) |
           load<uint32_t>(data + length_bytes - 4) << 32 >> (8 * (8 - length_bytes));
  }
  const uint32_t half = length_bytes / 2;
  return load<uint8_t>(data) | load<uint8_t>(data + half) << (8 * half) |
         load<uint8_t>(data + length_bytes - 1) << (8 * (length_bytes - 1));
}

// 1 to 16 bytes, zeros behind.
inline void load_upto_16(const uint8_t* data, uint32_t length_bytes, uint64_t words[2]) {
  if (length_bytes <= 8) {
    words[0] = load_upto_8(data, length_bytes);
    words[1] = 0;
    return;
  }
  words[0] = load<uint64_t>(data);
  words[1] = load<uint64_t>(data + length_bytes - 8) >> (8 * (16 - length_bytes));
}

// A result is the cookie and the completion's second half as it is; the phase lands in the padding.
static_assert(sizeof(TxDone) == 16 && offsetof(TxDone, time_ticks) == 8 &&
              offsetof(TxDone, status) == 12 && offsetof(TxDone, retries) == 13 &&
              offsetof(regs::TxCpl, time) == 8 && offsetof(regs::TxCpl, status) == 12 &&
              regs::tx_cpl::Status::code.lsb == 0 && regs::tx_cpl::Status::retries.lsb == 8);

// For reap_burst(); sizes are the lengths in the descriptors.
struct TxReap {
  using Cpl = regs::TxCpl;
  using Done = TxDone;
  static uint32_t size(const uint32_t* sizes, size_t slot) {
    return sizes[slot * (sizeof(regs::TxDesc) / sizeof(uint32_t))];
  }
  using Raw = uint64_t;
  static Raw load(const Cpl& cpl) { return load_last_words(cpl); }
  static uint64_t last(Raw raw) { return raw; }
  static uint32_t bytes(Raw /*raw*/, uint32_t size) { return size; }
  static uint32_t misfit(Raw /*raw*/, uint32_t /*size*/) { return 0; }
  static void fill(const Cpl& /*cpl*/, Raw raw, Status /*status*/, uint64_t cookie, Done* out) {
    out->cookie = cookie;
    std::memcpy(reinterpret_cast<uint8_t*>(out) + 8, &raw, sizeof raw);
  }
  static void spoil(Done* /*out*/) {}
};

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
  queue->entries_ = static_cast<regs::TxDesc*>(queue->ring_.entries());
  queue->sizes_ = &queue->entries_->length;
  queue->addr_misaligned_ = caps.tx_addr_align - 1;
  queue->send_hook_ = bus.send_hook(config.qp);
  queue->inline_bytes_max_ = std::min(caps.inline_bytes, regs::kInlineBytes);
  queue->wide_ = caps.wide;
  // Any message that is right will do; from now on the header always belongs to one.
  const TxMessage first = {
      .iova = 0, .cookie = 0, .dest_id = 0, .length_bytes = 8, .mbox = 0, .flags = 0};
  if (!header_of(first, &queue->header_)) {
    return -EINVAL;
  }
  *out = std::move(queue);
  return 0;
}

Reject TxQueue::refusal(uint32_t length_bytes, uint32_t flags) {
  const FlagMeaning& meaning = kMeanings[flags];
  if (meaning.length_bytes_max == 0) {
    return Reject::kOperation;
  }
  return length_bytes - 1 >= meaning.length_bytes_max ? Reject::kLength : Reject::kMailbox;
}

uint32_t TxQueue::post_run(const TxMessage* messages, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::TxDesc* const entries = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  const uint64_t misaligned = addr_misaligned_;
  TxHeader header = header_;
  size_t k = 0;
  while (k < n) {
    const size_t before = k;
    for (; k + 8 <= n; k += 8) {
      Alike eight{header};
#pragma GCC unroll 8
      for (size_t i = 0; i < 8; ++i) {
        eight.fill(messages[k + i], &entries[k + i], &cookies[k + i]);
      }
      if (!eight.right(misaligned)) {
        break;  // one by one, again
      }
    }
    for (; k < n; ++k) {
      Alike one{header};
      one.fill(messages[k], &entries[k], &cookies[k]);
      if (!one.right(misaligned)) {
        break;
      }
    }
    // Another destination, length or flags: a new header.
    if (k == n || !header_of(messages[k], &header)) {
      break;
    }
    if (k == before) {  // not even one: does it fit its own header?
      Alike one{header};
      one.fill(messages[k], &entries[k], &cookies[k]);
      if (!one.right(misaligned)) {
        break;
      }
    }
  }
  header_ = header;
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
}

uint16_t TxQueue::burst(const TxMessage* messages, uint16_t n) {
  begin_post();
  count_slots();
  const uint32_t head_before = window_.head();
  uint32_t done = 0;
  while (done < n) {
    if ((messages[done].flags & kSpecialFlags) == 0) {
      done += post_run(messages + done, std::min(n - done, window_.room_in_a_row()));
    }
    if (done == n || !post_any(messages[done])) {
      break;
    }
    ++done;
  }
  ring_doorbell(head_before);
  slots_counted_ = window_.head();
  send_hook_();
  return static_cast<uint16_t>(done);
}

uint16_t TxQueue::burst_gather(const TxGather* messages, uint16_t n) {
  begin_post();
  count_slots();
  const uint32_t head_before = window_.head();
  uint32_t done = 0;
  while (done < n && post_gather(messages[done])) {
    ++done;
  }
  ring_doorbell(head_before);
  slots_counted_ = window_.head();
  send_hook_();
  return static_cast<uint16_t>(done);
}

bool TxQueue::post_any(const TxMessage& message) {
  const uint32_t flags = message.flags;
  uint32_t length_bytes = message.length_bytes;
  uint32_t control = 0;
  if (window_.room() == 0) {
    return false;
  }
  if ((flags & TxFlags::kDoorbell) != 0) {
    const uint32_t prio = flags & TxFlags::kPrioMask;
    if (prio > kPrioMax || message.info > 0xFFFFu) {
      return refuse(prio > kPrioMax ? Reject::kOperation : Reject::kLength);
    }
    control = Control::op.put(static_cast<uint32_t>(regs::TxOp::kDoorbell)) |
              Control::prio.put(prio) | Control::ssize.put(kSsize256) | Control::inline_.put(1);
    length_bytes = kDoorbellBytes;
  } else if (!control_of(kMeanings, length_bytes, message.mbox, flags, &control)) {
    return refuse(refusal(length_bytes, flags));
  }
  uint64_t words[2] = {message.iova, 0};  // the address, or the doorbell's information
  if ((flags & kSpecialFlags) == TxFlags::kInline) {
    if (length_bytes > inline_bytes_max_) {
      return post_wide_inline(message, control);
    }
    load_upto_16(static_cast<const uint8_t*>(message.data), length_bytes, words);
    control |= Control::inline_.put(1);
  } else if ((flags & kSpecialFlags) == 0 && (message.iova & addr_misaligned_) != 0) {
    return refuse(Reject::kAlignment);
  }
  const uint32_t slot = window_.head() & window_.mask();
  const uint64_t cookie = message.cookie;
  entries_[slot] = {control,      message.dest_id, static_cast<uint32_t>(cookie),
                    length_bytes, words[0],        words[1]};
  window_.cookies()[slot] = cookie;
  window_.post(1);
  return true;
}

bool TxQueue::post_wide_inline(const TxMessage& message, uint32_t control) {
  const uint32_t length_bytes = message.length_bytes;
  if (!wide_ || length_bytes > regs::kWideInlineBytes) {
    return refuse(Reject::kLength);
  }
  if (window_.room() < 2) {
    return false;
  }
  uint64_t words[6] = {};
  const auto* const data = static_cast<const uint8_t*>(message.data);
  for (uint32_t at = 0; at < length_bytes; at += 16) {
    load_upto_16(data + at, std::min(length_bytes - at, 16u), &words[at / 8]);
  }
  const uint32_t slot = window_.head() & window_.mask();
  entries_[slot] = {control | Control::inline_.put(1) | Control::wide.put(1),
                    message.dest_id,
                    static_cast<uint32_t>(message.cookie),
                    length_bytes,
                    words[0],
                    words[1]};
  std::memcpy(&entries_[(slot + 1) & window_.mask()], &words[2], sizeof(regs::TxWide));
  window_.cookies()[slot] = message.cookie;
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
  if (!control_of(kMeanings, sum_bytes, message.mbox, message.flags, &control)) {
    return refuse(refusal(sum_bytes, message.flags));
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

int TxQueue::use_slots(uint8_t* va, uint64_t iova, uint32_t stride_bytes) {
  if (va == nullptr || stride_bytes < regs::kMessageBytesMax ||
      ((iova | stride_bytes) & addr_misaligned_) != 0) {
    return -EINVAL;
  }
  slots_va_ = va;
  slots_iova_minus_va_ = iova - reinterpret_cast<uintptr_t>(va);
  slot_stride_ = stride_bytes;
  slot_tail_ = bar_.word_to_write(tail_offset_);
  slot_hook_ = send_hook_;
  if (slot_tail_ == nullptr) {
    slot_tail_ = &nowhere_;
    slot_hook_ = {&write_and_hook, this};
  } else if (slot_hook_.fn == nullptr) {
    slot_hook_.fn = [](void* /*ctx*/) noexcept {};  // so that the hot path need not ask
  }
  slots_counted_ = window_.head();
  return 0;
}

/// Each slot that was posted since has had a doorbell of its own.
void TxQueue::count_slots() {
  if (slot_tail_ != &nowhere_) {
    bar_.count_writes(window_.head() - slots_counted_);
    slots_counted_ = window_.head();
  }
}

void TxQueue::write_and_hook(void* queue) noexcept {
  auto* const self = static_cast<TxQueue*>(queue);
  self->bar_.write32(self->tail_offset_, self->window_.head());
  self->send_hook_();
}

uint32_t TxQueue::settle() {
  count_slots();
  if (!ready()) {
    hook_();
  }
  const uint32_t n = settle_run();
  const bool at_wrap =
      (window_.oldest() & window_.mask()) == 0 || (cursor_.consumed & cursor_.mask) == 0;
  return n != 0 && at_wrap ? n + settle_run() : n;
}

uint32_t TxQueue::settle_run() {
  constexpr uint32_t kTogether = 8;
  const uint32_t n = std::min(cursor_.to_wrap(), window_.plain_in_a_row());
  const auto* cpl = cursor_.at<regs::TxCpl>();
  uint32_t index = window_.oldest();
  const regs::TxDesc* entry = entries_ + (index & window_.mask());
  const uint32_t flip = cursor_.flip();
  // What is not plain about the completion `i` ahead, in the bits of the last word and in the
  // index.
  const auto wrong = [&](uint32_t i) {
    const uint32_t last = dma_load_last_word(&cpl[i].status) ^ flip;
    tsan_acquire(&cpl[i].status);
    if (kThreadSanitizer && (last & kPhaseBit) != 0) {
      return last;
    }
    return (last & (kPhaseBit | kCodeMask)) | (cpl[i].index ^ (index + i));
  };
  uint64_t bytes = 0;
  uint32_t k = 0;
  const auto pass = [&](uint32_t count) {
    cpl += count;
    entry += count;
    index += count;
    k += count;
  };
  while (k + kTogether <= n && wrong(kTogether - 1) == 0) {  // mostly the last is not there yet
    uint32_t last_words = 0;
    uint32_t indices = 0;
    uint32_t sum = 0;
#pragma GCC unroll 8
    for (uint32_t i = 0; i < kTogether; ++i) {
      last_words |= dma_load_last_word(&cpl[i].status) ^ flip;
      tsan_acquire(&cpl[i].status);
      indices |= cpl[i].index ^ (index + i);
      sum += entry[i].length;
      pmd::settle(last_words);
      pmd::settle(indices);
      pmd::settle(sum);
    }
    if (((last_words & (kPhaseBit | kCodeMask)) | indices) != 0) [[unlikely]] {
      break;
    }
    bytes += sum;
    pass(kTogether);
  }
  while (k < n && wrong(0) == 0) {
    bytes += entry->length;
    pass(1);
  }
  cursor_.consumed += k;
  window_.complete_in_order(k);
  stats_.messages.add(k);
  stats_.bytes.add(bytes);
  return k;
}

uint16_t TxQueue::reap(TxDone* out, uint16_t n) {
  return reap_burst<TxReap>(out, n);
}

}  // namespace rio::pmd
