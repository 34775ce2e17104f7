/// @file
/// The plan of a group that was loaded, and the notifications that came for its next barrier.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
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
    early_ = pledged_ = 0;
    cancelled_by_ = kPlaces;
  }
  [[nodiscard]] bool is_loaded() const { return plan_ != nullptr; }
  /// The plan, if a descriptor has the same, so that it need not be read and checked again; else
  /// null.
  [[nodiscard]] const Plan* same_as(const regs::BarrierDesc& desc) const {
    using Control = regs::barrier_desc::Control;
    const Plan* const plan = plan_.get();
    const bool is_same =
        plan != nullptr && plan->send == desc.send && plan->await == desc.await &&
        plan->rounds == Control::rounds.get(desc.control) &&
        plan->prio == Control::prio.get(desc.control) &&
        std::equal(desc.peers, desc.peers + 2 * size_t{plan->rounds}, plan->peers.begin());
    return is_same ? plan : nullptr;
  }
  /// Whether the plan awaits a notification of `peer` at a place. @pre is_loaded().
  [[nodiscard]] bool awaits(Place place, uint32_t peer) const {
    return (plan_->await & bit(place)) != 0 && plan_->peers[place] == peer;
  }
  /// Keep a notification. Those of another epoch are forgotten: its barrier never ran here.
  /// @pre is_loaded(). @return false: the plan does not expect it.
  [[nodiscard]] bool keep(uint32_t epoch, uint32_t source, const Notice& notice) {
    const Place place = plan_->expected(source, notice.round);
    if (place == kPlaces) {
      return false;
    }
    forget_all_but(epoch);
    if (notice.is_cancel()) {
      cancelled_by_ = place;
    } else {
      early_ |= bit(place);
      pledged_ |= notice.pledges ? bit(place) : 0;
    }
    return true;
  }
  /// Take out all notifications: those of an epoch are passed to `each`, others are forgotten.
  /// @param each called with source, round, and whether it was a pledge.
  template <class Each>
  void take(uint32_t epoch, const Each& each) {
    forget_all_but(epoch);
    for (uint64_t rest = std::exchange(early_, 0); rest != 0; rest &= rest - 1) {
      const auto place = static_cast<Place>(std::countr_zero(rest));
      each(plan_->peers[place], round_of(place), (pledged_ & bit(place)) != 0);
    }
    pledged_ = 0;
    if (const Place place = std::exchange(cancelled_by_, kPlaces); place != kPlaces) {
      each(plan_->peers[place], regs::kBarrierRoundCancel, false);
    }
  }

 private:
  void forget_all_but(uint32_t epoch) {
    if (std::exchange(epoch_, epoch) != epoch) {
      early_ = pledged_ = 0;
      cancelled_by_ = kPlaces;
    }
  }

  std::unique_ptr<Plan> plan_;
  uint64_t early_ = 0;            // of plan_->await
  uint64_t pledged_ = 0;          // of early_
  uint32_t epoch_ = 0;            // of `early_` and `cancelled_by_`
  Place cancelled_by_ = kPlaces;  // none
};

}  // namespace rio::model::barrier
