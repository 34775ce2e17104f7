/// @file
/// Transmit queue: type 11 messages and type 10 doorbells.
#pragma once

#include <cstdint>
#include <cstring>

#include "pmd/dev/queue_base.hpp"

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

/// What a descriptor says beside address and cookie. Kept of the message sent last, since the next
/// one is mostly like it.
struct TxHeader {
  uint64_t key;           ///< dest_id, length and flags as they lie in TxMessage; mailbox 0
  uint64_t fixed;         ///< bits of the key that another message may not differ in
  uint64_t control_dest;  ///< first two words of the descriptor
  uint32_t length_bytes;
};

/// Sends. All functions belong to one thread, which may change while nobody is in a function.
/// [S0]; regs: tx_desc, tx_cpl; RIO Part 2 §2.3.1.
class alignas(64) TxQueue : public PostingQueue {
 public:
  /// Start the ring. Control path. @param bus outlives the queue. @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<TxQueue>* out);

  /// Post messages, with one BAR write if there were any, then call the poll hook. The bytes of a
  /// message by address belong to the card until its TxDone; inline bytes are copied.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next message
  /// is one that the card cannot take (last_reject() says why; it is counted).
  uint16_t burst(const TxMessage* messages, uint16_t n);
  /// The same for messages in several places. @return 0, rejected, where Caps::wide is false.
  uint16_t burst_gather(const TxGather* messages, uint16_t n);
  /// A burst of both kinds, with one BAR write: begin_stage(), then any of the two, then
  /// end_burst() with what begin_stage() returned. Nothing else of the queue is called meanwhile
  /// but what asks for room.
  [[nodiscard]] uint32_t begin_stage();
  /// @return as burst().
  uint16_t stage(const TxMessage* messages, uint16_t n);
  /// @return false: not taken, as of burst_gather().
  [[nodiscard]] bool stage_gather(const TxGather& message);
  void end_burst(uint32_t head_before);
  /// Hot. stage() of one message that is known to be good, which is not checked here, nor whether
  /// there is room. @param words slot_words(). @param iova aligned.
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
  /// Give each entry of the ring a place of its own for the bytes, so that who sends short messages
  /// writes them where the card reads them, and has nothing to keep account of. Control path.
  /// @param va, iova of the first place, aligned as Caps::tx_addr_align says, the caller's as long
  /// as the queue. @param stride_bytes from one to the next, at least regs::kMessageBytesMax,
  /// aligned likewise. From now on only this process may post. @return 0, -EINVAL.
  [[nodiscard]] int use_slots(uint8_t* va, uint64_t iova, uint32_t stride_bytes);
  /// Hot. Whether more than `spare` entries are free.
  [[nodiscard]] bool has_room(uint32_t spare) const { return window_.room() > spare; }
  /// Hot. The place of the entry that is posted next. Room is to be asked for before.
  [[nodiscard]] uint8_t* slot_va() const { return slot_va(window_.head()); }
  /// The place of an entry that was posted, or is next. @param index free-running.
  [[nodiscard]] uint8_t* slot_va(uint32_t index) const {
    return slots_va_ + uint64_t{index & window_.mask()} * slot_stride_;
  }
  /// Destination and length of the message that was posted there last. @param index free-running.
  [[nodiscard]] uint32_t slot_dest_id(uint32_t index) const {
    return entries_[index & window_.mask()].dest_id;
  }
  /// Whether an entry was posted by send_slot(), so that its slot holds the bytes. @param index
  /// free-running.
  [[nodiscard]] bool is_slot(uint32_t index) const {
    return entries_[index & window_.mask()].addr ==
           reinterpret_cast<uintptr_t>(slot_va(index)) + slots_iova_minus_va_;
  }
  [[nodiscard]] uint32_t slot_bytes(uint32_t index) const {
    return entries_[index & window_.mask()].length;
  }
  /// Free-running index of the entry that is posted next.
  [[nodiscard]] uint32_t next_index() const { return window_.head(); }
  /// Of the oldest entry whose place is not free; next_index() if all are.
  [[nodiscard]] uint32_t oldest_index() const { return window_.oldest(); }
  /// Whether the card has not completed that entry. @param index from oldest_index() on, below
  /// next_index().
  [[nodiscard]] bool is_out(uint32_t index) const { return window_.is_out(index); }

  /// The first words of a descriptor that is posted by send_slot(). What is known before the
  /// message is may be put together then: mailboxes add up. @param dest_id, mbox as TxMessage says.
  [[nodiscard]] static uint64_t slot_words(uint32_t dest_id, uint32_t mbox) {
    return kSlotControl | slot_mbox(mbox) | uint64_t{dest_id} << 32;
  }
  [[nodiscard]] static uint32_t slot_mbox(uint32_t mbox) {
    return mbox << regs::tx_desc::Control::mbox.lsb;
  }
  /// Hot. Post what was written to slot_va(), with one BAR write, and call the card's hook. There
  /// is room; words and length are good, which is not checked here. Segments have 256 bytes,
  /// priority 0. The cookie of its TxDone is the index of its entry. @param va slot_va().
  void send_slot(const uint8_t* va, uint64_t words, uint32_t length_bytes) {
    send_slot(next_slot(), va, words, length_bytes);
  }
  /// Where the next entry is, for who needs it more than once.
  struct Slot {
    uint32_t index;  ///< free-running
    uint32_t at;     ///< in the ring
  };
  [[nodiscard]] Slot next_slot() const { return {window_.head(), window_.head() & window_.mask()}; }
  [[nodiscard]] uint8_t* slot_va(const Slot& slot) const {
    return slots_va_ + uint64_t{slot.at} * slot_stride_;
  }
  /// The same. @param slot next_slot(). @param va of the slot.
  void send_slot(const Slot& slot, const uint8_t* va, uint64_t words, uint32_t length_bytes) {
    // As words: the card's model loads words, and would wait for stores of another size.
    const uint64_t cookie_length = uint64_t{length_bytes} << 32;
    regs::TxDesc* const entry = &entries_[slot.at];
    std::memcpy(entry, &words, sizeof(words));
    std::memcpy(&entry->cookie, &cookie_length, sizeof(cookie_length));
    entry->addr = reinterpret_cast<uintptr_t>(va) + slots_iova_minus_va_;
    entry->aux = 0;
    window_.cookies()[slot.at] = slot.index;
    window_.post(1);
    // Doorbell: as in ring_doorbell().
    Mmio::write_word(slot_tail_, slot.index + 1);
    slot_hook_.fn(slot_hook_.ctx);
  }
  /// Hot. Pass over completions of messages that were delivered, in the order of their entries;
  /// what comes then, if anything, is for reap(). Calls the poll hook once, and looks again, when
  /// there is nothing. @return how many were passed over.
  uint32_t settle();
  /// Hot. Whether there is a completion.
  [[nodiscard]] bool ready() const { return cursor_.ready<regs::TxCpl>(); }

  /// Fetch what became of messages, in the order of completion. Calls the poll hook once, and looks
  /// again, when there is nothing. @return how many, 0 to `n`.
  uint16_t reap(TxDone* out, uint16_t n);

 private:
  TxQueue() = default;
  friend SharedPtr<TxQueue> make_shared_object<TxQueue>(Bus&);
  uint32_t settle_run();
  void count_slots();
  [[nodiscard]] uint32_t post_all(const TxMessage* messages, uint32_t n);
  static void write_and_hook(void* queue) noexcept;
  [[nodiscard]] uint32_t post_run(const TxMessage* messages, size_t n);
  [[nodiscard]] bool post_any(const TxMessage& message);
  [[nodiscard]] bool post_wide_inline(const TxMessage& message, uint32_t control);
  [[nodiscard]] bool post_gather(const TxGather& message);
  [[nodiscard]] static Reject refusal(uint32_t length_bytes, uint32_t flags);

  // The specification's code of 256-byte segments, RIO Part 2 §4.1.5.
  static constexpr uint32_t kSlotControl = regs::tx_desc::Control::ssize.put(14);

  TxHeader header_{};
  PollHook send_hook_;
  // Constant.
  regs::TxDesc* entries_ = nullptr;
  uint64_t addr_misaligned_ = 0;  // bits that must be 0 in an address
  uint32_t inline_bytes_max_ = 0;
  uint32_t slot_stride_ = 0;
  uint8_t* slots_va_ = nullptr;
  uint64_t slots_iova_minus_va_ = 0;
  // Doorbell of send_slot(). Where each write of a BAR has to be seen, the word is nowhere_ and the
  // hook writes.
  volatile uint32_t* slot_tail_ = nullptr;
  PollHook slot_hook_;
  uint32_t nowhere_ = 0;
  uint32_t slots_counted_ = 0;  // head when the writes of send_slot() were counted last
  bool wide_ = false;
};

}  // namespace rio::pmd
