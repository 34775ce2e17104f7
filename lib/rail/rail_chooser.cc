#include "lib/rail/rail_chooser.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

namespace rio::rail {
namespace {

RailSet idle_ones(RailSet rails, const RailLoads& loads) {
  RailSet idle = 0;
  for (RailSet left = rails; left != 0; left &= left - 1) {
    const auto rail = static_cast<uint32_t>(std::countr_zero(left));
    idle |= loads.queued_bytes(rail) == 0 ? only(rail) : 0;
  }
  return idle;
}

/// The rail that would finish `bytes` first; of equal ones the first at or after `from`.
uint32_t first_to_finish(RailSet rails, const RailLoads& loads, uint64_t bytes, uint32_t from) {
  uint32_t best = first_from(rails, from);
  for (RailSet left = rails & ~only(best); left != 0;) {
    const uint32_t rail = first_from(left, from);
    best = loads.finish_ns(rail, bytes) < loads.finish_ns(best, bytes) ? rail : best;
    left &= ~only(rail);
  }
  return best;
}

}  // namespace

RailChooser::RailChooser(RailPolicy policy, RailSet rails, uint32_t peer, bool lower_sends)
    : policy_(policy), lower_sends_(lower_sends), peer_(peer) {
  set_rails(rails);
  rail_ = rail_at(rails, peer);
  turn_ = rail_;
}

void RailChooser::set_rails(RailSet rails) {
  assert(rails != 0 && rails >> kRails == 0);
  send_rails_ = rails;
  receive_rails_ = rails;
  const auto count = static_cast<uint32_t>(std::popcount(rails));
  if (policy_ == RailPolicy::kStatic) {
    send_rails_ = receive_rails_ = only(rail_at(rails, peer_));
  } else if (policy_ == RailPolicy::kUnidirectional && count >= 2) {
    const RailSet lower = rails & (only(rail_at(rails, (count + 1) / 2)) - 1);
    send_rails_ = lower_sends_ ? lower : rails & ~lower;
    receive_rails_ = rails & ~send_rails_;
  }
}

int RailChooser::small_rail(const RailView& view, const RailLoads& loads, uint32_t bytes) {
  RailSet rails = able(view, send_rails_);
  if (rails == 0) {
    return -ENETDOWN;
  }
  if (policy_ == RailPolicy::kStatic) {
    rails = only(first_from(rails, std::countr_zero(send_rails_)));
  }
  rails &= view.room;
  if (rails == 0) {
    return -EAGAIN;
  }
  rail_ = choose(rails, loads, bytes);
  return static_cast<int>(rail_);
}

uint32_t RailChooser::choose(RailSet rails, const RailLoads& loads, uint32_t bytes) {
  if (policy_ == RailPolicy::kWeighted) {
    const uint32_t best = first_to_finish(rails, loads, bytes, rail_);
    const bool stays =
        has(rails, rail_) &&
        loads.finish_ns(rail_, bytes) < 2 * std::max(loads.finish_ns(best, bytes), uint64_t{1});
    return stays ? rail_ : best;
  }
  const RailSet idle = idle_ones(rails, loads);
  const uint32_t rail = first_from(idle != 0 ? idle : rails, turn_);
  turn_ = (rail + 1) % kRails;
  return rail;
}

RailSet RailChooser::stripe_rails(const RailView& view, const RailLoads& loads,
                                  uint32_t messages) const {
  RailSet rails = able(view, receive_rails_);
  if (policy_ == RailPolicy::kStatic && rails != 0) {
    rails = only(first_from(rails, std::countr_zero(receive_rails_)));
  }
  rails &= view.room;
  if (policy_ == RailPolicy::kDynamic) {
    const RailSet idle = idle_ones(rails, loads);
    rails = idle != 0 ? idle : rails;
  }
  const uint32_t most = messages < 2 * kMessagesPerRail ? 1 : messages / kMessagesPerRail;
  RailSet chosen = 0;
  for (uint32_t i = 0; i < most && rails != 0; ++i) {
    const uint32_t rail = first_to_finish(rails, loads, 0, peer_ % kRails);
    chosen |= only(rail);
    rails &= ~only(rail);
  }
  return chosen;
}

}  // namespace rio::rail
