#include "pmd/dev/notice_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

class DoorbellQueueTest
    : public test::QueueFixture<DoorbellQueue, ::testing::TestWithParam<uint32_t>> {
 protected:
  void open(uint32_t start) {
    open_ring({.ring = 2, .log2 = 2, .start = start, .entry_bytes = 0, .cpl_bytes = 16});
  }
  void arrive(uint32_t at, uint32_t info) {
    arrive_words(at, {0x1000 + at, 0x2000, 0x3000 + at, info});
  }
};

TEST_P(DoorbellQueueTest, ManyLaps) {
  const uint32_t start = GetParam();
  open(start);
  for (uint32_t step = 0; step < 20; ++step) {
    const uint32_t at = start + step * 3;
    DoorbellEvent got[8];
    EXPECT_EQ(queue_->burst(got, 8), 0);
    for (uint32_t i = 0; i < 3; ++i) {
      arrive(at + i, 0xFFFF - step * 3 - i);
    }
    bar_.expect_write(script_.tail_offset(), at + 3 + 4);  // consumed + size
    ASSERT_EQ(queue_->burst(got, 8), 3);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(got[i].info, 0xFFFF - step * 3 - i);
      EXPECT_EQ(got[i].source, 0x1000 + at + i);
      EXPECT_EQ(got[i].dest_id, 0x2000u);
      EXPECT_EQ(got[i].time_ticks, 0x3000 + at + i);
    }
  }
  EXPECT_EQ(queue_->stats().messages, 60u);
  EXPECT_EQ(queue_->mmio().reads, 0u);
  EXPECT_EQ(queue_->mmio().writes, 20u);
}

INSTANTIATE_TEST_SUITE_P(Starts, DoorbellQueueTest,
                         ::testing::Values(0, 3, 65536 - 7, 0x80000000 - 5, 0xFFFFFFFF - 33,
                                           0xFFFFFFFE));

TEST_F(DoorbellQueueTest, ReturnsCreditsOnceABurstAndNoneWhenEmpty) {
  open(0);
  for (uint32_t i = 0; i < 4; ++i) {
    arrive(i, i);
  }
  DoorbellEvent got[8];
  EXPECT_EQ(queue_->burst(got, 0), 0);
  bar_.expect_write(script_.tail_offset(), 7);
  EXPECT_EQ(queue_->burst(got, 3), 3);
  EXPECT_EQ(bus_->polls, 0u);
  bar_.expect_write(script_.tail_offset(), 8);
  EXPECT_EQ(queue_->burst(got, 3), 1);
  EXPECT_EQ(queue_->burst(got, 3), 0);
  EXPECT_EQ(bus_->polls, 1u);
}

TEST_F(DoorbellQueueTest, LooksAgainAfterPolling) {
  open(0);
  bus_->on_poll = [this] { arrive(0, 0x1234); };
  bar_.expect_write(script_.tail_offset(), 5);
  DoorbellEvent got;
  EXPECT_EQ(queue_->burst(&got, 1), 1);
  EXPECT_EQ(got.info, 0x1234);
  bar_.expect_write(script_.arm_offset(), 0x0010'0001);
  queue_->arm();
}

}  // namespace
}  // namespace rio::pmd
