/// @file
/// A ring of frames with its memory and both ends, for wires within one process.
#pragma once

#include <cstdint>
#include <vector>

#include "fpga/model/frame_ring.hpp"

namespace rio::model {

/// Memory and both ends of one ring.
struct RingBox {
  /// @param bytes, bell as for FrameWriter.
  explicit RingBox(uint32_t bytes, Bell* bell = nullptr)
      : memory(bytes / sizeof(Line)),
        writer(&shared, reinterpret_cast<uint8_t*>(memory.data()), bytes, bell),
        reader(&shared, reinterpret_cast<const uint8_t*>(memory.data()), bytes) {}

  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  FrameRingShared shared;
  std::vector<Line> memory;
  alignas(64) FrameWriter writer;
  alignas(64) FrameReader reader;
};

}  // namespace rio::model
