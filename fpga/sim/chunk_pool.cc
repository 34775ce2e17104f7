#include "fpga/sim/chunk_pool.hpp"

#include <new>

namespace rio::sim {

void ChunkPool::grow_slow() {
  slabs_.push_back(reserve_huge(kHugePageBytes));
  auto* const bytes = static_cast<std::byte*>(slabs_.back().get());
  for (size_t at = kHugePageBytes; at != 0; at -= kChunkBytes) {
    give(new (bytes + at - kChunkBytes) Chunk{nullptr});
  }
}

}  // namespace rio::sim
