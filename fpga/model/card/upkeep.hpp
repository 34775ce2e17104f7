/// @file
/// Periodic work of a card: clock, link, timers, partners that come and go, faults.
#pragma once

#include "fpga/model/card/control.hpp"

namespace rio::model {

class Upkeep {
 public:
  Upkeep(Core& core, Engines& engines, Control& control)
      : core_(core), engines_(engines), control_(control) {}

  void update_clock();
  void poll_link();
  /// Check timers, and update the heartbeat and the BAR's counters.
  void housekeep();
  /// Process the wire's reports of partners that have come or gone.
  void take_changes();
  /// Draw faults that last for some steps.
  void draw_faults();
  void set_link(bool up);
  /// Force the link down, whatever the wire reports.
  void force_down(bool down) { forced_down_ = down; }
  /// Whether a fault keeps the card from taking requests off the wire.
  [[nodiscard]] bool receiver_is_slow() const { return slow_steps_ != 0; }
  [[nodiscard]] Activity activity();

 private:
  void on_change(const PartnerChange& change);

  Core& core_;
  Engines& engines_;
  Control& control_;
  const Transactions::Ended ended_ = [this](const auto&... ended) { engines_.end(ended...); };
  bool forced_down_ = false;
  uint32_t busy_looks_ = 0;  // successive checks with requests waiting
  uint32_t slow_steps_ = 0;
  uint32_t down_steps_ = 0;
  uint32_t stuck_steps_ = 0;
  Ring* stuck_ = nullptr;
  uint32_t heartbeat_ = 0;
};

}  // namespace rio::model
