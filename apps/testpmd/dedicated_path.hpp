/// @file
/// One dedicated queue and its sender: the facts that both ends know.
#pragma once

#include <atomic>
#include <cstdint>

#include "apps/testpmd/test_port.hpp"
#include "pmd/mem/cut.hpp"

namespace rio::testpmd {

/// Transfers of a lane are numbered from 0; both ends have `slots` buffers and use them in turn.
/// The receiver grants transfers once their entries are posted; the sender confirms those that were
/// delivered whole, and only these are looked at. After a failure the lane is broken: the sender
/// lets it run dry, the receiver closes and opens the queue, and both go on with `resume_at`.
struct DedicatedPath {
  enum class State : uint32_t { kRunning, kBroken, kDry };

  TestPort* from = nullptr;
  uint32_t from_pair = 0;
  TestPort* to = nullptr;
  uint32_t queue = 0;
  uint32_t source = 0;  ///< destID of the sender
  uint8_t mbox = 0;
  uint16_t flow = 0;
  uint32_t slots = 0;  ///< power of two
  pmd::mem::Cut cut;   ///< the receiver's; the grant carries it

  // Written by the receiver; release pairs with the sender's acquire: entries are posted.
  alignas(64) std::atomic<uint64_t> granted{0};
  // Written by the sender; release pairs with the receiver's acquire: completions were OK.
  alignas(64) std::atomic<uint64_t> confirmed{0};
  // kRunning -> kBroken -> kDry by the sender, kDry -> kRunning by the receiver.
  std::atomic<State> state{State::kRunning};
  std::atomic<uint64_t> resume_at{0};
};

/// Where a lane's user buffers lie: `offset` into pages of their own.
struct LaneBuffers {
  pmd::DmaMemory memory;
  uint32_t stride_bytes = 0;
  uint32_t offset_bytes = 0;
  [[nodiscard]] uint8_t* at(uint32_t slot) const {
    return static_cast<uint8_t*>(memory.va) + uint64_t{slot} * stride_bytes + offset_bytes;
  }
  [[nodiscard]] pmd::IovaRun run() const { return {memory.va, memory.iova, memory.len_bytes}; }
};

[[nodiscard]] inline uint32_t lane_stride(uint32_t size_bytes, uint32_t offset_bytes) {
  return (size_bytes + offset_bytes + 4095) / 4096 * 4096;
}

/// How many transfers of a size each end has buffers for: about 128 KiB, 2 to 32.
[[nodiscard]] inline uint32_t lane_slots(uint32_t stride_bytes) {
  uint32_t slots = 32;
  while (slots > 2 && slots * stride_bytes > 128 * 1024) {
    slots /= 2;
  }
  return slots;
}

}  // namespace rio::testpmd
