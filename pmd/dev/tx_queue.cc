#include "pmd/dev/tx_queue.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

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
    tx::fill_entry(header, mbox, iova, 0, entry);
    *cookie = whole_cookie;
  }
  [[nodiscard, gnu::always_inline]] bool right(uint64_t misaligned) const {
    return (keys & header.fixed) == 0 && (addrs & misaligned) == 0;
  }
};

}  // namespace

int TxQueue::create(Bus& bus, const Caps& caps, const RingConfig& config, SharedPtr<TxQueue>* out) {
  return make_queue(bus, out, [&](TxQueue& queue) {
    queue.addr_misaligned_ = caps.tx_addr_align - 1;
    queue.send_hook_ = bus.emulation().step_to_send_hook(config.qp);
    queue.inline_bytes_ = caps.inline_bytes;
    // An entry must find room even where as many units are skipped before it, less one.
    const uint32_t units = ((1u << config.log2) + 1) / 2;
    const uint32_t fitting_bytes =
        regs::kInlineBytes + (units - 1) * uint32_t{sizeof(regs::TxWide)};
    queue.inline_bytes_max_ = std::min(caps.inline_bytes_max(), fitting_bytes);
    queue.wide_ = caps.wide && units >= 2;
    // Start with any valid message, so that the header always belongs to one.
    const TxMessage first = {
        .iova = 0, .cookie = 0, .dest_id = 0, .length_bytes = 8, .mbox = 0, .flags = 0};
    const bool valid = tx::header_of(first, &queue.header_);
    // A length of 0 says that it is no message's header: a first inline one makes its own.
    queue.inline_header_ = {.key = 0, .fixed = ~uint64_t{0}, .control_dest = 0, .cookie_length = 0};
    int error =
        queue.start<regs::TxCpl>(bus, caps, config, &queue.entries_, caps.cumulative ? 1 : 0);
    error = error == 0 ? queue.prepare_tell(bus, caps) : error;
    return error != 0 || valid ? error : -EINVAL;
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

/// Posts inline messages of one unit, up to the first that is none.
uint32_t TxQueue::post_inline_run(const TxMessage* messages, size_t n) {
  size_t k = 0;
  while (k < n) {
    const TxHeader header = inline_header_;
    k += header.length_bytes() > sizeof(uint64_t) ? post_alike<true>(header, messages + k, n - k)
                                                  : post_alike<false>(header, messages + k, n - k);
    // Another destination, length or flags: make a new header. It may not fit its own message,
    // whose mailbox may be wrong.
    if (k == n || !tx::inline_header_of(messages[k], inline_bytes_, &inline_header_) ||
        ((tx::key_of(messages[k]) ^ inline_header_.key) & inline_header_.fixed) != 0) {
      break;
    }
  }
  return static_cast<uint32_t>(k);
}

/// Posts inline messages up to the first that differs from a header's message in more than mailbox,
/// bytes and cookie. @tparam kTwoWords they are longer than 8 bytes.
template <bool kTwoWords>
inline size_t TxQueue::post_alike(const TxHeader& header, const TxMessage* messages, size_t n) {
  const uint32_t slot = window_.head() & window_.mask();
  regs::TxDesc* const entries = entries_ + slot;
  uint64_t* const cookies = window_.cookies() + slot;
  const uint32_t length_bytes = header.length_bytes();
  const uint32_t shift = 8 * (16 - length_bytes);
  size_t k = 0;
  for (; k < n; ++k) {
    const TxMessage& message = messages[k];
    const uint64_t mbox = tx::key_of(message) ^ header.key;
    if ((mbox & header.fixed) != 0) {
      break;
    }
    const auto* const data = static_cast<const uint8_t*>(message.data);
    const uint64_t first =
        kTwoWords ? tx::load<uint64_t>(data) : tx::load_upto_8(data, length_bytes);
    const uint64_t second = kTwoWords ? tx::load<uint64_t>(data + length_bytes - 8) >> shift : 0;
    tx::fill_entry(header, mbox, first, second, &entries[k]);
    cookies[k] = message.cookie;
  }
  window_.post(static_cast<uint32_t>(k));
  return k;
}

inline uint32_t TxQueue::post_all(const TxMessage* messages, uint32_t n) {
  uint32_t done = 0;
  while (done < n) {
    const uint32_t special = messages[done].flags & tx::kSpecialFlags;
    if (special == 0) {
      done += post_run(messages + done, std::min(n - done, window_.room_in_a_row()));
    } else if (special == TxFlags::kInline) {
      done += post_inline_run(messages + done, std::min(n - done, window_.room_in_a_row()));
    }
    if (done == n || !post_slow(messages[done])) {
      break;
    }
    ++done;
  }
  return done;
}

/// Posts an inline message that is like the inline one before it. @return false: nothing was done.
[[gnu::always_inline]] inline bool TxQueue::post_inline(const TxMessage& message) {
  const uint64_t mbox = tx::key_of(message) ^ inline_header_.key;
  const uint32_t length_bytes = inline_header_.length_bytes();
  const uint32_t head = window_.head();
  if ((mbox & inline_header_.fixed) != 0 || length_bytes == 0 || !may_post(head)) {
    return false;
  }
  uint64_t words[2];
  tx::load_upto_16(static_cast<const uint8_t*>(message.data), length_bytes, words);
  const uint32_t slot = head & window_.mask();
  window_.cookies()[slot] = message.cookie;
  tx::fill_entry(inline_header_, mbox, words[0], words[1], &entries_[slot]);
  end_one(head);
  return true;
}

/// Not inlined, so that a burst of one saves no registers.
[[gnu::noinline]] uint16_t TxQueue::burst_run(const TxMessage* messages, uint32_t n) {
  if (n == 1) {
    return post_inline(*messages) ? uint16_t{1} : post_alone(messages);
  }
  const uint32_t head_before = begin_stage();
  const uint32_t done = post_all(messages, n);
  end_burst(head_before);
  return static_cast<uint16_t>(done);
}

/// Posts a single message of any kind, and lets those that follow take the short path.
[[gnu::noinline]] uint16_t TxQueue::post_alone(const TxMessage* message) {
  const uint32_t head_before = begin_stage();
  const uint32_t done = post_all(message, 1);
  end_burst(head_before);
  renew_singles();
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

/// Not inlined, so that reaping one message saves no registers.
[[gnu::noinline]] uint16_t TxQueue::reap_run(TxDone* out, uint32_t n) {
  if (!ready()) {
    if (n == 0) {
      return 0;
    }
    hook_();
    if (!ready()) {
      if (n == 1) {
        count_slots();
      }
      return 0;
    }
    if (n == 1 && reap_next(out)) {
      return 1;
    }
  }
  return reap_ready(out, n);
}

/// Not inlined, so that an empty poll saves no registers.
[[gnu::noinline]] uint16_t TxQueue::reap_ready(TxDone* out, uint32_t n) {
  const uint64_t* const cookies = window_.cookies() + (window_.oldest() & window_.mask());
  uint32_t given = take_single(n, [&](size_t i, uint32_t time) {
    out[i] = {.cookie = cookies[i], .time_ticks = time, .status = Status::kOk, .retries = 0};
  });
  while (given < n && window_.outstanding() != 0) {
    uint32_t time = 0;
    const uint32_t of = delivered(&time);
    if (of != 0) [[likely]] {
      const uint32_t count = std::min(of, n - given);
      const uint32_t first =
          std::min(count, window_.mask() + 1 - (window_.oldest() & window_.mask()));
      uint64_t bytes = report(out + given, window_.oldest(), first, time);
      if (first != count) {
        bytes += report(out + given + first, window_.oldest() + first, count - first, time);
      }
      pass_delivered(count, of, bytes);
      given += count;
    } else if (ready()) {
      given += report_slow(out + given, n - given);
    } else {
      break;
    }
  }
  if (n == 1) {
    renew_singles();
  } else {
    end_next();
  }
  return static_cast<uint16_t>(given);
}

/// Says for how many messages bursts of one may take their short paths: as long as there is room,
/// up to the end of the completions' lap, and to index ~0, which looks like one that the card has
/// not written.
[[gnu::noinline]] void TxQueue::renew_singles() {
  const bool plain = (window_.marked() | reported_) == 0;
  const uint32_t most = plain ? std::min(cursor_.to_wrap(), ~window_.oldest()) : 0;
  const uint32_t outstanding = std::min(window_.used(), most);
  next_ = reinterpret_cast<uintptr_t>(cursor_.at<regs::TxCpl>());
  next_end_ = next_ + outstanding * sizeof(regs::TxCpl);
  next_flip_ = uint64_t{cursor_.flip()} << 32;
  const bool can_post = tail_word_ != nullptr && last_reject_ == Reject::kNone;
  const uint32_t room = std::min(window_.room(), most - outstanding);
  post_end_ = window_.head() + (can_post ? room : 0);
}

/// Reports delivered messages whose slots do not wrap. @return their bytes.
inline uint64_t TxQueue::report(TxDone* out, uint32_t index, uint32_t count, uint64_t time) const {
  static_assert(static_cast<uint32_t>(Status::kOk) == 0 && offsetof(TxDone, status) == 12);
  const uint32_t slot = index & window_.mask();
  const uint64_t* cookies = window_.cookies() + slot;
  const regs::TxDesc* entries = entries_ + slot;
  uint64_t bytes = 0;
  const auto one = [&](size_t i) {
    const uint64_t cookie = cookies[i];
    bytes += entries[i].length;
    keep_in_register(bytes);
    out[i].cookie = cookie;
    std::memcpy(&out[i].time_ticks, &time, sizeof time);  // status and retries, too
  };
  for (; count >= 8; count -= 8, cookies += 8, entries += 8, out += 8) {
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; ++i) {
      one(i);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    one(i);
  }
  return bytes;
}

/// Notes that an entry has completed. @param entry replaced if it was set aside. @return false: no
/// such entry is outstanding.
inline bool TxQueue::complete(uint32_t index, EntryWindow::Straggler* entry) {
  if (window_.complete(index)) {
    set_aside(index);
    return true;
  }
  if (window_.complete_straggler(index, entry)) {
    free_place(index);
    return true;
  }
  return false;
}

/// Reports any completion that is there: out of order, failed, of an entry that was set aside, or
/// nonsense, which is counted and dropped. @return how many messages, up to `limit`.
[[gnu::noinline]] uint32_t TxQueue::report_slow(TxDone* out, uint32_t limit) {
  using Last = regs::tx_cpl::Status;
  const auto cpl = load_whole<1>(cursor_.at<regs::TxCpl>(), [this](const regs::TxCpl& seen) {
    return window_.has(seen.index) || window_.is_straggler(seen.index);
  });
  const uint32_t more = Last::more.get(cpl.status);
  const auto code = static_cast<Status>(Last::code.get(cpl.status));
  const uint32_t newest = cpl.index;
  const auto give = [&](uint64_t cookie, uint32_t bytes, bool is_newest) {
    const Status status = is_newest ? code : Status::kOk;
    *out++ = {.cookie = cookie,
              .time_ticks = cpl.time,
              .status = status,
              .retries = static_cast<uint8_t>(is_newest ? Last::retries.get(cpl.status) : 0)};
    stats_.messages.add(status == Status::kOk ? 1 : 0);
    stats_.bytes.add(status == Status::kOk ? bytes : 0);
    stats_.failed.add(status == Status::kOk ? 0 : 1);
  };
  uint32_t index = newest;
  uint32_t given = 0;
  uint32_t left = more + 1 - reported_;
  bool good = reported_ <= more && (more == 0 || code == Status::kOk) &&
              window_.find_before(newest, left - 1, &index);
  while (good && left != 0 && given < limit) {
    const size_t slot = index & window_.mask();
    const uint32_t next = window_.next(index);
    EntryWindow::Straggler entry = {window_.cookies()[slot], index, entries_[slot].length};
    good = complete(index, &entry);
    if (!good) {
      break;
    }
    give(entry.cookie, entry.size, index == newest);
    index = next;
    ++given;
    --left;
  }
  stats_.bad_completions.add(good ? 0 : 1);
  reported_ += given;
  if (!good || left == 0) {
    reported_ = 0;
    cursor_.consume<regs::TxCpl>();
  }
  return given;
}

}  // namespace rio::pmd
