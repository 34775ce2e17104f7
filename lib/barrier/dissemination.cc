// Dissemination by rank order. [S1]
#include "lib/barrier/makers.hpp"

namespace rio::barrier::makers {
namespace {

/// (rank + offset) mod ranks. @param rank below `ranks`. @param offset below `ranks`.
uint32_t rank_after(uint32_t rank, uint32_t offset, uint32_t ranks) {
  return rank < ranks - offset ? rank + offset : rank - (ranks - offset);
}

/// (rank - offset) mod ranks. @param rank below `ranks`. @param offset below `ranks`.
uint32_t rank_before(uint32_t rank, uint32_t offset, uint32_t ranks) {
  return rank >= offset ? rank - offset : rank + (ranks - offset);
}

}  // namespace

uint32_t rounds(const Classic& /*scheme*/, uint32_t ranks) {
  return ceil_log(2, ranks);
}

void fill(const Classic& /*scheme*/, uint32_t ranks, uint32_t rank, Schedule* out) {
  uint32_t round = 0;
  for (uint32_t stride = 1; stride < ranks; stride *= 2) {
    out->add(round, rank_after(rank, stride, ranks), true, false);
    out->add(round, rank_before(rank, stride, ranks), false, true);
    ++round;
  }
}

uint32_t rounds(const TwoWay& /*scheme*/, uint32_t ranks) {
  return ceil_log(3, ranks);
}

void fill(const TwoWay& /*scheme*/, uint32_t ranks, uint32_t rank, Schedule* out) {
  uint32_t round = 0;
  for (uint64_t stride = 1; stride < ranks; stride *= 3) {
    const auto offset = static_cast<uint32_t>(stride);
    out->add(round, rank_after(rank, offset, ranks), true, true);
    out->add(round, rank_before(rank, offset, ranks), true, true);
    ++round;
  }
}

}  // namespace rio::barrier::makers
