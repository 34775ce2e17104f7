/// @file
/// What a card looks after now and then: clock, link, timers, partners that come and go, faults.
#pragma once

#include <vector>

#include "fpga/model/card/control.hpp"

namespace rio::model {

class Upkeep {
 public:
  Upkeep(Core& core, Engines& engines, Control& control)
      : core_(core), engines_(engines), control_(control) {}

  void look_at_clock();
  void look_at_link();
  /// Timers, heartbeat, counters of the BAR.
  void housekeep();
  /// Partners that have come or gone, as the wire has found.
  void take_changes();
  /// Faults that last for some steps, by seed.
  void draw_faults();
  void set_link(bool up);
  /// The link is down, whatever the wire says.
  void force_down(bool down) { forced_down_ = down; }
  /// By a fault: nothing is taken off the wire.
  [[nodiscard]] bool receiver_is_slow() const { return slow_steps_ != 0; }
  /// Whether a partner has sent what was not taken.
  [[nodiscard]] bool requests_wait();
  [[nodiscard]] Activity activity();

 private:
  void on_change(const PartnerChange& change);
  void expire(const std::vector<Transactions::Expired>& all);

  Core& core_;
  Engines& engines_;
  Control& control_;
  bool forced_down_ = false;
  uint32_t busy_looks_ = 0;  // in a row with requests waiting
  uint32_t slow_steps_ = 0;
  uint32_t down_steps_ = 0;
  uint32_t stuck_steps_ = 0;
  Ring* stuck_ = nullptr;
  uint32_t heartbeat_ = 0;
};

}  // namespace rio::model
