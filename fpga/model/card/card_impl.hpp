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
  /// Do one full step. @param answers whether to read answers, too.
  void step(bool answers);

  // For a host that has posted one message.
  [[nodiscard]] bool may_kick() const {
    return core.thread == &thread_tag && kicks != 0 && core.host.current();
  }
  /// Finish a kick that could not do everything itself. @param held unlocked here.
  [[gnu::noinline]] void end_kick(FastTx::Kick kicked, CardLock::Held held);
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
  [[nodiscard]] bool look();
  [[gnu::noinline]] void step_after_looks();

  CardLock lock;
  CardLock::Held entered = nullptr;           // lock held for a neighbour
  std::atomic<const char*> stepper{nullptr};  // thread_tag of the last thread in step()
  bool gone = false;
  uint32_t scan_in = 0;
  uint32_t kicks = 0;  // messages that kicks may send until the next step
  uint32_t looks = 0;  // looks that may be made until the next scan
  uint32_t looks_in_vain = 0;
  bool look_allowed = false;  // valid until the next step
  uint32_t housekeep_in = 0;
  uint32_t kicks_counted = 0;  // value of `kicks` at the last count
  Core core;
  Engines engines{core};
  Control control{core, engines};
  Upkeep upkeep{core, engines, control};

 private:
  static constexpr uint32_t kLooksApart = 2;  // looks in vain between messages that come singly

  [[nodiscard]] bool check_host(bool* answers);
  void look_at_slots();
  void send_posted(bool* answers);
  void take_frames(bool answers);
  void finish_work();
  [[gnu::noinline]] void do_chores();
  [[nodiscard]] uint32_t kicks_allowed();
  [[nodiscard]] bool looks_allowed();
};

/// Check for an arrived message only. @return false: call step().
inline bool Card::Impl::look() {
  --looks;
  if (core.pairs[0].rings[kTxRing].waits()) [[unlikely]] {
    return false;  // another thread has posted, and found this one inside
  }
  for (const Inbound& in : core.wire->inbound()) {
    const uint64_t word = load_frame_word(in.requests->next(), in.requests->tag());
    if (is_frame(static_cast<uint32_t>(word))) {
      // Messages in quick succession are a stream, which step() takes and answers in one go. A
      // single message is taken here, without touching the next one's cache line, which may still
      // be in another core.
      const bool alone = looks_in_vain >= kLooksApart;
      looks_in_vain = 0;
      return alone && engines.rx_plain.take_single(in, word);
    }
  }
  ++looks_in_vain;
  return true;
}

}  // namespace rio::model
