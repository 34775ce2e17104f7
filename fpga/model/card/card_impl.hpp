/// @file
/// The card assembled from its engines: its step, and the fast paths around it. A kick sends one
/// posted message without a step; a look checks for one arrival without a step.
#pragma once

#include <atomic>

#include "fpga/model/card.hpp"
#include "fpga/model/card/upkeep.hpp"
#include "fpga/model/card_lock.hpp"

namespace rio::model {

/// Its address identifies the thread.
[[gnu::tls_model("initial-exec")]] inline thread_local char thread_tag;

struct Card::Impl final : Neighbour {
  Impl(const Config& config, Ends ends) : core(config, std::move(ends)) { core.wire->attach(this); }
  ~Impl() override { core.wire->attach(nullptr); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Core* enter(bool self) override;
  void leave(bool self) override;

  /// Holds the card's lock, and disables the fast paths until the next step.
  struct Hold {
    explicit Hold(Impl& card) : hold(card.lock) { card.end_short_ways(); }
    CardHold hold;
  };

  /// Note the calling thread as the one that steps the card.
  void enter_thread() {
    if (core.thread != &thread_tag) [[unlikely]] {
      stepper.store(&thread_tag, std::memory_order_relaxed);
      core.thread = &thread_tag;
      core.wire->stepped_by(&thread_tag);
    }
  }
  /// Do one full step. @param answers whether to read answers, too. @param pulls whether to pull
  /// long messages: not for a host that only has something to send.
  void step(bool answers, bool pulls);

  // For a host that has posted one message.
  [[nodiscard]] bool may_kick() const {
    return core.thread == &thread_tag && kicks != 0 && core.host.current();
  }
  /// Finish a kick that could not do everything itself. @param held unlocked here.
  [[gnu::noinline]] void end_kick(FastTx::Kick kicked, CardLock::Held held);
  /// The next message is taken as one that comes singly: a host that sends and then receives takes
  /// part in an exchange, and finds its partner's message at once.
  void expect_single() {
    looks_in_vain = kLooksApart;
    has_kicked = true;
  }
  [[nodiscard]] bool kick_several();
  [[nodiscard]] bool take_answers();
  [[gnu::noinline]] void step_instead(CardLock::Held held);
  /// step_to_send() for a thread that the lock does not prefer.
  [[gnu::noinline]] void step_to_send_shared();
  /// Add the messages sent by kicks to the counters.
  void count_kicks();
  /// Count kicks, and disable the fast paths until the next step.
  void end_short_ways();

  // For a host that waits for messages.
  [[nodiscard]] bool may_look() const {
    return look_allowed && looks != 0 && core.thread == &thread_tag && core.host.current();
  }
  /// Hot. Check for an arrived message only. @param held unlocked here, as below.
  void look(CardLock::Held held);
  /// Whether look_for_barrier() may replace a step.
  [[nodiscard]] bool may_look_for_barrier() const {
    return barrier_look_allowed && looks != 0 && core.thread == &thread_tag && core.host.current();
  }
  /// look() while a barrier runs: checks for an answer, too.
  [[gnu::noinline]] void look_for_barrier(CardLock::Held held);
  /// step_to_reap(). @param held unlocked here.
  void reap(CardLock::Held held);
  /// step_to_receive() where look() may not replace the step.
  [[gnu::noinline]] void step_or_look_for_barrier(CardLock::Held held);
  /// step_to_start(). @param held unlocked here.
  void start_barrier(CardLock::Held held);
  /// Take what has come, if anything has. @return false: nothing; `held` is still locked.
  [[nodiscard]] bool look_at_wire(CardLock::Held held);
  /// A look has found a frame. @param word its load_frame_word().
  [[gnu::noinline]] void take_found(const Inbound& in, uint64_t word, CardLock::Held held);
  /// Send the answer to the message that a look has taken, take the peer's answers, then look.
  [[gnu::noinline]] void look_after_answer(CardLock::Held held);
  [[gnu::noinline]] void step_after_looks(CardLock::Held held);
  /// step_to_receive() for a thread that the lock does not prefer.
  [[gnu::noinline]] void step_to_receive_shared();

  CardLock lock;
  CardLock::Held entered = nullptr;           // lock held for a neighbour
  std::atomic<const char*> stepper{nullptr};  // thread_tag of the last thread in step()
  std::atomic<uint64_t> looked_ns{0};         // Card::looked_ns()
  bool gone = false;
  uint32_t scan_in = 0;
  uint32_t kicks = 0;  // messages that kicks may send until the next step
  // Whether kick_several() has found that the head of the transmit ring, `awaiting_head`, waits for
  // a letter; valid until the next step.
  bool awaits_letter = false;
  uint32_t awaiting_head = 0;
  uint32_t looks = 0;  // looks that may be made until the next scan
  uint32_t looks_in_vain = 0;
  bool has_kicked = false;      // since a look has found the last message
  uint32_t short_reaps = 0;     // reaps that need no step, until a look finds the next message
  bool comes_at_once = false;   // the first look after a kick has found the last message
  bool acks_put_off = false;    // the last look after an answer has left the peer's answers
  uint32_t sends_unpulled = 0;  // steps for a host that sends, which pull nothing but now and then
  // Successive steps that found posted accesses of remote memory, while others were under way.
  uint32_t posts_unpulled = 0;
  // Valid until the next step; at most one of both.
  bool look_allowed = false;
  bool barrier_look_allowed = false;
  uint32_t housekeep_in = 0;
  uint32_t kicks_counted = 0;  // value of `kicks` at the last count
  Core core;
  const bool has_more_pairs = core.pairs.size() > 1;
  Engines engines{core};
  Control control{core, engines};
  Upkeep upkeep{core, engines, control};

 private:
  static constexpr uint32_t kSendsUnpulled = 64;
  static constexpr uint32_t kLooksApart = 2;  // looks in vain between messages that come singly
  static constexpr uint32_t kReapsPerExchange = 4;
  static constexpr uint32_t kLooksPerStream = 16;  // looks that taking from a stream counts as

  [[nodiscard]] bool take_notice(const Inbound& in, uint64_t word);
  [[nodiscard]] bool check_host(bool* answers);
  void look_at_slots();
  [[nodiscard]] bool send_posted(bool* answers);
  [[nodiscard]] bool take_frames(bool answers, bool pulls, bool reads);
  void finish_work(bool reads);
  [[gnu::noinline]] void do_chores();
  [[nodiscard]] uint32_t kicks_allowed();
  [[nodiscard]] bool looks_allowed();
  /// Whether a message waits to be sent: another thread has posted it, and found this one inside.
  [[nodiscard]] bool sends_wait() const {
    return engines.fast_tx.pair().rings[kTxRing].waits() || (has_more_pairs && other_sends_wait());
  }
  [[gnu::noinline]] [[nodiscard]] bool other_sends_wait(const Pair* but = nullptr) const;
  [[nodiscard]] static bool has_posts(const Pair& pair);
  [[gnu::noinline]] [[nodiscard]] bool other_pairs_have_posts() const;
  /// Let looks of either kind replace the next steps, or none.
  void allow_looks(bool allowed) {
    const bool has_barrier = (core.chores & kBarrierChore) != 0;
    look_allowed = allowed && !has_barrier;
    barrier_look_allowed = allowed && has_barrier;
  }
};

inline void Card::Impl::look(CardLock::Held held) {
  if (engines.responder.pending()) [[unlikely]] {
    look_after_answer(held);
    return;
  }
  --looks;
  if (sends_wait()) [[unlikely]] {
    step_after_looks(held);
    return;
  }
  if (!look_at_wire(held)) {
    ++looks_in_vain;
    CardLock::unlock(held);
  }
}
inline bool Card::Impl::look_at_wire(CardLock::Held held) {
  for (const Inbound& in : core.wire->inbound()) {
    const uint64_t word = load_frame_word(in.requests->next(), in.requests->tag());
    if (is_frame(static_cast<uint32_t>(word))) {
      take_found(in, word, held);
      return true;
    }
  }
  return false;
}

}  // namespace rio::model
