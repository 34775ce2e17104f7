#include "pmd/dev/queue_pair.hpp"

#include <gtest/gtest.h>

#include "tests/support/fake_bus.hpp"
#include "tests/support/fake_card.hpp"
#include "tests/support/log_capture.hpp"

namespace rio::pmd {
namespace {

using test::FakeBus;
using test::FakeCard;
using test::LogCapture;
using RingId = regs::Ring;

class QueuePairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    CardConfig config;
    config.dest_ids = {0x11, 0x22};
    ASSERT_EQ(Card::open(bus_, config, &card_), 0);
    fake_.log.clear();
    config_.stop_timeout_ms = 2;
  }
  int open(uint32_t qp) { return card_->open_queue_pair(qp, config_, &pair_); }
  [[nodiscard]] uint32_t running(uint32_t qp) {
    uint32_t bits = 0;
    for (uint32_t ring = 0; ring < 16; ++ring) {
      const uint32_t status = fake_.words[0x10000 * (qp + 1) + 0x40 + ring * 8];
      bits |= (status >> 16 & 7u) == 1 ? 1u << ring : 0;
    }
    return bits;
  }

  LogCapture log_;
  FakeCard fake_;
  FakeBus bus_{&fake_};
  QueuePairConfig config_;
  std::unique_ptr<Card> card_;
  std::unique_ptr<QueuePair> pair_;
};

TEST_F(QueuePairTest, OpensDefaultRings) {
  ASSERT_EQ(open(0), 0);
  EXPECT_EQ(running(0), 0x5Fu & ~0x20u);  // tx, shared, doorbell, dma, maint, event
  EXPECT_EQ(pair_->rings(), 0x5Fu & ~0x20u);
  EXPECT_EQ(pair_->index(), 0u);
  EXPECT_EQ(pair_->dest_id(), 0x11u);
  EXPECT_TRUE(pair_->has_windows());
  pair_.reset();
  EXPECT_EQ(running(0), 0u);
  EXPECT_EQ(bus_.live_blocks(), 0u);
  ASSERT_EQ(open(1), 0);
  EXPECT_EQ(running(1), 0x4Fu);  // maintenance belongs to queue pair 0
  EXPECT_EQ(running(0), 0u);
}

TEST_F(QueuePairTest, SizesGoToTheirRings) {
  config_.tx_log2 = 1;
  config_.shared_log2 = 2;
  config_.doorbell_log2 = 3;
  config_.dma_log2 = 4;
  config_.maint_log2 = 5;
  config_.event_log2 = 6;
  config_.dedicated_log2 = 7;
  config_.start_index = 0xFFFFFFF0;
  config_.irq_vectors[1] = 3;
  ASSERT_EQ(open(0), 0);
  DedicatedRxQueue* queue = nullptr;
  ASSERT_EQ(pair_->open_dedicated(2, 0x99, 1, &queue), 0);
  const uint32_t rings[7][2] = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {6, 6}, {10, 7}};
  for (const auto& [ring, log2] : rings) {
    EXPECT_EQ(fake_.words[0x11010 + 64 * ring], log2 * 0x101) << ring;
    EXPECT_EQ(fake_.words[0x11014 + 64 * ring], 0xFFFFFFF0) << ring;
    EXPECT_EQ(fake_.words[0x11018 + 64 * ring], ring == 1 ? 0x103u : 0u) << ring;
  }
  EXPECT_EQ(pair_->tx().free_count(), 2);
  EXPECT_EQ(pair_->shared().free_count(), 4);
  EXPECT_EQ(pair_->dma().free_count(), 16);
  EXPECT_EQ(queue->free_count(), 128);
}

TEST_F(QueuePairTest, OpensChosenRings) {
  config_.rings = ring_bit(RingId::kTx) | ring_bit(RingId::kEvent);
  ASSERT_EQ(open(0), 0);
  EXPECT_EQ(running(0), 0x41u);
  pair_.reset();
  for (const uint32_t bad : {0x80u, 0x100u, 0x10000u}) {
    config_.rings = bad;
    EXPECT_EQ(open(0), -EINVAL);
    EXPECT_TRUE(LogCapture::one_line_with({"cannot be opened"}));
  }
}

TEST_F(QueuePairTest, RefusesBarriersWithoutAnEngine) {
  config_.barriers = true;
  EXPECT_EQ(open(0), -ENOTSUP);
  EXPECT_TRUE(LogCapture::one_line_with({"qp 0", "no barrier engine"}));
  EXPECT_EQ(card_->barrier_counters(0).sent, 0u);
}

TEST_F(QueuePairTest, OpensTheBarrierRingOnlyOnRequest) {
  fake_.add_barrier(0);
  CardConfig identity;
  identity.dest_ids = {0x11, 0x22};
  ASSERT_EQ(Card::open(bus_, identity, &card_), 0);
  EXPECT_EQ(card_->caps().barrier_rounds, 20u);
  EXPECT_EQ(card_->caps().barrier_slots, 16u);
  EXPECT_EQ(card_->caps().barrier_early, 256u);
  ASSERT_EQ(open(0), 0);
  EXPECT_EQ(running(0), 0x5Fu & ~0x20u);
  pair_.reset();
  config_.barriers = true;
  config_.barrier_log2 = 5;
  config_.barrier_resends = 9;
  config_.barrier_reserve = 17;
  config_.stop_timeout_ms = 2;
  fake_.words[0x10008] |= 0x20;
  ASSERT_EQ(open(0), 0);
  EXPECT_EQ(running(0), 0x5Fu | 0x20u);
  EXPECT_EQ(pair_->rings(), 0x5Fu | 0x20u);
  EXPECT_EQ(fake_.words[0x11150], 5 | 6u << 8);  // completions of 16 slots, too
  EXPECT_EQ(fake_.words[0x1B000], 9u);
  EXPECT_EQ(fake_.words[0x1B004], 17u);
  EXPECT_EQ(pair_->barriers().free_count(), 32);
  fake_.words[0x18040] = 1;
  fake_.words[0x18060] = 9;
  EXPECT_EQ(card_->barrier_counters(0).sent, 1u);
  EXPECT_EQ(card_->barrier_counters(0).cancelled, 9u);
  EXPECT_EQ(pair_->stop(), 0);
  EXPECT_EQ(running(0), 0u);
  EXPECT_EQ(open(1), -ENOTSUP);  // this queue pair has no engine
}

TEST_F(QueuePairTest, OmitsMissingRingsByDefault) {
  fake_.words[0x10008] = 0xFF47;  // neither DMA nor maintenance
  ASSERT_EQ(open(0), 0);
  EXPECT_EQ(running(0), 0x47u);
  pair_.reset();
  config_.rings = ring_bit(RingId::kDma);
  EXPECT_EQ(open(0), -ENOENT);
}

TEST_F(QueuePairTest, CannotBeOpenedTwice) {
  ASSERT_EQ(open(0), 0);
  std::unique_ptr<QueuePair> other;
  EXPECT_EQ(card_->open_queue_pair(0, config_, &other), -EBUSY);
  EXPECT_TRUE(LogCapture::one_line_with({"qp 0", "in use", "reset"}));
  EXPECT_EQ(running(0), 0x5Fu & ~0x20u);
  EXPECT_EQ(card_->open_queue_pair(1, config_, &other), 0);
  pair_.reset();
  EXPECT_EQ(open(0), 0);
}

TEST_F(QueuePairTest, IsInUseIfOnlyADedicatedRingRuns) {
  fake_.words[0x10040 + 15 * 8] = 0x10001;
  EXPECT_EQ(open(0), -EBUSY);
  EXPECT_TRUE(LogCapture::one_line_with({"dedicated7"}));
  EXPECT_EQ(running(0), 0x8000u);
}

TEST_F(QueuePairTest, FailureHalfwayStopsTheRest) {
  bus_.allocs_until_failure = 3;
  EXPECT_EQ(open(0), -ENOMEM);
  EXPECT_EQ(pair_, nullptr);
  EXPECT_EQ(running(0), 0u);
  EXPECT_EQ(bus_.live_blocks(), 0u);
}

TEST_F(QueuePairTest, ReportsACardGoneBeforeOpening) {
  fake_.gone = true;
  EXPECT_EQ(open(0), -ENODEV);
  EXPECT_TRUE(LogCapture::one_line_with({"gone"}));
}

TEST_F(QueuePairTest, OpensAndClosesDedicatedQueues) {
  ASSERT_EQ(open(0), 0);
  DedicatedRxQueue* queue = nullptr;
  EXPECT_EQ(pair_->open_dedicated(8, 1, 0, &queue), -EINVAL);
  EXPECT_EQ(pair_->open_dedicated(0, 1, 4, &queue), -EINVAL);
  EXPECT_EQ(queue, nullptr);
  LogCapture::lines().clear();
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(pair_->open_dedicated(i, 0x100 + i, i % 4, &queue), 0);
    EXPECT_EQ(queue, pair_->dedicated(i));
    EXPECT_EQ(fake_.words[0x1121C + 64 * i], i % 4);
    EXPECT_EQ(fake_.words[0x11220 + 64 * i], 0x100 + i);
  }
  EXPECT_EQ(pair_->rings(), (0xFF5Fu & ~0x20u));
  EXPECT_EQ(pair_->open_dedicated(3, 1, 0, &queue), -EBUSY);
  EXPECT_TRUE(LogCapture::one_line_with({"queue 3", "close"}));
  EXPECT_EQ(pair_->close_dedicated(3), 0);
  EXPECT_EQ(pair_->dedicated(3), nullptr);
  EXPECT_EQ(pair_->close_dedicated(3), -ENOENT);
  EXPECT_EQ(pair_->close_dedicated(8), -ENOENT);
  EXPECT_EQ(pair_->dedicated(8), nullptr);
  EXPECT_EQ(pair_->open_dedicated(3, 1, 0, &queue), 0);
}

TEST_F(QueuePairTest, DedicatedCountsOutliveTheQueue) {
  ASSERT_EQ(open(0), 0);
  for (uint32_t round = 1; round <= 3; ++round) {
    DedicatedRxQueue* queue = nullptr;
    ASSERT_EQ(pair_->open_dedicated(3, 1, 0, &queue), 0);
    const DedicatedEntry entries[] = {{0x1000, 1, 256}, {0x1001, 2, 256}};  // the second: unaligned
    EXPECT_EQ(queue->post(entries, 2), 1);
    EXPECT_EQ(pair_->dedicated_totals(3).mmio.writes, round);
    EXPECT_EQ(pair_->close_dedicated(3), 0);
    EXPECT_EQ(pair_->dedicated_totals(3).mmio.writes, round);
    EXPECT_EQ(pair_->dedicated_totals(3).mmio.reads, 0u);
    EXPECT_EQ(pair_->dedicated_totals(3).stats.rejected, round);
    EXPECT_EQ(pair_->dedicated_totals(2).mmio.writes, 0u);
  }
}

TEST_F(QueuePairTest, ADedicatedQueueThatDoesNotStopStaysOpen) {
  ASSERT_EQ(open(0), 0);
  DedicatedRxQueue* queue = nullptr;
  ASSERT_EQ(pair_->open_dedicated(0, 1, 0, &queue), 0);
  fake_.answers = false;
  EXPECT_EQ(pair_->close_dedicated(0), -ETIMEDOUT);
  EXPECT_EQ(pair_->dedicated(0), queue);
  fake_.answers = true;
  EXPECT_EQ(pair_->close_dedicated(0), 0);
  ASSERT_EQ(pair_->open_dedicated(0, 1, 0, &queue), 0);
  fake_.gone = true;
  EXPECT_EQ(pair_->close_dedicated(0), -ENODEV);
  EXPECT_EQ(pair_->dedicated(0), nullptr);
}

TEST_F(QueuePairTest, StopAsksAllRings) {
  ASSERT_EQ(open(0), 0);
  DedicatedRxQueue* queue = nullptr;
  ASSERT_EQ(pair_->open_dedicated(7, 1, 0, &queue), 0);
  EXPECT_EQ(pair_->stop(), 0);
  EXPECT_EQ(running(0), 0u);
  EXPECT_GT(bus_.live_blocks(), 0u);  // flushed entries can still be reaped
  EXPECT_EQ(pair_->stop(), 0);
}

TEST_F(QueuePairTest, StopGoesOnAfterAnError) {
  ASSERT_EQ(open(0), 0);
  fake_.answers = false;
  fake_.log.clear();
  EXPECT_EQ(pair_->stop(), -ETIMEDOUT);
  EXPECT_EQ(fake_.log.size(), 6u);  // each ring was asked
  fake_.answers = true;
  EXPECT_EQ(pair_->stop(), 0);
  EXPECT_EQ(running(0), 0u);
}

TEST_F(QueuePairTest, AStopMayTakeThreeResponseTimeOuts) {
  fake_.words[0x44] = 16000;  // 54 ms, and the slack
  ASSERT_EQ(open(1), 0);
  DedicatedRxQueue* queue = nullptr;
  ASSERT_EQ(pair_->open_dedicated(0, 0x99, 1, &queue), 0);
  fake_.answers = false;
  EXPECT_EQ(pair_->close_dedicated(0), -ETIMEDOUT);
  EXPECT_TRUE(LogCapture::one_line_with({"not stopped within 56 ms"}));
  fake_.answers = true;
}

TEST(StopLimit, FollowsTheResponseTimeOut) {
  EXPECT_EQ(stop_limit_ms(0, 5), 8u);
  EXPECT_EQ(stop_limit_ms(100'000, 1000), 1321u);
  EXPECT_EQ(stop_limit_ms(~0u, 0), stop_limit_ms(60'000'000, 0))
      << "a lost card, or wrong gateware";
}

}  // namespace
}  // namespace rio::pmd
