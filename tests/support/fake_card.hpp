/// @file
/// A BAR that answers handshakes at once, and does nothing else.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pmd/bus/mmio.hpp"

namespace rio::test {

/// Offsets are literals of the contract. Blocks: ID, receive map, port, and `qps` queue pairs with
/// windows; all rings. A test may change any word and switch the answers off.
class FakeCard final : public pmd::MmioTap {
 public:
  explicit FakeCard(uint32_t qps = 2) {
    words[0x0] = 0x52494F43;
    words[0x4] = 0x00000201;
    words[0x18] = qps | 1u << 8 | 12u << 12 | 8u << 17;
    words[0x1C] = 64 | 32u << 10 | 4u << 20 | 16u << 27;
    words[0x20] = 3 | 8u << 4 | 12u << 8 | 8u << 12 | 3u << 16;
    words[0x24] = 0x77;
    words[0x28] = 8;
    words[0x2C] = 65536;
    chain({0x2000, 0x4000});
    words[0x2000] = 0x202;
    words[0x4000] = 0x203;
    std::vector<uint32_t> offsets = {0x2000, 0x4000};
    for (uint32_t qp = 0; qp < qps; ++qp) {
      const uint32_t base = 0x10000 * (qp + 1);
      words[base] = 0x204 | qp << 16;
      words[base + 0x8] = 0xFF5F;
      words[base + 0xC] = 0xFFFFFFFF;
      words[base + 0x4000] = 0x205 | qp << 16;
      offsets.push_back(base);
      offsets.push_back(base + 0x4000);
    }
    chain(offsets);
  }

  /// Puts a barrier engine of 20 rounds and 16 slots at the head of the list.
  void add_barrier(uint32_t qp) {
    const uint32_t base = 0x10000 * (qp + 1) + 0x8000;
    words[base] = 0x206 | qp << 16;
    words[base + 0x4] = words[0x8];
    words[base + 0x8] = 20 | 16u << 5 | 256u << 10;
    words[0x8] = base;
  }

  /// Puts a rails block at the head of the list.
  void add_rail() {
    words[0x6000] = 0x207;
    words[0x6004] = words[0x8];
    words[0x8] = 0x6000;
  }

  /// Writes ID.NEXT and the NEXT of each block.
  void chain(const std::vector<uint32_t>& offsets) {
    uint32_t* next = &words[0x8];
    for (const uint32_t offset : offsets) {
      *next = offset;
      next = &words[offset + 4];
    }
    *next = 0;
  }

  uint32_t on_read(uint32_t offset) override {
    ++reads;
    return gone ? 0xFFFFFFFF : words[offset];
  }

  void on_write(uint32_t offset, uint32_t value) override {
    log.push_back({offset, value});
    words[offset] = value;
    if (!answers) {
      return;
    }
    if (offset == 0x1000) {
      words[0x40] = value;  // GEN_ACK
      for (uint32_t qp = 0; qp < 31; ++qp) {
        words[0x10000 * (qp + 1) + 0xC] = words[0x1100 + 4 * qp];
      }
    } else if (offset == 0x3000) {
      words[0x2008] = value;  // APPLIED
    } else if (offset == 0x700C) {
      words[0x6008] = value;  // STATUS of rails
    } else if (offset >= 0x1100 && offset < 0x1100 + 31 * 4) {
      if (words[0x1000] != 0) {
        words[0x10000 * ((offset - 0x1100) / 4 + 1) + 0xC] = value;
      }
    } else if (offset >= 0x10000 && (offset & 0xFFFF) >= 0x1000 && (offset & 0xFFFF) < 0x1400 &&
               (offset & 0x3F) == 0x24) {
      const uint32_t base = offset & ~0xFFFFu;
      const uint32_t ring = (offset & 0x3FF) / 64;
      words[base + 0x40 + ring * 8] = value;  // gen, and run as state
    } else if (offset >= 0x10000 && (offset & 0xFFFF) >= 0x5000 && (offset & 0xFFFF) < 0x5200 &&
               (offset & 0x3F) == 0x24) {
      const uint32_t base = offset & ~0xFFFFu;
      words[base + 0x4040 + ((offset & 0x1FF) / 64) * 4] = value;  // window status
    }
  }

  struct Write {
    uint32_t offset;
    uint32_t value;
    bool operator==(const Write&) const = default;
  };

  std::map<uint32_t, uint32_t> words;
  std::vector<Write> log;
  uint64_t reads = 0;
  bool answers = true;
  bool gone = false;
};

}  // namespace rio::test
