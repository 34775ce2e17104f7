/// @file
/// Groups with several ranks a node: the ranks of a node meet over shared memory first, then one of
/// them, the leader, takes part in the card's barrier, whose ranks are the indices of the nodes.
///
/// Thread rule: pure functions on their arguments; any thread.
#pragma once

#include <cstdint>

namespace rio::barrier {

/// The node of one rank.
struct NodePlace {
  uint32_t node = 0;         ///< index among the nodes: the leader's rank in the card's schedule
  uint32_t nodes = 0;        ///< ranks of the card's schedule
  uint32_t leader = 0;       ///< the lowest rank of the node
  uint32_t local_rank = 0;   ///< index among the node's ranks, in order of rank; the leader's is 0
  uint32_t local_ranks = 0;  ///< ranks of the node

  [[nodiscard]] bool is_leader() const { return local_rank == 0; }
  bool operator==(const NodePlace& other) const = default;
};

/// The place of a rank where each node has `local` consecutive ranks, the last one perhaps fewer.
/// @param out set only on success.
/// @return 0; -EINVAL: `rank` is not below `ranks`, or `local` is 0.
[[nodiscard]] int place_in_blocks(uint32_t ranks, uint32_t local, uint32_t rank, NodePlace* out);

}  // namespace rio::barrier
