#include "fpga/model/barrier/plan.hpp"

namespace rio::model::barrier {
namespace {

/// Whether a round names one peer twice for one direction.
bool is_doubled(const Plan& plan, uint32_t round) {
  const uint64_t both = uint64_t{3} << (2 * round);
  return plan.peers[2 * round] == plan.peers[2 * round + 1] &&
         ((plan.send & both) == both || (plan.await & both) == both);
}

}  // namespace

bool Plan::of(const regs::BarrierDesc& desc, Plan* out) {
  using Control = regs::barrier_desc::Control;
  Plan& plan = *out;
  plan.send = desc.send;
  plan.await = desc.await;
  plan.rounds = Control::rounds.get(desc.control);
  plan.prio = Control::prio.get(desc.control);
  const uint64_t used = plan.send | plan.await;
  if (plan.rounds == 0 || plan.rounds > regs::kBarrierRoundsMax || plan.prio > 2 ||
      (used & ~below(plan.rounds)) != 0 || desc.group > regs::barrier_notice::Info::group.max()) {
    return false;
  }
  for (Place place = 0; place < 2 * plan.rounds; ++place) {
    plan.peers[place] = desc.peers[place];
    const bool is_peer = plan.peers[place] != kNoPeer;
    if (is_peer != ((used & bit(place)) != 0)) {
      return false;  // a peer without bits, or bits without a peer
    }
  }
  for (uint32_t round = 0; round < plan.rounds; ++round) {
    if ((used >> (2 * round) & 3) == 0 || is_doubled(plan, round)) {
      return false;
    }
  }
  return true;
}

Place Plan::awaited(uint32_t source, uint32_t round) const {
  if (round < rounds) {
    for (Place place = 2 * round; place < 2 * round + 2; ++place) {
      if ((await & bit(place)) != 0 && peers[place] == source) {
        return place;
      }
    }
  }
  return kPlaces;
}

Place Plan::peer(uint32_t source) const {
  for (Place place = 0; place < 2 * rounds; ++place) {
    if (peers[place] == source && ((send | await) & bit(place)) != 0) {
      return place;
    }
  }
  return kPlaces;
}

uint64_t Plan::distinct_peers() const {
  uint64_t places = 0;
  for (Place place = 0; place < 2 * rounds; ++place) {
    if (peers[place] != kNoPeer && peer(peers[place]) == place) {
      places |= bit(place);
    }
  }
  return places;
}

}  // namespace rio::model::barrier
