#include "pmd/dev/tx_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "pmd/dev/reap.hpp"
#include "pmd/dev/tx_words.hpp"

namespace rio::pmd {
namespace {

using tx::Control;

// Fills entries for messages by address that differ from a header's message in mailbox, address and
// cookie only; other messages take post_slow(). Faults of the messages are ORed.
struct Alike {
  const TxHeader& header;
  uint64_t keys = 0;
  uint64_t addrs = 0;

  // Writes entry and cookie. If right() returns false, they are not used.
  [[gnu::always_inline]] void fill(const TxMessage& message, regs::TxDesc* entry,
                                   uint64_t* cookie) {
    const uint64_t mbox = tx::key_of(message) ^ header.key;  // the mailbox, if nothing else differs
    const uint64_t iova = message.iova;
    const uint64_t whole_cookie = message.cookie;
    keys |= mbox;
    keep_in_register(keys);
    addrs |= iova;
    keep_in_register(addrs);
    const uint64_t control_dest =
        header.control_dest | mbox >> (tx::kKeyMboxShift - Control::mbox.lsb);
    std::memcpy(entry, &control_dest, sizeof control_dest);
    std::memcpy(&entry->cookie, &whole_cookie,
                sizeof whole_cookie);  // the upper half is overwritten below
    entry->length = header.length_bytes;
    entry->addr = iova;
    entry->aux = 0;
    *cookie = whole_cookie;
  }
  [[nodiscard, gnu::always_inline]] bool right(uint64_t misaligned) const {
    return (keys & header.fixed) == 0 && (addrs & misaligned) == 0;
  }
};

static_assert(offsetof(TxDone, time_ticks) == 8 && offsetof(regs::TxCpl, time) == 8);

// For reap_burst(); sizes are the lengths in the descriptors.
struct TxReap : TailReap<regs::TxCpl, TxDone> {
  static uint32_t size(const uint32_t* sizes, size_t slot) {
    return sizes[slot * (sizeof(regs::TxDesc) / sizeof(uint32_t))];
  }
  static uint32_t bytes(Raw /*raw*/, uint32_t size) { return size; }
  static uint32_t misfit(Raw /*raw*/, uint32_t /*size*/) { return 0; }
  static void spoil(Done* /*out*/) {}
};

}  // namespace

int TxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config, SharedPtr<TxQueue>* out) {
  return make_queue(bus, out, [&](TxQueue& queue) {
    queue.addr_misaligned_ = caps.tx_addr_align - 1;
    queue.send_hook_ = bus.emulation().step_to_send_hook(config.qp);
    queue.inline_bytes_max_ = std::min(caps.inline_bytes, regs::kInlineBytes);
    queue.wide_ = caps.wide;
    // Start with any valid message, so that the header always belongs to one.
    const TxMessage first = {
        .iova = 0, .cookie = 0, .dest_id = 0, .length_bytes = 8, .mbox = 0, .flags = 0};
    const bool valid = tx::header_of(first, &queue.header_);
    const int error = queue.start<regs::TxCpl>(bus, caps, config, &queue.entries_);
    if (error != 0 || !valid) {
      return error != 0 ? error : -EINVAL;
    }
    queue.sizes_ = &queue.entries_->length;
    return 0;
  });
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
        break;  // the rest one by one
      }
    }
    for (; k < n; ++k) {
      Alike one{header};
      one.fill(messages[k], &entries[k], &cookies[k]);
      if (!one.right(misaligned)) {
        break;
      }
    }
    // Another destination, length or flags: make a new header.
    if (k == n || !tx::header_of(messages[k], &header)) {
      break;
    }
    header_ = header;
    if (k == before) {  // not even one: the message does not match its own header
      Alike one{header};
      one.fill(messages[k], &entries[k], &cookies[k]);
      if (!one.right(misaligned)) {
        break;
      }
    }
  }
  window_.post(static_cast<uint32_t>(k));
  return static_cast<uint32_t>(k);
}

inline uint32_t TxQueue::post_all(const TxMessage* messages, uint32_t n) {
  uint32_t done = 0;
  while (done < n) {
    if ((messages[done].flags & tx::kSpecialFlags) == 0) {
      done += post_run(messages + done, std::min(n - done, window_.room_in_a_row()));
    }
    if (done == n || !post_slow(messages[done])) {
      break;
    }
    ++done;
  }
  return done;
}

uint16_t TxQueue::burst(const TxMessage* messages, uint16_t n) {
  const uint32_t head_before = begin_stage();
  const uint32_t done = post_all(messages, n);
  end_burst(head_before);
  return static_cast<uint16_t>(done);
}

uint16_t TxQueue::burst_gather(const TxGather* messages, uint16_t n) {
  const uint32_t head_before = begin_stage();
  uint32_t done = 0;
  while (done < n && stage_gather(messages[done])) {
    ++done;
  }
  end_burst(head_before);
  return static_cast<uint16_t>(done);
}

uint16_t TxQueue::stage(const TxMessage* messages, uint16_t n) {
  return static_cast<uint16_t>(post_all(messages, n));
}

uint16_t TxQueue::reap(TxDone* out, uint16_t n) {
  return reap_burst<TxReap>(out, n);
}

}  // namespace rio::pmd
