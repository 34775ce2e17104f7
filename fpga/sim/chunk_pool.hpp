/// @file
/// Blocks of one size for lists of events: a block is taken and given back in a few instructions.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fpga/sim/huge_memory.hpp"

namespace rio::sim {

/// The first words of a chunk; events fill the rest. A chunk starts at a multiple of its size.
struct Chunk {
  Chunk* next;
};

/// Keeps memory until it is destroyed; a chunk that was given back is the next one to be taken,
/// while the caches still hold it. One thread.
class ChunkPool {
 public:
  static constexpr size_t kChunkBytes = 256;

  /// @return a chunk with arbitrary contents. Allocates once in thousands of calls.
  /// @throws std::bad_alloc
  [[nodiscard]] Chunk* take() {
    if (free_ == nullptr) [[unlikely]] {
      grow_slow();
    }
    Chunk* const chunk = free_;
    free_ = chunk->next;
    return chunk;
  }
  /// @param chunk one that take() has returned, and that holds nothing any more.
  void give(Chunk* chunk) {
    assert(chunk != nullptr);
    chunk->next = free_;
    free_ = chunk;
  }
  /// Memory that the pool has reserved, in bytes.
  [[nodiscard]] size_t bytes() const { return slabs_.size() * kHugePageBytes; }

 private:
  void grow_slow();

  Chunk* free_ = nullptr;
  std::vector<HugeMemory> slabs_;
};

}  // namespace rio::sim
