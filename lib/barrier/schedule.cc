#include "lib/barrier/schedule.hpp"

namespace rio::barrier {

BrokenRule broken_rule(const Schedule& schedule, uint32_t ranks, uint32_t rank) {
  if (schedule.rounds > kRoundsMax) {
    return {"more rounds than a descriptor has", schedule.rounds};
  }
  const uint64_t bits = schedule.send | schedule.await;
  if ((bits >> (kWays * schedule.rounds)) != 0) {
    return {"a bit beyond the rounds", schedule.rounds};
  }
  for (uint32_t i = kWays * schedule.rounds; i < schedule.peers.size(); ++i) {
    if (schedule.peers[i] != kNoPeer) {
      return {"a peer beyond the rounds", i / kWays};
    }
  }
  for (uint32_t round = 0; round < schedule.rounds; ++round) {
    const uint64_t both = peer_bit(round, 0) | peer_bit(round, 1);
    if ((bits & both) == 0) {
      return {"a round without a bit", round};
    }
    for (uint32_t way = 0; way < kWays; ++way) {
      const uint32_t peer = schedule.peer(round, way);
      const bool is_used = (bits & peer_bit(round, way)) != 0;
      if (is_used != (peer != kNoPeer)) {
        return {is_used ? "a bit without a peer" : "a peer without bits", round};
      }
      if (is_used && (peer >= ranks || peer == rank)) {
        return {peer == rank ? "itself as a peer" : "a peer that is not in the group", round};
      }
    }
    const bool is_one_peer = schedule.peer(round, 0) == schedule.peer(round, 1);
    const bool is_twice = (schedule.send & both) == both || (schedule.await & both) == both;
    if (is_one_peer && is_twice) {
      return {"one peer twice for one direction", round};
    }
  }
  return {};
}

int write_words(const Schedule& schedule, const DescriptorTerms& terms, regs::BarrierDesc* out) {
  if (schedule.rounds == 0 || schedule.rounds > kRoundsMax || terms.group > kGroupMax ||
      terms.prio > kPrioMax) {
    return -EINVAL;
  }
  using Control = regs::barrier_desc::Control;
  out->control = Control::op.put(static_cast<uint32_t>(terms.op)) |
                 Control::rounds.put(schedule.rounds) | Control::prio.put(terms.prio);
  out->group = terms.group;
  out->epoch = terms.epoch;
  out->cookie = terms.cookie;
  out->send = schedule.send;
  out->await = schedule.await;
  return 0;
}

}  // namespace rio::barrier
