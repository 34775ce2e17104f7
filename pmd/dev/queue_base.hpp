/// @file
/// The common part of all queues beside their rings: completion cursor, tail, hook, counts.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "pmd/bus/shared_ptr.hpp"
#include "pmd/dev/caps.hpp"
#include "pmd/dev/completion.hpp"
#include "pmd/dev/entry_window.hpp"
#include "pmd/dev/ring.hpp"
#include "pmd/dev/types.hpp"

namespace rio::pmd {

/// Forces a sum over a burst to be computed now, in a register. The compiler would otherwise
/// postpone such sums, and keep all their terms on the stack.
template <class Value>
[[gnu::always_inline]] inline void keep_in_register(Value& value) {
  asm volatile("" : "+r"(value));
}

/// Whether a bit of `bits` is in a mask that lies in memory: one instruction, where gcc copies
/// `bits` first, and a jump.
[[nodiscard, gnu::always_inline]] inline bool has_any(uint64_t bits, const uint64_t& mask) {
#if defined(__x86_64__) && defined(__GCC_ASM_FLAG_OUTPUTS__)
  bool any;
  asm("testq %1, %2" : "=@ccnz"(any) : "r"(bits), "m"(mask));
  return any;
#else
  return (bits & mask) != 0;
#endif
}

/// Counts of a queue, over all the times that its ring was open.
struct RingTotals {
  QueueStats stats;
  MmioCounts mmio;
  RingTotals& operator+=(const RingTotals& other);
};

/// The counters behind QueueStats.
struct QueueCounters {
  Counter messages;
  Counter bytes;
  Counter failed;
  Counter rejected;
  Counter bad_completions;
};

/// Base of the queues; not used by itself. A queue belongs to one thread at a time. Other threads
/// may call stats(), mmio() and totals(), and see values that are a burst old. The memory is from
/// Bus::shared_alloc(): on a bus without hooks the owner may be a thread of another process, if the
/// BAR has the same address there. Functions that read the BAR (ring_state(), stop() and the like)
/// and the destructor are for the process that made the queue.
class QueueBase {
 public:
  QueueBase(const QueueBase&) = delete;
  QueueBase& operator=(const QueueBase&) = delete;

  /// Counts since create().
  [[nodiscard]] QueueStats stats() const {
    return {.messages = stats_.messages.get(),
            .bytes = stats_.bytes.get(),
            .failed = stats_.failed.get(),
            .rejected = stats_.rejected.get(),
            .bad_completions = stats_.bad_completions.get()};
  }
  /// BAR accesses of the bursts and of arm(): no reads, and at most one write per burst;
  /// in push mode one more for each slot.
  [[nodiscard]] MmioCounts mmio() const { return bar_.counts(); }
  /// Counts and BAR accesses together.
  [[nodiscard]] RingTotals totals() const { return {stats(), bar_.counts()}; }
  /// Control path, reads the BAR. @param error, entry why and where the card stopped the ring, set
  /// on success; may be null. @return regs::RingState, or -ENODEV (card gone), -EPROTO.
  [[nodiscard]] int ring_state(regs::RingError* error, uint32_t* entry) {
    return ring_.state(error, entry);
  }
  /// Control path. Posted entries then complete with kFlushed; reap them, and their memory is the
  /// caller's again. @return 0, -ETIMEDOUT (memory must stay as it is), -ENODEV (card gone).
  [[nodiscard]] int stop() { return ring_.stop(); }
  /// Begin the stop without waiting: nothing may be posted from now on. The card takes up to three
  /// response time-outs; stopped() tells when it has finished.
  void begin_stop() { ring_.begin_stop(); }
  /// Whether the stop that begin_stop() began is over. One BAR read. @return 1 (all completions are
  /// there), 0 (not yet), -ENODEV.
  [[nodiscard]] int stopped() { return ring_.stopped(); }
  /// Ask for an interrupt once there are completions that no burst has returned. Fetch once more
  /// after arming and before sleeping. One BAR write. regs: QP.ARM
  void arm() {
    bar_.write32(ring_.arm_offset(),
                 regs::qp::Arm::index.put(cursor_.consumed) | regs::qp::Arm::seq.put(++arms_));
  }
  /// How many completions are there that no burst has returned, those counted too that a burst will
  /// drop (bad_completions). Slow: it looks at each of them. Does not call the poll hook.
  [[nodiscard]] uint32_t ready_count() const;
  /// For a thread that waits with the CPU's help (rte_power_monitor_cond): the completion that the
  /// next burst returns first is there once `(*status & kPhaseBit) == phase`.
  struct NextCompletion {
    const uint32_t* status;
    uint32_t phase;
  };
  [[nodiscard]] NextCompletion next_completion() const;

 protected:
  QueueBase() = default;
  ~QueueBase() = default;

  /// Start the ring and point the hot fields at it. @return as Ring::start.
  [[nodiscard]] int start(Bus& bus, const Caps& caps, const RingConfig& config,
                          const RingShape& shape);

  /// Load a completion whose last word is there. @tparam kFrom the first word that the driver uses.
  /// @param is_right whether it can be true. @return as look_again(), if it is not right at once.
  template <uint32_t kFrom, class Cpl, class IsRight>
  [[nodiscard, gnu::always_inline]] Cpl load_whole(const Cpl* at, const IsRight& is_right) const {
    const Cpl cpl = load_completion(at);
    return is_written<kFrom>(cpl) && is_right(cpl) ? cpl : look_again<kFrom>(at, is_right);
  }
  /// Look again at a completion of which a word is not there, or that is wrong, kTornLooks times at
  /// most.
  /// @return it as it is then.
  template <uint32_t kFrom, class Cpl, class IsRight>
  [[nodiscard, gnu::noinline]] Cpl look_again(const Cpl* at, const IsRight& is_right) const {
    Cpl cpl{};
    bool whole = false;
    for (uint32_t left = kTornLooks; left != 0 && !whole; --left) {
      hook_();
      cpu_pause();
      cpl = load_completion(at);
      whole = is_written<kFrom>(cpl) && is_right(cpl);
    }
    return cpl;
  }

  // Written by the bursts.
  CompletionCursor cursor_;
  QueueCounters stats_;
  Mmio bar_;
  // Read by the bursts.
  PollHook hook_;
  uint32_t tail_offset_ = 0;

  Ring ring_;

 private:
  uint32_t arms_ = 0;  // each arm writes another value: ARM.SEQ

  [[nodiscard]] const uint32_t* last_word(uint32_t index) const;
};

/// Make a queue in memory that processes share. Control path. @param start starts it, 0 or -errno.
/// @return 0, -ENOMEM, or as `start`.
template <class Queue, class Start>
[[nodiscard]] int make_queue(Bus& bus, SharedPtr<Queue>* out, const Start& start) {
  auto queue = make_shared_object<Queue>(bus);
  const int error = queue != nullptr ? start(*queue) : -ENOMEM;
  if (error == 0) {
    *out = std::move(queue);
  }
  return error;
}

/// Base of the queues with submissions. Not used by itself.
class PostingQueue : public QueueBase {
 public:
  /// Number of free entries, at most 65535.
  [[nodiscard]] uint16_t free_count() const {
    return static_cast<uint16_t>(std::min(window_.room(), 0xFFFFu));
  }
  /// Number of entries posted and not yet reaped, at most 65535.
  [[nodiscard]] uint16_t outstanding() const {
    return static_cast<uint16_t>(std::min(window_.outstanding(), 0xFFFFu));
  }
  /// Visit the entries that a card which is gone never completed. Control path. @param each called
  /// with each one's cookie.
  template <class Each>
  void for_each_outstanding(Each&& each) const {
    window_.for_each(each);
  }
  /// Start the ring again after stopped() has said 1 and all was reaped; indices go on. Control
  /// path.
  /// @return 0, -EBUSY (something was not completed, or not reaped), and as Ring::start.
  [[nodiscard]] int restart();
  /// Why the last post stopped early; kNone if the ring was full or everything was taken.
  [[nodiscard]] Reject last_reject() const { return last_reject_; }

 protected:
  PostingQueue() = default;
  ~PostingQueue() = default;

  /// Like QueueBase::start(), and creates the window. @return also -ENOMEM.
  [[nodiscard]] int start(Bus& bus, const Caps& caps, const RingConfig& config,
                          const RingShape& shape);
  /// Start a ring whose completions are Cpl. @param entries set to the ring's first one.
  template <class Cpl, class Desc>
  [[nodiscard]] int start(Bus& bus, const Caps& caps, const RingConfig& config, Desc** entries,
                          uint32_t format = 0, uint32_t more_cpls = 0) {
    const int error = start(bus, caps, config, {sizeof(Desc), sizeof(Cpl), format, more_cpls});
    *entries = static_cast<Desc*>(ring_.entries());
    return error;
  }
  /// Post in one run or two: the ring's slots wrap. @param post_run as the queues' post_run().
  template <class Entry, class PostRun>
  [[gnu::always_inline]] uint16_t post_runs(const Entry* entries, uint16_t n,
                                            const PostRun& post_run) {
    begin_post();
    const uint32_t before = window_.head();
    uint32_t done = post_run(entries, std::min<uint32_t>(n, window_.room_in_a_row()));
    if (done < n && last_reject_ == Reject::kNone) {  // the slots wrapped, or the ring is full
      done += post_run(entries + done, std::min(n - done, window_.room_in_a_row()));
    }
    ring_doorbell(before);
    return static_cast<uint16_t>(done);
  }

  /// Call it first in each post: nothing is refused yet.
  void begin_post() { last_reject_ = Reject::kNone; }
  /// Note why a post stops. @return false.
  bool refuse(Reject why) {
    last_reject_ = why;
    stats_.rejected.add(1);
    return false;
  }
  /// Tell the card of the entries posted since head was `head_before`, if any.
  void ring_doorbell(uint32_t head_before) {
    if (window_.head() != head_before) {
      // Doorbell: entries visible before it (barrier in write32); pairs with the card's fetch,
      // which reads entries only below the tail that it has seen.
      bar_.write32(tail_offset_, window_.head());
    }
  }

  /// Whether a single entry may be posted at `head` without a look at anything else.
  [[nodiscard]] bool may_post(uint32_t head) const {
    return static_cast<int32_t>(head - post_end_) < 0;
  }
  /// Entries were posted by another path: the short one must not go on.
  void end_posts() { post_end_ = window_.head(); }
  /// Completions were taken by another path: the short one must not go on.
  void end_next() { next_end_ = 0; }

  /// Hot. Note that the `count` oldest entries completed in order, with kOk, and that their
  /// completions were consumed.
  void pass_plain(uint32_t count, uint64_t bytes) {
    cursor_.consumed += count;
    window_.complete_in_order(count);
    stats_.messages.add(count);
    stats_.bytes.add(bytes);
  }

  // In reap.hpp. A Kind knows one form of completion.
  [[nodiscard]] uint32_t reap_plain(EntryDone* out, uint32_t limit);
  template <class Kind>
  [[nodiscard]] uint32_t reap_any(typename Kind::Done* out, uint32_t limit);
  [[nodiscard]] uint16_t reap_ready(EntryDone* out, uint16_t n);
  [[nodiscard]] uint16_t reap_burst(EntryDone* out, uint16_t n);

  EntryWindow window_;
  const uint32_t* sizes_ = nullptr;  // as Kind::size wants them; the window's unless changed
  Reject last_reject_ = Reject::kNone;

  // Of bursts of one, which are inlined. The other paths keep these, so that a short one has little
  // to look at.
  uint32_t post_end_ = 0;  // single entries may be posted below it
  // The next completion, if it is below next_end_. Then entries are outstanding for all from here
  // to there, in order; else single completions take another path.
  uintptr_t next_ = 0;
  uintptr_t next_end_ = 0;
};

}  // namespace rio::pmd
