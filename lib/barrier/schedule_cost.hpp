/// @file
/// A rough cost of a schedule on a torus or mesh, to compare schemes: without queues, contention
/// and answers, and with all members arriving at once. Each round is taken to last as long as its
/// longest route, which is too long where only few members have such a route.
///
/// Control path. Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <cstdint>
#include <string>

#include "lib/barrier/grid.hpp"
#include "lib/barrier/schedule_check.hpp"

namespace rio::barrier {

/// The network whose nodes are the ranks, in the order of Grid.
struct CostModel {
  Grid grid{};
  bool wraps = true;      ///< a torus; false: a mesh
  uint32_t hop_ns = 108;  ///< time of a notification for one hop
  uint32_t card_ns = 40;  ///< the card's work in a round
};

struct Cost {
  uint32_t rounds = 0;
  uint64_t hops = 0;      ///< sum over the rounds of the longest route of a notification
  uint64_t diameter = 0;  ///< of the network, in hops
  uint64_t messages = 0;  ///< notifications that all members send
  uint64_t ns = 0;        ///< hops * hop_ns + rounds * card_ns; an upper bound
};

/// Estimate the cost of the schedules of all nodes. O(nodes * rounds).
/// @param out set only on success. @return 0, the error of `schedule_of`; -EINVAL: a peer that is
/// not in the grid.
[[nodiscard]] int estimate_cost(const CostModel& model, const ScheduleOf& schedule_of, Cost* out);

}  // namespace rio::barrier
