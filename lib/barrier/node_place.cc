#include "lib/barrier/node_place.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <vector>

namespace rio::barrier {

int place_in_blocks(uint32_t ranks, uint32_t local, uint32_t rank, NodePlace* out) {
  if (rank >= ranks || local == 0) {
    return -EINVAL;
  }
  const uint32_t node = rank / local;
  const uint32_t leader = node * local;
  *out = {.node = node,
          .nodes = (ranks - 1) / local + 1,
          .leader = leader,
          .local_rank = rank - leader,
          .local_ranks = std::min(local, ranks - leader)};
  return 0;
}

int place_by_id(std::span<const uint32_t> node_ids, uint32_t rank, NodePlace* out) {
  if (rank >= node_ids.size()) {
    return -EINVAL;
  }
  // Ranks of one node become neighbours, its leader first.
  std::vector<uint32_t> order(node_ids.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return node_ids[a] != node_ids[b] ? node_ids[a] < node_ids[b] : a < b;
  });
  NodePlace place;
  std::vector<uint32_t> leaders;
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    while (end < order.size() && node_ids[order[end]] == node_ids[order[begin]]) {
      ++end;
    }
    leaders.push_back(order[begin]);
    if (node_ids[order[begin]] == node_ids[rank]) {
      const auto at = std::find(order.begin() + begin, order.begin() + end, rank);
      place.leader = order[begin];
      place.local_rank = static_cast<uint32_t>(at - (order.begin() + begin));
      place.local_ranks = static_cast<uint32_t>(end - begin);
    }
  }
  place.nodes = static_cast<uint32_t>(leaders.size());
  place.node = static_cast<uint32_t>(std::count_if(
      leaders.begin(), leaders.end(), [&](uint32_t leader) { return leader < place.leader; }));
  *out = place;
  return 0;
}

}  // namespace rio::barrier
