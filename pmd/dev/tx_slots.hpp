/// @file
/// The part of the transmit queue that gives each entry of the ring a place for the bytes of its
/// message.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>

#include "pmd/dev/pusher.hpp"
#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Base of TxQueue; not used by itself. A sender of short messages writes them where the card reads
/// them, and keeps no account of buffers. All functions belong to one thread. regs: tx_desc,
/// tx_cpl.
class TxSlots : public PostingQueue {
 public:
  /// Give each entry of the ring a place for its message's bytes. Control path. From now on only
  /// this process may post. @param va, iova of the first place, aligned as Caps::tx_addr_align
  /// says; the caller's, and must outlive the queue. @param stride_bytes distance of places, at
  /// least regs::kMessageBytesMax, aligned alike. @param spares more places behind them: a message
  /// that is set aside (EntryWindow) keeps its place, and its slot gets a spare one. No more are
  /// set aside than there are spares; more than stragglers_max() are of no use. @return 0, -EINVAL,
  /// -ENOMEM.
  [[nodiscard]] int use_slots(uint8_t* va, uint64_t iova, uint32_t stride_bytes,
                              uint32_t spares = 0);
  /// Most entries that are set aside at a time.
  [[nodiscard]] uint32_t stragglers_max() const { return window_.stragglers_max(); }
  /// Hot. Whether more than `spare` entries are free.
  [[nodiscard]] bool has_room(uint32_t spare) const { return window_.room() > spare; }
  /// Hot. The place of the next entry. Check has_room() before.
  [[nodiscard]] uint8_t* slot_va() const { return places_[window_.head() & window_.mask()]; }
  /// The place of an entry that was posted. @param index free-running; here and below the entry is
  /// outstanding, or has completed last, or is one of the last lap.
  [[nodiscard]] uint8_t* slot_va(uint32_t index) const {
    const Aside* const aside = find_aside(index);
    return aside != nullptr ? aside->va : places_[index & window_.mask()];
  }
  /// The destination of an entry that was posted. @param index free-running.
  [[nodiscard]] uint32_t slot_dest_id(uint32_t index) const { return entry(index).dest_id; }
  /// Whether an entry was posted by send_slot(), so that its slot holds the bytes. @param index
  /// free-running.
  [[nodiscard]] bool is_slot(uint32_t index) const {
    return entry(index).addr == reinterpret_cast<uintptr_t>(slot_va(index)) + slots_iova_minus_va_;
  }
  [[nodiscard]] uint32_t slot_bytes(uint32_t index) const { return entry(index).length; }
  /// Free-running index of the entry that is posted next.
  [[nodiscard]] uint32_t next_index() const { return window_.head(); }
  /// Index of the oldest entry whose slot is not free; next_index() if all are free. Entries that
  /// were set aside are older.
  [[nodiscard]] uint32_t oldest_index() const { return window_.oldest(); }
  /// Whether the card has not completed that entry. @param index from oldest_index() on, below
  /// next_index().
  [[nodiscard]] bool is_out(uint32_t index) const { return window_.is_out(index); }
  /// Whether an entry was set aside, and the card has not completed it. @param index free-running.
  [[nodiscard]] bool is_straggler(uint32_t index) const { return window_.is_straggler(index); }
  /// Index of the entry that was set aside last; of the oldest one if there is none.
  [[nodiscard]] uint32_t last_aside() const {
    return window_.straggling() != 0 ? last_aside_ : window_.oldest();
  }
  /// Look at one of the places of entries that were set aside, at each call at the next one. @param
  /// index set to its entry. @return false: it has none that the card has not completed.
  [[nodiscard]] bool look_aside(uint32_t* index);
  /// Call `each(index)` for all entries that are set aside. With use_slots() only.
  template <class Each>
  void for_each_straggler(Each&& each) const {
    for (uint32_t i = 0; i < aside_count_; ++i) {
      if (asides_[i].is_out) {
        each(asides_[i].index);
      }
    }
  }

  /// The first words of a descriptor that send_slot() posts. Parts known before the message may be
  /// computed early: mailboxes add up. @param dest_id, mbox as in TxMessage.
  [[nodiscard]] static uint64_t slot_words(uint32_t dest_id, uint32_t mbox) {
    return kSlotControl | slot_mbox(mbox) | uint64_t{dest_id} << 32;
  }
  [[nodiscard]] static uint32_t slot_mbox(uint32_t mbox) {
    return mbox << regs::tx_desc::Control::mbox.lsb;
  }
  /// Hot. Post the message at slot_va(), with one BAR write, and call the card's hook. Neither
  /// room, words nor length is checked. Segments have 256 bytes, priority 0. The cookie of its
  /// TxDone is the index of its entry. @param va slot_va().
  void send_slot(const uint8_t* va, uint64_t words, uint32_t length_bytes) {
    send_slot(next_slot(), va, words, length_bytes);
  }
  /// The place of the next entry, for callers that need it more than once.
  struct Slot {
    uint32_t index;  ///< free-running
    uint32_t at;     ///< in the ring
  };
  [[nodiscard]] Slot next_slot() const { return {window_.head(), window_.head() & window_.mask()}; }
  [[nodiscard]] uint8_t* slot_va(const Slot& slot) const { return places_[slot.at]; }
  /// Like send_slot() above. @param slot next_slot(). @param va of the slot.
  void send_slot(const Slot& slot, const uint8_t* va, uint64_t words, uint32_t length_bytes) {
    // Written as words: the card's model loads words, and would wait for stores of another size.
    const uint64_t cookie_length = uint64_t{length_bytes} << 32;
    regs::TxDesc* const entry = &entries_[slot.at];
    std::memcpy(entry, &words, sizeof(words));
    std::memcpy(&entry->cookie, &cookie_length, sizeof(cookie_length));
    entry->addr = reinterpret_cast<uintptr_t>(va) + slots_iova_minus_va_;
    entry->aux = 0;
    window_.cookies()[slot.at] = slot.index;
    window_.post(1);
    // Doorbell: entry visible before it; pairs as in ring_doorbell().
    Mmio::write_word(slot_tail_, slot.index + 1);
    slot_hook_.fn(slot_hook_.ctx);
  }
  /// Hot. Consume completions of delivered messages, in the order of their entries; a failed or
  /// later one is left to reap(). Calls the poll hook once, and checks again, when there is
  /// nothing. @return how many were consumed.
  uint32_t skip_delivered();
  /// Hot. Whether there is a completion to consume.
  [[nodiscard]] bool ready() const { return cursor_.ready<regs::TxCpl>(); }

  /// Entries that were written into the card's slots, in push mode. Any thread. regs: push_slot
  [[nodiscard]] uint64_t pushed() const { return pusher_ != nullptr ? pusher_->pushed() : 0; }
  /// As PostingQueue::restart().
  [[nodiscard]] int restart();

 protected:
  TxSlots() = default;
  ~TxSlots() = default;

  /// Set aside the entries that a completed one has left far behind (EntryWindow); their slots get
  /// other places. @param completed its index.
  void set_aside(uint32_t completed) {
    while (window_.has_straggler(completed)) {
      set_oldest_aside();
    }
  }
  /// An entry that was set aside has completed. Its bytes stay until as many others were set aside
  /// as there are spares.
  void free_place(uint32_t index);

  /// Count the doorbells of send_slot() since the last call. Call it before each other doorbell.
  void count_slots() {
    if (slots_counted_ != window_.head()) {
      count_new_slots();
    }
  }

  /// Prepare tell_card(), once the ring runs. @return 0 or -ENOMEM.
  [[nodiscard]] int prepare_tell(Bus& bus, const Caps& caps);
  /// Tell the card of all posted entries: by the doorbell, or, in push mode, through slots.
  void tell_card() {
    if (tail_word_ != nullptr) [[likely]] {
      // Doorbell: entries visible before it; pairs as in ring_doorbell().
      Mmio::write_word(tail_word_, window_.head());
      bar_.count_writes(1);
    } else {
      tell_card_slow();
    }
  }

  /// The messages that the next completion still has to report, if they are the oldest ones, have
  /// one slot each, and were all delivered without a RETRY; a failed or later one is reap()'s.
  /// @param time set to the completion's. @return how many; 0: it is not so, or not there.
  [[nodiscard, gnu::always_inline]] uint32_t delivered(uint32_t* time) const {
    if (base::kThreadSanitizer && !ready()) {
      return 0;
    }
    const auto cpl = load_completion(cursor_.at<regs::TxCpl>());
    const uint32_t status = cpl.status ^ cursor_.flip();
    using Last = regs::tx_cpl::Status;
    if ((status & ~Last::more.mask()) != 0 || !is_written<1>(cpl)) {
      return 0;
    }
    const uint32_t count = Last::more.get(status) + 1 - reported_;
    *time = cpl.time;
    return cpl.index + 1 - window_.oldest() == count && count <= window_.plain() ? count : 0;
  }
  /// Hot. Take completions of one delivered message each, in the order of the entries, up to `n`,
  /// until either ring wraps. @param each called with the number of the message, from 0 on, and the
  /// completion's time. @return how many.
  template <class Each>
  [[gnu::always_inline]] uint32_t take_single(uint32_t n, const Each& each) {
    auto* const cpl = cursor_.at<regs::TxCpl>();
    const uint32_t flip = cursor_.flip();
    if (__atomic_load_n(&cpl->status, __ATOMIC_RELAXED) != flip || reported_ != 0) {
      return 0;
    }
    n = std::min({n, cursor_.to_wrap(), window_.plain_in_a_row()});
    const uint32_t index = window_.oldest();
    const regs::TxDesc* const entries = entries_ + (index & window_.mask());
    uint64_t bytes = 0;
    size_t k = 0;
    for (; k < n && (!base::kThreadSanitizer || is_there(cpl + k, flip)); ++k) {
      const auto seen = load_completion(cpl + k);
      if (seen.status != flip || seen.index != index + k || !is_written<1>(seen)) {
        break;
      }
      each(k, seen.time);
      bytes += entries[k].length;
      unwrite(cpl + k, flip);
    }
    pass_plain(static_cast<uint32_t>(k), bytes);
    return static_cast<uint32_t>(k);
  }
  /// Note that the `count` oldest messages of delivered() were consumed. @param of its result.
  /// @param bytes of these messages.
  void pass_delivered(uint32_t count, uint32_t of, uint64_t bytes) {
    window_.complete_in_order(count);
    reported_ += count;
    if (count == of) {
      reported_ = 0;
      cursor_.consume<regs::TxCpl>();
    }
    stats_.messages.add(count);
    stats_.bytes.add(bytes);
  }

  PollHook send_hook_;
  uint32_t reported_ = 0;  // messages of the next completion that were handed over
  // Constant once created.
  regs::TxDesc* entries_ = nullptr;
  uint64_t addr_misaligned_ = 0;            // bits that must be 0 in an address
  volatile uint32_t* tail_word_ = nullptr;  // doorbell; null: tell_card_slow() only
  uint32_t slots_counted_ = 0;              // head when the writes of send_slot() were counted last

 private:
  /// An entry that was set aside, and its place; or a spare place.
  struct Aside {
    uint8_t* va;
    uint32_t index;
    bool is_out;  ///< the card has not completed it
    regs::TxDesc desc;
  };

  /// Where an entry was set aside. @return null: its slot has it.
  [[nodiscard]] const Aside* find_aside(uint32_t index) const {
    // The cookie says which entry's place the slot has: send_slot() writes it.
    const bool in_slot = aside_count_ == 0 || index - window_.oldest() < window_.used() ||
                         window_.cookies()[index & window_.mask()] == index;
    return in_slot ? nullptr : search_asides(index);
  }
  [[nodiscard]] const regs::TxDesc& entry(uint32_t index) const {
    const Aside* const aside = find_aside(index);
    return aside != nullptr ? aside->desc : entries_[index & window_.mask()];
  }
  [[nodiscard]] const Aside* search_asides(uint32_t index) const;
  void set_oldest_aside();
  void count_new_slots();
  void tell_card_slow();
  static void tell_and_hook(void* queue) noexcept;

  // The specification's code of 256-byte segments, RIO Part 2 §4.1.5.
  static constexpr uint32_t kSlotControl = regs::tx_desc::Control::ssize.put(14);

  std::unique_ptr<uint8_t*[]> places_;  // of the slots
  uint64_t slots_iova_minus_va_ = 0;
  // Doorbell of send_slot(). Without tail_word_ it points to nowhere_, and the hook tells the card.
  volatile uint32_t* slot_tail_ = nullptr;
  PollHook slot_hook_;
  uint32_t nowhere_ = 0;
  std::unique_ptr<Aside[]> asides_;  // as many as spares
  uint32_t aside_count_ = 0;
  uint32_t last_aside_ = 0;
  uint32_t look_at_ = 0;
  SharedPtr<Pusher> pusher_;  // in push mode
  uint32_t next_aside_ = 0;   // the one that has been a spare place for longest, or nearly
};

}  // namespace rio::pmd
