/// @file
/// The plan of a group that was loaded, and the notifications that came for its next barrier.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "fpga/model/barrier/plan.hpp"

namespace rio::model::barrier {

/// Keeps early notifications of one epoch as a bit each, so that they need no room. One thread.
class LoadedPlan {
 public:
  /// Take the plan in the place of an earlier one, whose notifications are forgotten.
  void load(const Plan& plan) {
    plan_ = std::make_unique<Plan>(plan);
    early_ = 0;
    cancelled_by_ = kPlaces;
  }
  [[nodiscard]] bool is_loaded() const { return plan_ != nullptr; }
  /// Keep a notification. Those of another epoch are forgotten: its barrier never ran here.
  /// @pre is_loaded(). @return false: the plan does not expect it.
  [[nodiscard]] bool keep(uint32_t epoch, uint32_t source, uint32_t round) {
    const Place place = plan_->expected(source, round);
    if (place == kPlaces) {
      return false;
    }
    forget_all_but(epoch);
    if (round == regs::kBarrierRoundCancel) {
      cancelled_by_ = place;
    } else {
      early_ |= bit(place);
    }
    return true;
  }
  /// Take out all notifications: those of an epoch are passed to `each`, others are forgotten.
  /// @param each called with source and round.
  template <class Each>
  void take(uint32_t epoch, const Each& each) {
    forget_all_but(epoch);
    for (uint64_t rest = std::exchange(early_, 0); rest != 0; rest &= rest - 1) {
      const auto place = static_cast<Place>(std::countr_zero(rest));
      each(plan_->peers[place], round_of(place));
    }
    if (const Place place = std::exchange(cancelled_by_, kPlaces); place != kPlaces) {
      each(plan_->peers[place], regs::kBarrierRoundCancel);
    }
  }

 private:
  void forget_all_but(uint32_t epoch) {
    if (std::exchange(epoch_, epoch) != epoch) {
      early_ = 0;
      cancelled_by_ = kPlaces;
    }
  }

  std::unique_ptr<Plan> plan_;
  uint64_t early_ = 0;            // of plan_->await
  uint32_t epoch_ = 0;            // of `early_` and `cancelled_by_`
  Place cancelled_by_ = kPlaces;  // none
};

}  // namespace rio::model::barrier
