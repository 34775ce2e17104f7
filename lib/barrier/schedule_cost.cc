#include "lib/barrier/schedule_cost.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>

namespace rio::barrier {
namespace {

/// Hops between two nodes, in dimension order.
uint32_t distance(const CostModel& model, uint32_t a, uint32_t b) {
  uint32_t hops = 0;
  for (uint32_t d = 0; d < model.grid.dimensions; ++d) {
    const uint32_t length = model.grid.lengths[d];
    const uint32_t x = a % length;
    const uint32_t y = b % length;
    const uint32_t straight = x < y ? y - x : x - y;
    hops += model.wraps ? std::min(straight, length - straight) : straight;
    a /= length;
    b /= length;
  }
  return hops;
}

}  // namespace

int estimate_cost(const CostModel& model, const ScheduleOf& schedule_of, Cost* out) {
  const uint32_t nodes = model.grid.nodes();
  Cost cost;
  std::array<uint32_t, kRoundsMax> longest{};
  Schedule schedule;
  for (uint32_t rank = 0; rank < nodes; ++rank) {
    if (const int failure = schedule_of(rank, &schedule); failure != 0) {
      return failure;
    }
    if (broken_rule(schedule, nodes, rank).rule != nullptr) {
      return -EINVAL;
    }
    cost.rounds = std::max(cost.rounds, schedule.rounds);
    cost.messages += static_cast<uint64_t>(std::popcount(schedule.send));
    for (uint32_t i = 0; i < kWays * schedule.rounds; ++i) {
      if ((schedule.send >> i & 1) != 0) {
        uint32_t& most = longest[i / kWays];
        most = std::max(most, distance(model, rank, schedule.peers[i]));
      }
    }
  }
  for (uint32_t d = 0; d < model.grid.dimensions; ++d) {
    cost.diameter += model.wraps ? model.grid.lengths[d] / 2 : model.grid.lengths[d] - 1;
  }
  for (const uint32_t hops : longest) {
    cost.hops += hops;
  }
  cost.ns = cost.hops * model.hop_ns + uint64_t{cost.rounds} * model.card_ns;
  *out = cost;
  return 0;
}

}  // namespace rio::barrier
