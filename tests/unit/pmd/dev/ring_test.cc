#include "pmd/dev/ring.hpp"

#include <gtest/gtest.h>

#include "tests/support/caps.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/ring_script.hpp"

namespace rio::pmd {
namespace {

using test::FakeBus;
using test::LogCapture;
using test::MockBar;

constexpr uint32_t kAllOnes = 0xFFFFFFFF;

class RingTest : public ::testing::Test {
 protected:
  [[nodiscard]] RingConfig config() const {
    RingConfig config;
    config.ring = script_.ring;
    config.log2 = script_.log2;
    config.start_index = script_.start;
    config.timeout_ms = 2;
    return config;
  }
  int start() { return start(config()); }
  int start(const RingConfig& with) {
    return ring_.start(bus_, caps_, with, {script_.entry_bytes, script_.cpl_bytes});
  }
  void expect_command(uint32_t control, uint32_t status, uint32_t write) {
    bar_.expect_read(script_.control_offset(), control)
        .expect_read(script_.status_offset(), status)
        .expect_write(script_.control_offset(), write);
  }

  LogCapture log_;
  MockBar bar_;
  FakeBus bus_{&bar_};
  Caps caps_ = test::full_caps();
  test::RingScript script_{.ring = 3, .log2 = 2, .start = 0, .entry_bytes = 32, .cpl_bytes = 16};
  Ring ring_;
};

TEST_F(RingTest, StartsAndStops) {
  script_.expect_start(bar_);
  ASSERT_EQ(start(), 0);
  EXPECT_TRUE(ring_.running());
  bar_.verify();
  script_.expect_stop(bar_);
  EXPECT_EQ(ring_.stop(), 0);
  EXPECT_FALSE(ring_.running());
  EXPECT_EQ(LogCapture::lines().size(), 0u);
}

TEST_F(RingTest, AsksForRelaxedPayloadWhereTheCardHasIt) {
  caps_.relaxed = true;
  script_.format = 0x100;
  script_.expect_start(bar_);
  ASSERT_EQ(start(), 0);
  script_.expect_stop(bar_);
  EXPECT_EQ(ring_.stop(), 0);
}

TEST_F(RingTest, CompletionsAreAlignedTo64Bytes) {
  script_ = {.ring = 1, .log2 = 1, .start = 0, .entry_bytes = 8, .cpl_bytes = 32};
  EXPECT_EQ(script_.cpl_at(), 64u);
  script_.expect_start(bar_);
  ASSERT_EQ(start(), 0);
  EXPECT_EQ(static_cast<uint8_t*>(ring_.completions()), bus_.memory(0) + 64);
  script_.expect_stop(bar_);
  EXPECT_EQ(ring_.stop(), 0);
}

TEST_F(RingTest, CompletionsOnlyRingStartsWithCredits) {
  script_ = {.ring = 2, .log2 = 3, .start = 100, .entry_bytes = 0, .cpl_bytes = 16};
  script_.expect_start(bar_);  // base 0, tail start + 8
  ASSERT_EQ(start(), 0);
  script_.expect_stop(bar_);
  EXPECT_EQ(ring_.stop(), 0);
}

TEST_F(RingTest, DedicatedRingsSetTheirFilter) {
  script_ = {.ring = 15, .log2 = 2, .start = 0, .entry_bytes = 16, .cpl_bytes = 16};
  script_.mbox = 3;
  script_.source = 0x1234;
  script_.expect_start(bar_);
  RingConfig with = config();
  with.mbox = 3;
  with.source = 0x1234;
  ASSERT_EQ(start(with), 0);
  script_.expect_stop(bar_);
  EXPECT_EQ(ring_.stop(), 0);
}

TEST_F(RingTest, SetsTheInterruptVector) {
  script_.irq = 7 | 1u << 8 | 50u << 16;
  script_.expect_start(bar_);
  RingConfig with = config();
  with.irq_vector = 7;
  with.irq_moderation_us = 50;
  ASSERT_EQ(start(with), 0);
  script_.expect_stop(bar_);
  EXPECT_EQ(ring_.stop(), 0);
}

class RingPhaseTest : public RingTest, public ::testing::WithParamInterface<uint32_t> {};

TEST_P(RingPhaseTest, AFreshRingHasNoCompletions) {
  script_.start = GetParam();
  script_.expect_start(bar_);
  ASSERT_EQ(start(), 0);
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t index = script_.start + i;
    uint32_t words[4];
    std::memcpy(words, script_.completion(bus_, index), sizeof words);
    EXPECT_EQ(words[3], script_.last_word(index, 0) ^ 0xFFFFFFFF) << index;
    EXPECT_EQ(words[0] & words[1] & words[2], 0xFFFFFFFF) << index;
  }
  script_.expect_stop(bar_);
  EXPECT_EQ(ring_.stop(), 0);
}

INSTANTIATE_TEST_SUITE_P(Starts, RingPhaseTest,
                         ::testing::Values(0, 1, 3, 4, 6, 8, 65535, 0x7FFFFFFE, 0xFFFFFFFC,
                                           0xFFFFFFFE));

TEST_F(RingTest, RefusesSizes) {
  caps_.ring_log2_min = 3;
  caps_.ring_log2_max = 5;
  for (const uint32_t log2 : {2u, 6u, 31u, 64u}) {
    script_.log2 = log2;
    EXPECT_EQ(start(), -EINVAL);
    EXPECT_TRUE(LogCapture::one_line_with({"fake:0", "qp 0", "dma", "2^3 to 2^5"}));
  }
  caps_.ring_log2_min = 0;
  caps_.ring_log2_max = 31;
  script_.log2 = 0;
  EXPECT_EQ(start(), -EINVAL);
  script_.log2 = 20;
  EXPECT_EQ(start(), -EINVAL);
}

TEST_F(RingTest, RefusesVectorsAndMailboxes) {
  RingConfig with = config();
  with.irq_vector = 8;
  EXPECT_EQ(start(with), -EINVAL);
  EXPECT_TRUE(LogCapture::one_line_with({"vector 8", "has 8"}));
  with = config();
  with.mbox = 4;
  EXPECT_EQ(start(with), -EINVAL);
  EXPECT_TRUE(LogCapture::one_line_with({"mailbox 4"}));
}

TEST_F(RingTest, RefusesMissingRings) {
  bar_.expect_read(0x10008, 0xFFF7);
  EXPECT_EQ(start(), -ENOENT);
  EXPECT_TRUE(LogCapture::one_line_with({"no ring dma"}));
}

TEST_F(RingTest, RefusesARunningRing) {
  for (const uint32_t state : {1u, 2u}) {
    bar_.expect_read(0x10008, 0xFFFF).expect_read(script_.status_offset(), 5 | state << 16);
    EXPECT_EQ(start(), -EBUSY);
    EXPECT_TRUE(LogCapture::one_line_with({"runs already", "reset"}));
  }
}

TEST_F(RingTest, OnlyRunningAndStoppingRingsAreBusy) {
  Mmio bar = bus_.bar();
  const int busy[4] = {0, 1, 1, 0};
  for (uint32_t state = 0; state < 4; ++state) {
    bar_.expect_read(script_.status_offset(), 5 | state << 16);
    EXPECT_EQ(Ring::busy(bar, 0, 3), busy[state]);
  }
}

TEST_F(RingTest, ReportsLackOfMemory) {
  bus_.allocs_until_failure = 0;
  bar_.expect_read(0x10008, 0xFFFF).expect_read(script_.status_offset(), 0);
  EXPECT_EQ(start(), -ENOMEM);
}

TEST_F(RingTest, GenerationsDifferFromTheLastOnes) {
  script_.expect_config(bar_);
  expect_command(0xFFFE, 0xFFFF, 0x10000);  // 0xFFFF was answered already: 0 is next
  bar_.expect_read(script_.status_offset(), 0x10000);
  ASSERT_EQ(start(), 0);
  expect_command(0x10000, 0x10000, 1);
  bar_.expect_read(script_.status_offset(), 1);
  EXPECT_EQ(ring_.stop(), 0);
}

TEST_F(RingTest, WaitsForTheEchoAndPolls) {
  script_.expect_config(bar_);
  expect_command(0, 0, 0x10001);
  bar_.expect_read(script_.status_offset(), 0)
      .expect_read(script_.status_offset(), 0x10000)  // another generation
      .expect_read(script_.status_offset(), 0x20001)  // not yet running
      .expect_read(script_.status_offset(), 0x10001);
  RingConfig with = config();
  with.timeout_ms = 1000;
  ASSERT_EQ(start(with), 0);
  EXPECT_EQ(bus_.polls, 3u);
  expect_command(0x10001, 0x10001, 2);
  bar_.expect_read(script_.status_offset(), 0x20002)  // stopping
      .expect_read(script_.status_offset(), 0x10002)  // still running
      .expect_read(script_.status_offset(), 0x30002)  // error: it may still write
      .expect_read(script_.status_offset(), 0x00002);
  EXPECT_EQ(ring_.stop(), 0);
  EXPECT_EQ(bus_.polls, 6u);
}

TEST_F(RingTest, AnOrphanIsAskedToStopOnlyIfItRuns) {
  bar_.expect_read(script_.control_offset(), 2).expect_read(script_.status_offset(), 2);
  EXPECT_EQ(Ring::stop_orphan(bus_, 0, script_.ring, 2), 0);
  bar_.verify();
  bar_.expect_read(script_.control_offset(), 0x10001);
  script_.expect_stop(bar_);
  EXPECT_EQ(Ring::stop_orphan(bus_, 0, script_.ring, 2), 0);
  bar_.verify();
  // In state ERROR, not asked to run: the next user needs a stop.
  bar_.expect_read(script_.control_offset(), 2).expect_read(script_.status_offset(), 0x30002);
  expect_command(2, 0x30002, 3);
  bar_.expect_read(script_.status_offset(), 3);
  EXPECT_EQ(Ring::stop_orphan(bus_, 0, script_.ring, 2), 0);
}

TEST_F(RingTest, AFailedStartIsReported) {
  script_.expect_config(bar_);
  expect_command(0, 0, 0x10001);
  bar_.expect_read(script_.status_offset(), 0x01030001)
      .expect_read(script_.status_offset(), 0x01030001)
      .expect_read(script_.entry_offset(), 0);
  // A ring in state ERROR cannot start: it is stopped for the next user.
  expect_command(0x10001, 0x01030001, 2);
  bar_.expect_read(script_.status_offset(), 2);
  EXPECT_EQ(start(), -EIO);
  EXPECT_TRUE(LogCapture::one_line_with({"refused", "config", "capabilities"}));
  EXPECT_FALSE(ring_.running());  // no further access to the BAR
}

TEST_F(RingTest, AFailedStartKeepsTheMemoryUnlessItStops) {
  {
    Ring ring;
    script_.expect_config(bar_);
    expect_command(0, 0, 0x10001);
    bar_.expect_read(script_.status_offset(), 0x01030001)
        .expect_read(script_.status_offset(), 0x01030001)
        .expect_read(script_.entry_offset(), 0);
    for (int i = 0; i < 2; ++i) {  // at once, and by the destructor
      expect_command(0x10001, 0x01030001, 2);
      bar_.expect_reads(script_.status_offset(), 0x01030002).expect_read(0, 0x52494F43);
    }
    bar_.expect_read(script_.status_offset(), 0x01030002);
    EXPECT_EQ(ring.start(bus_, caps_, config(), {32, 16}), -EIO);
  }
  EXPECT_EQ(bus_.live_blocks(), 1u);
}

TEST_F(RingTest, AStartThatTimesOutStopsBeforeItFrees) {
  {
    Ring ring;
    script_.expect_config(bar_);
    expect_command(0, 0, 0x10001);
    bar_.expect_reads(script_.status_offset(), 0)
        .expect_read(0, 0x52494F43)
        .expect_read(script_.status_offset(), 0)
        .expect_read(script_.entry_offset(), 0);
    EXPECT_EQ(ring.start(bus_, caps_, config(), {32, 16}), -ETIMEDOUT);
    EXPECT_TRUE(LogCapture::one_line_with({"start", "2 ms", "stopped", "reset"}));
    EXPECT_GT(bus_.polls, 0u);
    expect_command(0x10001, 0, 2);
    bar_.expect_read(script_.status_offset(), 2);
  }
  EXPECT_EQ(bus_.live_blocks(), 0u);
}

TEST_F(RingTest, AStopThatTimesOutKeepsTheMemory) {
  {
    Ring ring;
    script_.expect_start(bar_);
    ASSERT_EQ(ring.start(bus_, caps_, config(), {32, 16}), 0);
    for (int i = 0; i < 2; ++i) {  // once on request, once by the destructor
      expect_command(0x10001, 0x10001, 2);
      bar_.expect_reads(script_.status_offset(), 0x20002)
          .expect_read(0, 0x52494F43)
          .expect_read(script_.status_offset(), 0x20002);
    }
    EXPECT_EQ(ring.stop(), -ETIMEDOUT);
    EXPECT_TRUE(ring.running());
    EXPECT_TRUE(LogCapture::one_line_with({"dma", "2 ms", "stopping", "reset"}));
  }
  EXPECT_EQ(bus_.live_blocks(), 1u);
}

TEST_F(RingTest, ACardMayGoBeforeTheStart) {
  bar_.expect_read(0x10008, kAllOnes)
      .expect_read(script_.status_offset(), kAllOnes)
      .expect_read(0, kAllOnes);
  EXPECT_EQ(start(), -ENODEV);
  EXPECT_TRUE(LogCapture::one_line_with({"gone"}));
}

TEST_F(RingTest, ACardMayGoDuringTheStart) {
  script_.expect_config(bar_);
  expect_command(0, 0, 0x10001);
  bar_.expect_read(script_.status_offset(), kAllOnes).expect_read(0, kAllOnes);
  EXPECT_EQ(start(), -ENODEV);
  EXPECT_TRUE(LogCapture::one_line_with({"gone"}));
  EXPECT_FALSE(ring_.running());
}

TEST_F(RingTest, AGoneCardCountsAsStopped) {
  {
    Ring ring;
    script_.expect_start(bar_);
    ASSERT_EQ(ring.start(bus_, caps_, config(), {32, 16}), 0);
    expect_command(kAllOnes, kAllOnes, 0);
    bar_.expect_read(script_.status_offset(), kAllOnes).expect_read(0, kAllOnes);
    EXPECT_EQ(ring.stop(), -ENODEV);
    EXPECT_TRUE(LogCapture::one_line_with({"gone"}));
  }
  EXPECT_EQ(bus_.live_blocks(), 0u);
}

TEST_F(RingTest, AllOnesInAStatusAloneMeanNothing) {
  script_.expect_config(bar_);
  expect_command(0, 0, 0x10001);
  bar_.expect_read(script_.status_offset(), kAllOnes)
      .expect_read(0, 0x52494F43)
      .expect_read(script_.status_offset(), 0x10001);
  EXPECT_EQ(start(), 0);
  bar_.expect_read(script_.status_offset(), kAllOnes).expect_read(0, 0x52494F43);
  EXPECT_EQ(ring_.state(nullptr, nullptr), -EPROTO);
  script_.expect_stop(bar_);
  EXPECT_EQ(ring_.stop(), 0);
}

TEST_F(RingTest, StateIsDecoded) {
  script_.expect_start(bar_);
  ASSERT_EQ(start(), 0);
  bar_.expect_read(script_.status_offset(), 0x04030001).expect_read(script_.entry_offset(), 77);
  regs::RingError error{};
  uint32_t entry = 0;
  EXPECT_EQ(ring_.state(&error, &entry), static_cast<int>(regs::RingState::kError));
  EXPECT_EQ(error, regs::RingError::kMismatch);
  EXPECT_EQ(entry, 77u);
  bar_.expect_read(script_.status_offset(), kAllOnes).expect_read(0, kAllOnes);
  EXPECT_EQ(ring_.state(&error, &entry), -ENODEV);
  expect_command(0x10001, 0x04030001, 2);
  bar_.expect_read(script_.status_offset(), 2);
  EXPECT_EQ(ring_.stop(), 0);
}

}  // namespace
}  // namespace rio::pmd
