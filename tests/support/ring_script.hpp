/// @file
/// A ring's start and stop on the BAR, with offsets as literals of the contract.
#pragma once

#include <cstdint>
#include <cstring>

#include "tests/support/fake_bus.hpp"
#include "tests/support/mock_bar.hpp"

namespace rio::test {

/// One ring of queue pair 0 on a FakeBus.
struct RingScript {
  uint32_t ring;
  uint32_t log2;
  uint32_t start;
  uint32_t entry_bytes;  ///< 0: completions only
  uint32_t cpl_bytes;
  uint64_t iova = FakeBus::kFirstIova;
  uint32_t irq = 0;
  uint32_t mbox = 0;
  uint32_t source = 0;
  uint32_t format = 0;
  uint32_t push_slots = 0;  ///< transmit: in push mode
  uint32_t more_log2 = 0;   ///< log2 of the completions is log2 + this

  [[nodiscard]] uint32_t status_offset() const { return 0x10040 + ring * 8; }
  [[nodiscard]] uint32_t entry_offset() const { return 0x10044 + ring * 8; }
  [[nodiscard]] uint32_t config_offset() const { return 0x11000 + ring * 64; }
  [[nodiscard]] uint32_t control_offset() const { return 0x11024 + ring * 64; }
  [[nodiscard]] uint32_t tail_offset() const { return 0x12000 + ring * 64; }
  [[nodiscard]] uint32_t arm_offset() const { return 0x13000 + ring * 64; }
  [[nodiscard]] uint32_t clog2() const { return log2 + more_log2; }
  [[nodiscard]] uint32_t cpl_at() const { return ((entry_bytes << log2) + 63) & ~63u; }

  /// Expects the accesses before the command.
  void expect_config(MockBar& bar) const {
    const uint64_t base = entry_bytes != 0 ? iova : 0;
    const uint64_t cbase = iova + cpl_at();
    for (uint32_t i = 0; ring == 1 && format != 0 && i < 64; ++i) {
      bar.expect_read(0x3400 + 16 * i, 0xD0 + i);  // RX_MAP.DEST_ID
    }
    if (ring == 5) {
      bar.expect_read(status_offset(), 0);
      bar.expect_write(0x1B000, 3).expect_write(0x1B004, 0);  // RESEND_LIMIT, EARLY_RESERVE
      for (uint32_t i = 0; i < 16; ++i) {
        bar.expect_write(0x1A000 + 64 * i, 0);  // GO
      }
    }
    bar.expect_read(0x10008, 0xFFFF)  // QP.RINGS
        .expect_read(status_offset(), 0);
    for (uint32_t i = 0; i < push_slots * 16; ++i) {
      bar.expect_write(0x1C000 + 4 * i, 0);
    }
    bar.expect_write(config_offset() + 0x00, static_cast<uint32_t>(base))
        .expect_write(config_offset() + 0x04, static_cast<uint32_t>(base >> 32))
        .expect_write(config_offset() + 0x08, static_cast<uint32_t>(cbase))
        .expect_write(config_offset() + 0x0C, static_cast<uint32_t>(cbase >> 32))
        .expect_write(config_offset() + 0x10, log2 | clog2() << 8)
        .expect_write(config_offset() + 0x14, start)
        .expect_write(config_offset() + 0x18, irq)
        .expect_write(config_offset() + 0x28, format)
        .expect_write(config_offset() + 0x2C, 0)
        .expect_write(config_offset() + 0x30, 0)
        .expect_write(config_offset() + 0x34, 0);
    if (irq != 0) {
      bar.expect_write(arm_offset(), 0);
    }
    if (ring >= 8) {
      bar.expect_write(config_offset() + 0x1C, mbox).expect_write(config_offset() + 0x20, source);
    }
    bar.expect_write(tail_offset(), start + (entry_bytes != 0 ? 0 : 1u << log2));
  }
  /// Expects a successful start: generation 1, run, running.
  void expect_start(MockBar& bar) const {
    expect_config(bar);
    bar.expect_read(control_offset(), 0)
        .expect_read(status_offset(), 0)
        .expect_write(control_offset(), 0x10001)
        .expect_read(status_offset(), 0x10001);
  }
  /// Expects the following stop: generation 2.
  void expect_stop(MockBar& bar) const {
    bar.expect_read(control_offset(), 0x10001)
        .expect_read(status_offset(), 0x10001)
        .expect_write(control_offset(), 2)
        .expect_read(status_offset(), 2);
  }
  /// Last word of completion `index` with its phase.
  [[nodiscard]] uint32_t last_word(uint32_t index, uint32_t rest) const {
    return rest | ((index >> clog2() & 1) == 0 ? 0x80000000u : 0u);
  }
  [[nodiscard]] uint8_t* completion(const FakeBus& bus, uint32_t index, size_t block = 0) const {
    return bus.memory(block) + cpl_at() + (index & ((1u << clog2()) - 1)) * cpl_bytes;
  }
  [[nodiscard]] uint8_t* entry(const FakeBus& bus, uint32_t index, size_t block = 0) const {
    return bus.memory(block) + (index & ((1u << log2) - 1)) * entry_bytes;
  }
  /// Writes a 16-byte completion: cookie (garbage), index, word, status.
  void complete(const FakeBus& bus, uint32_t at, uint32_t index, uint32_t word,
                uint32_t status) const {
    const uint32_t words[4] = {0xDEAD0000, index, word, last_word(at, status)};
    std::memcpy(completion(bus, at), words, sizeof words);
  }
};

}  // namespace rio::test
