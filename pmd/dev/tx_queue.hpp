/// @file
/// Transmit queue: type 11 messages and type 10 doorbells.
#pragma once

#include <cstdint>
#include <cstring>

#include "pmd/dev/tx_header.hpp"
#include "pmd/dev/tx_slots.hpp"

namespace rio::pmd {

/// A message gathered from two to four places. Takes two entries of the ring. Needs Caps::wide.
struct TxGather {
  uint64_t cookie;                          ///< comes back in TxDone, any value
  uint64_t iova[regs::kWideAddrs];          ///< aligned as Caps::tx_addr_align says
  uint16_t length_bytes[regs::kWideAddrs];  ///< each at least 1; multiples of 8 but for the last
  uint32_t dest_id;                         ///< destination
  uint8_t count;                            ///< places, 2 to 4
  uint8_t mbox;                             ///< as in TxMessage
  uint8_t flags;                            ///< TxFlags without kInline and kDoorbell
};

/// Sends. All functions belong to one thread, which may change while no thread is in a function.
/// [S0]; regs: tx_desc, tx_cpl; RIO Part 2 §2.3.1.
class alignas(64) TxQueue : public TxSlots {
 public:
  /// For create().
  explicit TxQueue(SharedKey /*key*/) {}
  /// Start the ring. Control path. @param bus outlives the queue. @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<TxQueue>* out);

  /// Post messages, with one BAR write if there were any, then call the poll hook. The bytes of a
  /// message by address belong to the card until its TxDone; inline bytes are copied. A burst of
  /// one message that is like the one before it, but for mailbox, bytes and cookie, has a short
  /// path of its own, as reap() of one has; both are inlined.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next message
  /// is one that the card cannot take (last_reject() says why; it is counted).
  uint16_t burst(const TxMessage* messages, uint16_t n) {
    return n == 1 && post_next(*messages) ? uint16_t{1} : burst_run(messages, n);
  }
  /// Post gathered messages, as burst() does. @return 0 if Caps::wide is false, or the ring has
  /// less than four entries; counted as rejected.
  uint16_t burst_gather(const TxGather* messages, uint16_t n);
  /// Begin a burst of both kinds with one BAR write: begin_stage(), then calls of stage() and
  /// stage_gather(), then end_burst() with begin_stage()'s result. In between only functions that
  /// ask for room may be called.
  [[nodiscard]] uint32_t begin_stage() {
    begin_post();
    count_slots();
    return window_.head();
  }
  /// Add messages to the burst. @return as burst().
  uint16_t stage(const TxMessage* messages, uint16_t n);
  /// Add a gathered message to the burst. @return false: not taken, as by burst_gather().
  [[nodiscard]] bool stage_gather(const TxGather& message);
  void end_burst(uint32_t head_before) {
    if (window_.head() != head_before) {
      tell_card();
    }
    slots_counted_ = window_.head();
    end_posts();
    send_hook_();
  }
  /// Hot. Like stage() for one valid message; neither it nor the room is checked. @param words
  /// slot_words(). @param iova aligned.
  void stage_good(uint64_t words, uint32_t length_bytes, uint64_t iova, uint32_t cookie) {
    const uint32_t slot = window_.head() & window_.mask();
    const uint64_t cookie_length = uint64_t{length_bytes} << 32;
    regs::TxDesc* const entry = &entries_[slot];
    std::memcpy(entry, &words, sizeof(words));
    std::memcpy(&entry->cookie, &cookie_length, sizeof(cookie_length));
    entry->addr = iova;
    entry->aux = 0;
    window_.cookies()[slot] = cookie;
    window_.post(1);
  }
  /// Fetch the fate of messages, in the order of completion. Calls the poll hook once, and looks
  /// again, when there is nothing. @return how many, 0 to `n`.
  uint16_t reap(TxDone* out, uint16_t n) {
    return n == 1 && reap_next(out) ? uint16_t{1} : reap_run(out, n);
  }

 private:
  [[nodiscard]] bool post_next(const TxMessage& message);
  void end_one(uint32_t head);
  [[nodiscard]] bool post_inline(const TxMessage& message);
  [[nodiscard]] uint16_t post_alone(const TxMessage* message);
  [[nodiscard]] uint16_t burst_run(const TxMessage* messages, uint32_t n);
  [[nodiscard]] bool reap_next(TxDone* out);
  [[nodiscard]] uint16_t reap_run(TxDone* out, uint32_t n);
  [[nodiscard]] uint16_t reap_ready(TxDone* out, uint32_t n);
  void renew_singles();
  [[nodiscard]] uint64_t report(TxDone* out, uint32_t index, uint32_t count, uint64_t time) const;
  [[nodiscard]] bool complete(uint32_t index, EntryWindow::Straggler* entry);
  [[nodiscard]] uint32_t report_slow(TxDone* out, uint32_t limit);
  [[nodiscard]] uint32_t post_all(const TxMessage* messages, uint32_t n);
  [[nodiscard]] uint32_t post_run(const TxMessage* messages, size_t n);
  [[nodiscard]] uint32_t post_inline_run(const TxMessage* messages, size_t n);
  template <bool kTwoWords>
  [[nodiscard]] size_t post_alike(const TxHeader& header, const TxMessage* messages, size_t n);
  [[nodiscard]] bool post_slow(const TxMessage& message);
  [[nodiscard]] bool post_long_inline(const TxMessage& message, uint32_t control);
  [[nodiscard]] bool make_room(uint32_t units);
  [[nodiscard]] static Reject refusal(uint32_t length_bytes, uint32_t flags);

  uint64_t next_flip_ = 0;               // XORed to the last half of the completion at next_
  uint64_t next_time_end_ = kUnwritten;  // a completion's time is below; in memory, for one
                                         // instruction less
  TxHeader header_{};                    // of messages by address
  TxHeader inline_header_{};             // of inline messages in one unit
  // Constant once created.
  uint32_t inline_bytes_ = 0;      // in one unit
  uint32_t inline_bytes_max_ = 0;  // in several
  bool wide_ = false;
};

/// Posts a message by address that is like the one before it. The doorbell is counted by
/// count_slots(). @return false: nothing was done; use burst_run().
[[gnu::always_inline]] inline bool TxQueue::post_next(const TxMessage& message) {
  const uint64_t mbox = tx::key_of(message) ^ header_.key;
  const uint64_t iova = message.iova;
  const uint32_t head = window_.head();
  if (has_any(mbox, header_.fixed) || has_any(iova, addr_misaligned_) || !may_post(head))
      [[unlikely]] {
    return false;
  }
  const uint32_t slot = head & window_.mask();
  window_.cookies()[slot] = message.cookie;
  tx::fill_entry(header_, mbox, iova, 0, &entries_[slot]);
  end_one(head);
  return true;
}

/// Tells the card of one entry that was filled. @param head of the window, before it.
[[gnu::always_inline]] inline void TxQueue::end_one(uint32_t head) {
  window_.post(1);
  next_end_ += sizeof(regs::TxCpl);
  // Doorbell: entry visible before it; pairs as in ring_doorbell().
  Mmio::write_word(tail_word_, head + 1);
  send_hook_();
}

/// Takes the next completion if it is there, of the oldest message alone, and that was delivered.
[[gnu::always_inline]] inline bool TxQueue::reap_next(TxDone* out) {
  if (next_ >= next_end_ || (base::kThreadSanitizer && !ready())) [[unlikely]] {
    return false;
  }
  auto* const cpl = reinterpret_cast<regs::TxCpl*>(next_);
  base::tsan_acquire(&cpl->status);
  const uint32_t index = window_.oldest();
  if (load_word(&cpl->index) != index) [[unlikely]] {
    return false;
  }
  // In halves or less, as the emulated card stores it: a load of both would wait for the stores.
  const uint64_t time_status =
      __atomic_load_n(reinterpret_cast<const Half*>(cpl) + 1, __ATOMIC_RELAXED);
  dma_read_barrier();
  // Its status is 0 but for the phase, and the time is not all ones: not unwritten.
  const uint64_t time = time_status ^ next_flip_;
  if (time >= next_time_end_) [[unlikely]] {
    return false;
  }
  const uint32_t slot = index & window_.mask();
  static_assert(static_cast<uint32_t>(Status::kOk) == 0 && offsetof(TxDone, status) == 12);
  uint64_t cookie = window_.cookies()[slot];
  keep_in_register(cookie);  // gcc would make a vector of two words
  out->cookie = cookie;
  std::memcpy(&out->time_ticks, &time, sizeof time);  // status and retries, too
  // The index is that of no other entry for a long time: it need not be unwritten.
  __atomic_store_n(&cpl->time, kUnwritten, __ATOMIC_RELAXED);
  next_ += sizeof(regs::TxCpl);
  pass_plain(1, entries_[slot].length);
  return true;
}

}  // namespace rio::pmd
