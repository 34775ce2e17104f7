/// @file
/// What a card is made of. card.cc has what users of a card call, card_step.cc the step,
/// card_frames.cc what comes over the wire, card_keep.cc what is looked at now and then.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "fpga/model/card.hpp"
#include "fpga/model/card/control.hpp"
#include "fpga/model/card_lock.hpp"

namespace rio::model {

/// Its address tells threads apart.
[[gnu::tls_model("initial-exec")]] inline thread_local char thread_tag;

struct Card::Impl final : Neighbour {
  Impl(const Config& config, Ends ends)
      : core(config, ends.bar, bar_bytes(config.queue_pairs), ends.memory, std::move(ends.wire),
             ends.clock, ends.irqs),
        transactions(core),
        tx(core, transactions),
        responder(core),
        rx(core, responder),
        dma(core, transactions),
        target(core, responder),
        maint(core, transactions, responder),
        control(core, Engines{transactions, tx, rx, dma, target, maint}) {
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

  void enter_thread();
  [[nodiscard]] uint32_t kicks_allowed();
  [[gnu::noinline]] void end_kick(TxEngine::Kick kicked, CardLock::Held held);
  [[nodiscard]] bool may_kick() const;
  [[gnu::noinline]] void step_instead(CardLock::Held held);
  [[gnu::noinline]] void step_to_send_shared();
  void count_kicks();
  void end_short_ways();
  [[nodiscard]] bool look();
  [[nodiscard]] bool looks_allowed();
  [[gnu::noinline]] void step_after_looks();
  void step(bool answers);
  void look_at_clock();
  void look_at_link();
  void housekeep();
  [[nodiscard]] bool requests_wait();
  [[nodiscard]] Activity activity();
  void set_link(bool up);
  void draw_faults();
  void take_responses(Inbound& in);
  void take_requests(Inbound& in, const InFrame* frame);
  bool on_request(const InFrame& frame);
  void on_response(const InFrame& frame);
  void take_changes();
  void on_change(const PartnerChange& change);
  void expire(const std::vector<Transactions::Expired>& all);

  CardLock lock;
  CardLock::Held entered = nullptr;           // by a neighbour
  std::atomic<const char*> stepper{nullptr};  // thread_tag of the last thread in step()
  bool gone = false;
  bool forced_down = false;
  uint32_t scan_in = 0;
  uint32_t kicks = 0;  // may be sent until the next step
  uint32_t looks = 0;  // may be made until the next scan
  uint32_t looks_in_vain = 0;
  bool may_look = false;  // until the next step
  uint32_t housekeep_in = 0;
  uint32_t busy_looks = 0;  // in a row with requests waiting
  uint32_t slow_steps = 0;
  uint32_t down_steps = 0;
  uint32_t stuck_steps = 0;
  Ring* stuck = nullptr;
  uint32_t heartbeat = 0;
  uint32_t kicks_counted = 0;  // `kicks` when they were counted last
  Core core;
  Transactions transactions;
  TxEngine tx;
  Responder responder;
  RxEngine rx;
  DmaEngine dma;
  TargetEngine target;
  MaintEngine maint;
  Control control;
};

}  // namespace rio::model
