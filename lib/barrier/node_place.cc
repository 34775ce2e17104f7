#include "lib/barrier/node_place.hpp"

#include <algorithm>
#include <cerrno>

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

}  // namespace rio::barrier
