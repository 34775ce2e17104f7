/// @file
/// Base of the conformance cases of rails: the block, and the status that the card writes.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "tests/conformance/card_test.hpp"

namespace rio::test {

class RailCardTest : public CardTest {
 protected:
  using Control = regs::rail::Control;
  static constexpr uint32_t kPeriodUs = 100;

  void SetUp() override { make_with_place({}); }
  void make_with_place(const CardOptions& options) {
    make(options);
    place_ = std::make_unique<Buffer>(card(), sizeof(regs::RailStatus));
  }

  /// Writes the block's words and another generation, without waiting.
  /// @return the STATUS of a card that does so.
  uint32_t set_words(uint64_t iova, uint32_t period_us, bool enable = true) {
    namespace words = regs::rail;
    const uint32_t gen = Control::gen.get(card().read32(words::control())) + 1;
    const uint32_t control = Control::gen.put(gen) | Control::enable.put(enable ? 1 : 0);
    card().write32(words::base_lo(), static_cast<uint32_t>(iova));
    card().write32(words::base_hi(), static_cast<uint32_t>(iova >> 32));
    card().write32(words::period_us(), period_us);
    card().write32(words::control(), control);
    return control;
  }
  /// Lets the card write to place_.
  void enable(uint32_t period_us = kPeriodUs) {
    const uint32_t wanted = set_words(place_->iova(), period_us);
    card().run();
    ASSERT_EQ(card().read32(regs::rail::status()), wanted);
  }
  void disable() {
    const uint32_t wanted = set_words(place_->iova(), kPeriodUs, false);
    card().run();
    ASSERT_EQ(card().read32(regs::rail::status()), wanted);
  }
  /// The bytes that the card has written, whole or not.
  [[nodiscard]] regs::RailStatus seen() const {
    regs::RailStatus status;
    std::memcpy(&status, place_->va(), sizeof status);
    return status;
  }
  /// The status once the card has written the next one.
  regs::RailStatus next() {
    card().sleep_us(latest_us(kPeriodUs));
    card().run();
    const regs::RailStatus status = seen();
    EXPECT_EQ(status.sequence, status.sequence_end);
    EXPECT_EQ(status.magic, regs::kMagic);
    return status;
  }
  /// Whether the card writes nothing for many periods.
  bool is_silent() {
    std::memset(place_->va(), Buffer::kRed, sizeof(regs::RailStatus));
    card().advance_us(20 * latest_us(kPeriodUs));
    return place_->touched_outside(0) == 0;
  }
  [[nodiscard]] static bool reading(const regs::RailStatus& status) {
    return regs::rail_status::Busy::reading.get(status.busy) != 0;
  }
  [[nodiscard]] static bool receiving(const regs::RailStatus& status) {
    return regs::rail_status::Busy::receiving.get(status.busy) != 0;
  }

  std::unique_ptr<Buffer> place_;
};

}  // namespace rio::test
