/// @file
/// Transmit queue: type 11 messages and type 10 doorbells.
#pragma once

#include <cstdint>
#include <cstring>

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

/// The words of a descriptor beside address and cookie. Kept from the message sent last, since the
/// next one is usually like it.
struct TxHeader {
  uint64_t key;    ///< dest_id, length and flags as they lie in TxMessage; mailbox 0
  uint64_t fixed;  ///< bits of the key that must not differ between messages with this header
  uint64_t control_dest;  ///< first two words of the descriptor
  uint32_t length_bytes;
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
  /// message by address belong to the card until its TxDone; inline bytes are copied.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next message
  /// is one that the card cannot take (last_reject() says why; it is counted).
  uint16_t burst(const TxMessage* messages, uint16_t n);
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
    send_hook_();
  }
  /// Hot. Like stage() for one valid message; neither it nor the room is checked. @param words
  /// slot_words(). @param iova aligned.
  void stage_good(uint64_t words, uint32_t length_bytes, uint64_t iova, uint32_t cookie) {
    const uint32_t slot = window_.head() & window_.mask();
    const uint64_t cookie_length = uint64_t{length_bytes} << 32 | cookie;
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
  uint16_t reap(TxDone* out, uint16_t n);

 private:
  [[nodiscard]] uint16_t reap_ready(TxDone* out, uint32_t n);
  [[nodiscard]] uint64_t report(TxDone* out, uint32_t index, uint32_t count, uint64_t time) const;
  [[nodiscard]] bool complete(uint32_t index, EntryWindow::Straggler* entry);
  [[nodiscard]] uint32_t report_slow(TxDone* out, uint32_t limit);
  [[nodiscard]] uint32_t post_all(const TxMessage* messages, uint32_t n);
  [[nodiscard]] uint32_t post_run(const TxMessage* messages, size_t n);
  [[nodiscard]] bool post_slow(const TxMessage& message);
  [[nodiscard]] bool post_long_inline(const TxMessage& message, uint32_t control);
  [[nodiscard]] bool make_room(uint32_t units);
  [[nodiscard]] static Reject refusal(uint32_t length_bytes, uint32_t flags);

  TxHeader header_{};
  // Constant once created.
  uint32_t inline_bytes_ = 0;      // in one unit
  uint32_t inline_bytes_max_ = 0;  // in several
  bool wide_ = false;
};

}  // namespace rio::pmd
