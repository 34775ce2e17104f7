/// @file
/// Shared receive queue: every message that no dedicated queue claims.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/tsan.hpp"
#include "pmd/dev/queue_base.hpp"

namespace rio::pmd {

/// Receives "unexpected" messages into 4 KiB buffers. All functions belong to one thread.
/// [S0]; regs: shared_desc, shared_short_cpl; shared_cpl if the card has no short ones, or times
/// are wanted.
class alignas(64) SharedRxQueue : public PostingQueue {
 public:
  /// For create().
  explicit SharedRxQueue(SharedKey /*key*/) {}
  /// Start the ring, without buffers. Control path. @param bus outlives the queue.
  /// @return as Ring::start.
  [[nodiscard]] static int create(Bus& bus, const Caps& caps, const RingConfig& config,
                                  SharedPtr<SharedRxQueue>* out);

  /// Give buffers of regs::kMessageBytesMax to the card, with one BAR write if there were any.
  /// They are the card's until their RxMessage. Does not call the poll hook.
  /// @return how many were taken: fewer than `n` when the ring is full, or when the next buffer is
  /// not aligned (last_reject() says so; it is counted).
  uint16_t post(const RxBuffer* buffers, uint16_t n) {
    if (n == 1) {
      return post_next(*buffers) ? uint16_t{1} : post_alone(buffers);
    }
    return post_list(buffers, n);
  }

  /// Hot. Like post(), for callers without a list of buffers: posts up to `n` buffers made by
  /// make(i), which is called once for each i from 0 on. @return how many were taken: fewer than
  /// `n` if the ring is full; 0 if one of them is not aligned (counted, as in post()).
  template <class Make>
  uint32_t post_each(uint32_t n, Make&& make) {
    begin_post();
    n = std::min(n, window_.room());
    const uint32_t head = window_.head();
    uint64_t addrs = 0;
    for (uint32_t done = 0; done < n;) {
      const uint32_t slot = (head + done) & window_.mask();
      const uint32_t count = std::min(n - done, window_.mask() + 1 - slot);
      regs::SharedDesc* const entries = entries_ + slot;
      uint64_t* const cookies = window_.cookies() + slot;
      for (size_t i = 0; i < count; ++i) {
        const RxBuffer buffer = make(done + i);
        addrs |= buffer.iova;
        entries[i].addr = buffer.iova;
        cookies[i] = buffer.cookie;
      }
      done += count;
    }
    if ((addrs & addr_misaligned_) != 0) [[unlikely]] {
      refuse(Reject::kAlignment);
      end_posts();
      return 0;  // the entries written lie beyond the tail
    }
    window_.post(n);
    end_posts();
    ring_doorbell(head);
    return n;
  }

  /// Fetch messages in the order in which they became whole. A message that failed comes with its
  /// status and its buffer, too; length_bytes is never above regs::kMessageBytesMax. Calls the poll
  /// hook once, and looks again, when there is nothing. A burst of one message that is like the one
  /// before it, but for sender, mailbox and bytes, has a short path of its own, as post() of one
  /// has; both are inlined. @return how many, 0 to `n`.
  uint16_t burst(RxMessage* out, uint16_t n) {
    if (n == 1) {
      return take_next(out) ? uint16_t{1} : burst_alone(out);
    }
    return burst_run(out, n);
  }

  /// A plain message: in the order of the buffers, with kOk, and with a short completion.
  struct Plain {
    uint64_t cookie;        ///< of its buffer
    uint32_t source;        ///< destID of the sender
    uint32_t length_bytes;  ///< as the card says: compare it with the buffer's
  };
  /// Hot. Like burst(), for callers that need little of each message: hands over plain messages of
  /// one sender. Others are left for burst(). Does not call the poll hook. @param source destID of
  /// the sender. @param each called with the buffer's cookie and the length in bytes as the card
  /// says it. Returns false if it does not want this message now; it must not take one that is
  /// longer than its buffer, since the length may not have arrived. @return how many were handed
  /// over, 0 to `n`.
  template <class Each>
  uint32_t for_each_plain(uint32_t source, uint32_t n, Each&& each) {
    n = short_ ? std::min({n, cursor_.to_wrap(), window_.plain_in_a_row()}) : 0;
    auto* const begin = cursor_.at<regs::SharedShortCpl>();
    const uint32_t index = window_.oldest();
    const uint64_t* cookie = window_.cookies() + (index & window_.mask());
    const uint32_t flip = cursor_.flip();
    uint64_t plain = uint64_t{flip} << 32 | index;
    const Unwriter unwriter(flip);
    uint64_t bytes = 0;
    auto* cpl = begin;
    for (const auto* const end = begin + n; cpl != end; ++cpl, ++cookie, ++plain) {
      if (base::kThreadSanitizer && !is_there(cpl, flip)) {
        break;
      }
      const Halves seen(cpl);
      const uint32_t length_bytes = seen.length_bytes();
      if (!seen.is_of(plain) || seen.source() != source || !each(*cookie, length_bytes))
          [[unlikely]] {
        break;
      }
      unwriter.unwrite(cpl);
      bytes += length_bytes;
      keep_in_register(cookie);  // and is not computed anew from another variable of the loop
    }
    const auto k = static_cast<uint32_t>(cpl - begin);
    pass_plain(k, bytes);
    return k;
  }
  /// Hot. Whether the next message is there, and is plain. Sets *out.
  [[nodiscard]] bool peek(Plain* out) const {
    if (!short_ || window_.plain_in_a_row() == 0 || (base::kThreadSanitizer && !arrived())) {
      return false;
    }
    const Halves seen(cursor_.at<regs::SharedShortCpl>());
    const uint32_t index = window_.oldest();
    if (!seen.is_of(uint64_t{cursor_.flip()} << 32 | index) || !seen.is_whole()) {
      return false;
    }
    *out = {window_.cookies()[index & window_.mask()], seen.source(), seen.length_bytes()};
    return true;
  }
  /// Hot. As peek(), but only if no message behind it is there.
  [[nodiscard]] bool alone(Plain* out) const {
    CompletionCursor behind = cursor_;
    ++behind.consumed;
    return short_ && !behind.ready<regs::SharedShortCpl>() && peek(out);
  }
  /// Hot. Count a message as handed over. @param message just set by peek() or alone().
  void pass(const Plain& message) {
    unwrite(cursor_.at<regs::SharedShortCpl>(), cursor_.flip());
    pass_plain(1, message.length_bytes);
  }
  /// Whether a message is there that no burst has returned. If not, calls the poll hook once, and
  /// checks again.
  [[nodiscard]] bool ready() {
    if (!arrived()) {
      hook_();
      return arrived();
    }
    return true;
  }

 private:
  using Place = regs::shared_short_cpl::Place;
  static constexpr uint32_t kShapeMboxShift = 16;

  /// A short completion, of which each half is loaded once. Other than a vector, it leaves the
  /// loops that it is inlined into enough registers.
  class Halves {
   public:
    explicit Halves(const regs::SharedShortCpl* cpl) {
      base::tsan_acquire(&cpl->status);
      const auto* const halves = reinterpret_cast<const Half*>(cpl);
      source_place_ = __atomic_load_n(halves, __ATOMIC_RELAXED);
      index_status_ = __atomic_load_n(halves + 1, __ATOMIC_RELAXED);
      dma_read_barrier();
    }
    /// Whether it is there, of a buffer, with kOk. @param plain index of the buffer, and
    /// CompletionCursor::flip() above it.
    [[nodiscard]] bool is_of(uint64_t plain) const {
      constexpr uint64_t kMask = uint64_t{kPhaseBit | kCodeMask} << 32 | ~0u;
      return ((index_status_ ^ plain) & kMask) == 0;
    }
    /// Whether the source and the length are there, too.
    [[nodiscard]] bool is_whole() const {
      static_assert(Place::map_entry.mask() < kPhaseBit, "the top bit of PLACE is never written");
      return static_cast<int64_t>(source_place_) >= 0 && source() != kUnwritten;
    }
    /// Whether the source and the length are there, the message came by that entry of the receive
    /// map, and is not longer than a buffer.
    [[nodiscard]] bool is_plain(uint32_t map_entry) const {
      static_assert(Place::map_entry.lsb + Place::map_entry.width == 31,
                    "the only bit above the entry is never written");
      return place() >> Place::map_entry.lsb == map_entry && source() != kUnwritten &&
             length_bytes() <= regs::kMessageBytesMax;
    }
    /// The arrival number: the one nearest to an earlier message's that has the low bits.
    [[nodiscard]] uint32_t arrival_after(uint32_t earlier) const {
      constexpr auto kArrival = regs::shared_short_cpl::Status::arrival;
      constexpr uint32_t kUp = 32 - kArrival.width;
      const auto status = static_cast<uint32_t>(index_status_ >> 32);
      const uint32_t step = (kArrival.get(status) - earlier) << kUp;
      return earlier + static_cast<uint32_t>(static_cast<int32_t>(step) >> kUp);
    }
    /// The last 8 bytes of an RxMessage with kOk.
    [[nodiscard]] uint64_t shape() const {
      return length_bytes() | uint64_t{Place::mbox.get(place())} << 16 |
             uint64_t{Place::letter.get(place())} << 24 |
             uint64_t{Place::segments.get(place()) + 1} << 32;
    }
    [[nodiscard]] uint32_t source() const { return static_cast<uint32_t>(source_place_); }
    [[nodiscard]] uint32_t place() const { return static_cast<uint32_t>(source_place_ >> 32); }
    /// More than a message has, if the length is not there.
    [[nodiscard]] uint32_t length_bytes() const {
      static_assert(Place::length.max() > regs::kMessageBytesMax);
      return Place::length.get(static_cast<uint32_t>(source_place_ >> 32));
    }

   private:
    static_assert(offsetof(regs::SharedShortCpl, place) == 4 &&
                  offsetof(regs::SharedShortCpl, index) == 8 &&
                  offsetof(regs::SharedShortCpl, status) == 12);

    uint64_t source_place_;
    uint64_t index_status_;
  };
  [[nodiscard]] bool arrived() const {
    return short_ ? cursor_.ready<regs::SharedShortCpl>() : cursor_.ready<regs::SharedCpl>();
  }
  [[nodiscard]] bool post_next(const RxBuffer& buffer);
  [[nodiscard]] bool take_next(RxMessage* out);
  [[nodiscard]] uint16_t post_alone(const RxBuffer* buffer);
  [[nodiscard]] uint16_t burst_alone(RxMessage* out);
  [[nodiscard]] bool take_one(RxMessage* out);
  void renew_singles(const Halves& last);
  [[nodiscard]] uint16_t burst_run(RxMessage* out, uint32_t n);
  [[nodiscard]] uint16_t post_list(const RxBuffer* buffers, uint16_t n);
  [[nodiscard]] uint32_t last_arrival() const { return static_cast<uint32_t>(next_arrival_) - 1; }
  void set_last_arrival(uint32_t arrival) { next_arrival_ = arrival + 1; }
  [[nodiscard]] uint16_t burst_short(RxMessage* out, uint32_t n);
  [[nodiscard]] uint16_t burst_long(RxMessage* out, uint32_t n);
  template <class Run>
  [[nodiscard]] uint32_t take_plain(Run& run, uint32_t n);
  [[nodiscard]] uint32_t take_any(RxMessage* out, uint32_t n);
  [[nodiscard]] uint32_t post_run(const RxBuffer* buffers, size_t n);

  // Constant once created.
  regs::SharedDesc* entries_ = nullptr;
  uint64_t addr_misaligned_ = 0;                // bits that must be 0 in an address
  volatile uint32_t* tail_word_ = nullptr;      // doorbell; null: ring_doorbell() only
  bool short_ = false;                          // completions are regs::SharedShortCpl
  uint32_t own_ids_[regs::kRxMapEntries] = {};  // by entry of the receive map

  uint32_t map_entry_ = 0;     // of the last message
  uint64_t next_arrival_ = 1;  // the last message's arrival number, and 1: the top half is 0

  /// The next message as a burst of one expects it before it comes: all but sender, mailbox and
  /// bytes.
  struct Next {
    uint64_t index_status = 0;  ///< last half of its completion
    uint64_t own_id = 0;        ///< own destID, in the upper half
    uint64_t shape = 0;         ///< as Halves::shape()
    uint64_t length_bytes = 0;
    uint32_t place = 0;  ///< of its completion
  };
  /// From one message's last half to that of the next one: index and arrival number.
  static constexpr uint64_t kNextIndexStatus =
      uint64_t{1} << (32 + regs::shared_short_cpl::Status::arrival.lsb) | 1;
  Next next_message_;
};

/// Posts an aligned buffer. @return false: nothing was done; use another path.
[[gnu::always_inline]] inline bool SharedRxQueue::post_next(const RxBuffer& buffer) {
  const uint32_t head = window_.head();
  if (!may_post(head) || has_any(buffer.iova, addr_misaligned_)) [[unlikely]] {
    return false;
  }
  const uint32_t slot = head & window_.mask();
  entries_[slot].addr = buffer.iova;
  window_.cookies()[slot] = buffer.cookie;
  window_.post(1);
  bar_.count_writes(1);
  // Doorbell: entry visible before it; pairs as in ring_doorbell().
  Mmio::write_word(tail_word_, head + 1);
  return true;
}

/// Takes the next message if it is there, with a short completion that is as next_message_ says.
[[gnu::always_inline]] inline bool SharedRxQueue::take_next(RxMessage* out) {
  if (next_ >= next_end_ || (base::kThreadSanitizer && !arrived())) [[unlikely]] {
    return false;
  }
  auto* const cpl = reinterpret_cast<regs::SharedShortCpl*>(next_);
  base::tsan_acquire(&cpl->status);
  Next& next = next_message_;
  const uint64_t index_status =
      __atomic_load_n(reinterpret_cast<const Half*>(cpl) + 1, __ATOMIC_RELAXED);
  const auto index = static_cast<uint32_t>(index_status);
  // The index is not the oldest one if for_each_plain() or pass() has taken messages meanwhile.
  if (index_status != next.index_status || index != window_.oldest()) [[unlikely]] {
    return false;
  }
  const uint32_t source = __atomic_load_n(&cpl->source, __ATOMIC_RELAXED);
  const uint32_t mbox = __atomic_load_n(&cpl->place, __ATOMIC_RELAXED) ^ next.place;
  dma_read_barrier();
  // A place that is not there differs in its top bit.
  if ((mbox & ~Place::mbox.mask()) != 0 || source == kUnwritten) [[unlikely]] {
    return false;
  }
  const uint32_t slot = index & window_.mask();
  const uint64_t source_own = source | next.own_id;
  const uint64_t arrival_time = next_arrival_;
  const uint64_t shape = next.shape ^ mbox >> (Place::mbox.lsb - kShapeMboxShift);
  out->cookie = window_.cookies()[slot];
  std::memcpy(&out->source, &source_own, sizeof source_own);
  std::memcpy(&out->arrival, &arrival_time, sizeof arrival_time);
  std::memcpy(&out->length_bytes, &shape, sizeof shape);
  // The index is that of no other entry for a long time: it need not be unwritten.
  __atomic_store_n(reinterpret_cast<Half*>(cpl), ~Half{0}, __ATOMIC_RELAXED);
  next_ += sizeof *cpl;
  add_in_memory(next.index_status, kNextIndexStatus);
  add_in_memory(next_arrival_, 1);
  pass_plain(1, next.length_bytes);
  return true;
}

}  // namespace rio::pmd
