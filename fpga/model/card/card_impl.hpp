/// @file
/// A card put together: its step, and the shorter ways into it.
#pragma once

#include <atomic>

#include "fpga/model/card.hpp"
#include "fpga/model/card/dispatch.hpp"
#include "fpga/model/card/upkeep.hpp"
#include "fpga/model/card_lock.hpp"

namespace rio::model {

/// Its address tells threads apart.
[[gnu::tls_model("initial-exec")]] inline thread_local char thread_tag;

struct Card::Impl final : Neighbour {
  Impl(const Config& config, Ends ends)
      : core(config, ends.bar, bar_bytes(config.queue_pairs), ends.memory, std::move(ends.wire),
             ends.clock, ends.irqs),
        engines(core),
        control(core, engines),
        upkeep(core, engines, control),
        dispatch(core, engines) {
    core.wire->attach(this);
  }
  ~Impl() override { core.wire->attach(nullptr); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Core* enter(bool self) override;
  void leave(bool self) override;

  /// Keeps others out, and has what kicks have sent counted; there are no short ways until the next
  /// step.
  struct Hold {
    explicit Hold(Impl& card) : hold(card.lock) { card.end_short_ways(); }
    CardHold hold;
  };

  /// The calling thread is inside.
  void enter_thread() {
    if (core.thread != &thread_tag) [[unlikely]] {
      stepper.store(&thread_tag, std::memory_order_relaxed);
      core.thread = &thread_tag;
      core.wire->stepped_by(&thread_tag);
    }
  }
  /// @param answers look at answers, too.
  void step(bool answers);
  /// The next step looks at everything.
  void look_soon() {
    scan_in = 0;
    housekeep_in = 0;
  }

  // A host that has posted one message.
  [[nodiscard]] bool may_kick() const {
    return core.thread == &thread_tag && kicks != 0 && core.host.current();
  }
  /// Do what a kick has left to do. @param held is given back.
  [[gnu::noinline]] void end_kick(TxSingle::Kick kicked, CardLock::Held held);
  [[gnu::noinline]] void step_instead(CardLock::Held held);
  /// For a thread that the lock does not lean to.
  [[gnu::noinline]] void step_to_send_shared();
  /// Add what kicks have sent to the counts.
  void count_kicks();
  /// Also, there are no short ways until the next step.
  void end_short_ways();

  // A host that waits for messages.
  [[nodiscard]] bool may_look() const {
    return look_allowed && looks != 0 && core.thread == &thread_tag && core.host.current();
  }
  [[nodiscard]] bool look();
  [[gnu::noinline]] void step_after_looks();

  CardLock lock;
  CardLock::Held entered = nullptr;           // by a neighbour
  std::atomic<const char*> stepper{nullptr};  // thread_tag of the last thread in step()
  bool gone = false;
  uint32_t scan_in = 0;
  uint32_t kicks = 0;  // may be sent until the next step
  uint32_t looks = 0;  // may be made until the next scan
  uint32_t looks_in_vain = 0;
  bool look_allowed = false;  // until the next step
  uint32_t housekeep_in = 0;
  uint32_t kicks_counted = 0;  // `kicks` when they were counted last
  Core core;
  Engines engines;
  Control control;
  Upkeep upkeep;
  Dispatch dispatch;

 private:
  static constexpr uint32_t kLooksApart = 2;  // in vain, between messages that are no stream

  [[nodiscard]] bool look_around(bool* answers);
  void send_posted(bool* answers);
  void take_frames(bool answers);
  void finish_work();
  [[nodiscard]] uint32_t kicks_allowed();
  [[nodiscard]] bool looks_allowed();
};

/// Look for a message, and at nothing else. @return false: step() has to take what is there.
inline bool Card::Impl::look() {
  --looks;
  if (Core::waits(core.pairs[0], kTxRing)) [[unlikely]] {
    return false;  // posted by another thread, whose hook has found this one inside
  }
  for (const Inbound& in : core.wire->inbound()) {
    const uint64_t word = load_frame_word(in.requests->next(), in.requests->tag());
    if (is_frame(static_cast<uint32_t>(word))) {
      // Where one soon follows another there are more to come, for step() to take, and to answer,
      // in one go. Else the next is not looked at: it may still be in another core.
      const bool alone = looks_in_vain >= kLooksApart;
      looks_in_vain = 0;
      return alone && engines.rx_single.take(in, word);
    }
  }
  ++looks_in_vain;
  return true;
}

}  // namespace rio::model
