#include "pmd/dev/notice_queue.hpp"

#include <gtest/gtest.h>

#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

class EventQueueTest : public test::QueueFixture<EventQueue, ::testing::TestWithParam<uint32_t>> {
 protected:
  void open(uint32_t start) {
    open_ring({.ring = 6, .log2 = 1, .start = start, .entry_bytes = 0, .cpl_bytes = 32});
  }
  void arrive(uint32_t at, uint32_t type) { arrive_words(at, {type, 0x11, 0x22, 1, 2, 3, 4, 0}); }
};

TEST_P(EventQueueTest, ManyLaps) {
  const uint32_t start = GetParam();
  open(start);
  for (uint32_t step = 0; step < 20; ++step) {
    CardEvent got[4];
    EXPECT_EQ(queue_->burst(got, 4), 0);
    arrive(start + step, 1 + step % 5);
    bar_.expect_write(script_.tail_offset(), start + step + 3);
    ASSERT_EQ(queue_->burst(got, 4), 1);
    EXPECT_EQ(static_cast<uint32_t>(got[0].type), 1 + step % 5);
    EXPECT_EQ(got[0].source, 0x11u);
    EXPECT_EQ(got[0].info, 0x22u);
    for (uint32_t i = 0; i < 4; ++i) {
      EXPECT_EQ(got[0].data[i], i + 1);
    }
  }
  EXPECT_EQ(queue_->stats().messages, 20u);
  EXPECT_EQ(queue_->mmio().reads, 0u);
}

INSTANTIATE_TEST_SUITE_P(Starts, EventQueueTest,
                         ::testing::Values(0, 1, 65535, 0x7FFFFFFF, 0xFFFFFFF0));

TEST_F(EventQueueTest, PassesUnknownTypesOn) {
  open(0);
  arrive(0, 0x101);
  arrive(1, 0xFF);
  bar_.expect_write(script_.tail_offset(), 4);
  CardEvent got[2];
  ASSERT_EQ(queue_->burst(got, 2), 2);
  EXPECT_EQ(static_cast<uint32_t>(got[0].type), 0u);  // not a port-write
  EXPECT_EQ(static_cast<uint32_t>(got[1].type), 0xFFu);
}

TEST_F(EventQueueTest, PollsWhenEmptyAndLooksAgain) {
  open(0);
  bus_->on_poll = [this] { arrive(0, 2); };
  bar_.expect_write(script_.tail_offset(), 3);
  CardEvent got;
  EXPECT_EQ(queue_->burst(&got, 1), 1);
  EXPECT_EQ(got.type, regs::EventType::kLink);
  EXPECT_EQ(bus_->polls, 1u);
}

}  // namespace
}  // namespace rio::pmd
