// Reads and writes of many packets between two cards: pulled as one, they have the results that
// packets have.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/fuzz/fuzz_card.hpp"
#include "tests/support/env_number.hpp"
#include "tests/unit/fpga/model/dma_cards.hpp"

namespace rio::test {
namespace {

class DmaPull : public testing::Test {
 protected:
  DmaPull() {
    fill(cards_.local(), 1);
    fill(cards_.remote(), 2);
  }
  void expect_one(Status status, uint32_t bytes) {
    const std::vector<DmaResult> all = cards_.take();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].status, status);
    EXPECT_EQ(all[0].bytes, bytes);
  }
  [[nodiscard]] bool same(uint32_t length) {
    return std::equal(cards_.local().va, cards_.local().va + length, cards_.remote().va);
  }

  DmaCards cards_{false};
};

TEST_F(DmaPull, LargeDataIsCopiedOnce) {
  constexpr uint32_t kBytes = 200'001;
  cards_.post({DmaOp::kNwriteR, kBytes, 0, 0, 1});
  cards_.settle();
  expect_one(Status::kOk, kBytes);
  EXPECT_EQ(cards_.puller(1).pulls, 1u);
  EXPECT_TRUE(same(kBytes));
  fill(cards_.remote(), 3);
  cards_.post({DmaOp::kNread, kBytes, 0, 0, 2});
  cards_.settle();
  expect_one(Status::kOk, kBytes);
  EXPECT_EQ(cards_.puller(0).pulls, 1u);
  EXPECT_TRUE(same(kBytes));
  const model::PortCounts counts = cards_.node(0).card().statistics().port;
  EXPECT_EQ(counts.tx_packets, 2 * ((kBytes - 1) / 4096 + 1)) << "not as many as packets";
  EXPECT_EQ(cards_.node(1).card().statistics().port.rx_packets, counts.tx_packets);
}

/// A partner on another machine cannot read this process's memory, although its wire carries runs.
TEST(DmaPullFar, APartnerElsewhereGetsPackets) {
  DmaCards cards(false, LongMessages::kPushed);
  constexpr uint32_t kBytes = 100'000;
  cards.post({DmaOp::kNwriteR, kBytes, 0, 0, 1});
  cards.post({DmaOp::kNread, kBytes, kBytes, 0, 2});
  cards.settle();
  EXPECT_EQ(cards.take(),
            (std::vector<DmaResult>{{1, Status::kOk, kBytes}, {2, Status::kOk, kBytes}}));
  EXPECT_EQ(cards.puller(0).pulls + cards.puller(1).pulls, 0u);
}

/// The answer to a read says where the bytes are. It is worth nothing once the window is closed.
TEST_F(DmaPull, NothingIsReadThroughAWindowThatHasClosed) {
  cards_.post({DmaOp::kNread, 100'000, 0, 0, 1});
  cards_.steps(0, 2);
  cards_.steps(1, 2);
  cards_.set_window(false);
  cards_.steps(1, 20);
  ASSERT_TRUE(cards_.window_is_set());
  cards_.settle();
  expect_one(Status::kErrorResponse, 0);
}

TEST_F(DmaPull, NothingIsReadThroughAWindowThatClosesMeanwhile) {
  cards_.puller(0).after_pull = [this] {
    cards_.set_window(false);
    cards_.steps(1, 20);
    EXPECT_TRUE(cards_.window_is_set());
  };
  cards_.post({DmaOp::kNread, 100'000, 0, 0, 1});
  cards_.settle();
  EXPECT_EQ(cards_.puller(0).pulls, 1u);
  expect_one(Status::kErrorResponse, 0);
}

/// A user that unmaps memory holds the card meanwhile, and may free it then.
TEST_F(DmaPull, NothingIsReadFromMemoryThatHasGone) {
  cards_.post({DmaOp::kNread, 100'000, 0, 0, 1});
  cards_.steps(0, 2);
  cards_.steps(1, 2);
  cards_.node(1).card().with_lock(
      [](void* arg) {
        auto& cards = *static_cast<DmaCards*>(arg);
        cards.node(1).unmap(cards.remote());
      },
      &cards_);
  cards_.settle();
  EXPECT_EQ(cards_.puller(0).pulls, 0u);
  expect_one(Status::kErrorResponse, 0);
}

/// Going to sleep takes the lock, too, but no memory goes.
TEST_F(DmaPull, AToldAddressHoldsBetweenSteps) {
  cards_.post({DmaOp::kNread, 100'000, 0, 0, 1});
  cards_.steps(0, 2);
  cards_.steps(1, 2);
  bool is_called = false;
  cards_.node(1).card().between_steps([](void* arg) { *static_cast<bool*>(arg) = true; },
                                      &is_called);
  EXPECT_TRUE(is_called);
  cards_.steps(0, 4);
  EXPECT_EQ(cards_.puller(0).pulls, 1u);
  expect_one(Status::kOk, 100'000);
}

/// A read ends the pulls of the writes before it. Other partners wait while the card pulls, so a
/// step is bounded whatever comes between the writes.
TEST_F(DmaPull, AStepPullsABoundedNumberOfBytes) {
  constexpr uint32_t kWrites = 8;
  constexpr uint64_t kTurnBytes = 512 * 1024;
  for (uint32_t i = 0; i < kWrites; ++i) {
    cards_.post({DmaOp::kNwriteR, model::kLongBytesMax, 0, 0, 2 * i});
    cards_.post({DmaOp::kNread, 30'000, 600'000, 400'000, 2 * i + 1});
  }
  cards_.steps(0, 4);
  uint64_t most = 0;
  for (uint32_t i = 0; i < 2 * kWrites; ++i) {
    const uint64_t before = cards_.puller(1).bytes;
    cards_.steps(1, 1);
    most = std::max(most, cards_.puller(1).bytes - before);
  }
  EXPECT_EQ(cards_.puller(1).bytes, uint64_t{kWrites} * model::kLongBytesMax);
  EXPECT_EQ(most, kTurnBytes);
  cards_.settle();
  const std::vector<DmaResult> all = cards_.take();
  ASSERT_EQ(all.size(), 2 * kWrites);
  for (const DmaResult& one : all) {
    EXPECT_EQ(one.status, Status::kOk) << one.cookie;
  }
}

/// Its user may change the memory once the completion is there.
TEST_F(DmaPull, AWriteThatHasEndedIsNotPulled) {
  constexpr uint32_t kBytes = 100'000;
  cards_.post({DmaOp::kNwriteR, kBytes, 0, 0, 1});
  cards_.steps(0, 2);
  cards_.dma().request_stop();
  for (uint32_t i = 0; i < 100; ++i) {
    cards_.clock().advance_ns(kResponseTimeoutUs * 100);
    cards_.steps(0, 20);
  }
  expect_one(Status::kResponseTimeout, 0);
  cards_.settle();
  EXPECT_EQ(cards_.puller(1).pulls, 0u);
  EXPECT_FALSE(same(kBytes));
}

TEST_F(DmaPull, AWriteIsNotPulledFromACardThatWasReset) {
  constexpr uint32_t kBytes = 100'000;
  cards_.post({DmaOp::kNwriteR, kBytes, 0, 0, 1});
  cards_.steps(0, 2);
  cards_.node(0).lose_state();
  cards_.steps(1, 40);
  EXPECT_EQ(cards_.puller(1).pulls, 0u);
  EXPECT_FALSE(same(kBytes));
}

/// A partner may write anything into a frame.
TEST(DmaPullForeign, BadRequestsAreRefused) {
  constexpr uint64_t kTooFar = 4096;  // bytes of the window of a FuzzCard
  const struct {
    DmaOp op;
    uint64_t address;
    model::PullPart part;
    uint16_t length;
  } cases[] = {
      {DmaOp::kNwriteR, 0, {0x1000, kTooFar + 1, 0}, 16},
      {DmaOp::kNwriteR, kTooFar, {0x1000, 1, 0}, 16},
      {DmaOp::kNwriteR, ~0ull - 8, {0x1000, 16, 0}, 16},
      {DmaOp::kNwriteR, 0, {0x1000, ~0u, 0}, 16},
      {DmaOp::kNwriteR, 0, {0x1000, 0, 0}, 16},
      {DmaOp::kNwriteR, 0, {0x1000, 8, 0}, 8},
      {DmaOp::kNwrite, 0, {0x1000, 8, 0}, 16},
      {DmaOp::kAtomicInc, 0, {0x1000, 4, 0}, 16},
      {DmaOp::kNread, 0, {0, kTooFar + 1, 0}, 16},
      {DmaOp::kNread, 0, {0, 0, 0}, 16},
  };
  for (const auto& each : cases) {
    FuzzCard card(false, 0);
    card.start_all();
    MemoryPuller puller;
    card.in().puller = &puller;
    model::Frame frame{};
    frame.type = model::FrameType::kLongRequest;
    frame.op = static_cast<uint8_t>(each.op);
    frame.source = 2;
    frame.dest = FuzzCard::kId;
    frame.length = each.length;
    frame.address = each.address;
    EXPECT_TRUE(card.send(frame, reinterpret_cast<const uint8_t*>(&each.part), sizeof(each.part),
                          false, true));
    card.step(2);
    EXPECT_EQ(puller.pulls, 0u);
    EXPECT_EQ(card.take_answers(), std::vector<uint16_t>{0xFF00 | model::kInPackets})
        << static_cast<int>(each.op) << ' ' << each.part.length;
    card.check();
  }
}

/// Random accesses, some of them partly outside of the window, the mapped memory or the local
/// memory.
TEST(DmaPullSame, AccessesHaveTheResultsOfPackets) {
  const uint64_t seeds = env_number("RIO_SOAK_SEEDS", 8);
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    DmaCards exact(true);
    DmaCards fast(false);
    Random random(seed);
    uint32_t cookie = 0;
    for (uint32_t round = 0; round < 20; ++round) {
      SCOPED_TRACE(testing::Message() << "seed " << seed << " round " << round);
      for (DmaCards* const cards : {&exact, &fast}) {
        fill(cards->local(), round);
        fill(cards->remote(), round + 1000);
      }
      const bool closes = random.one_in(5);
      if (closes) {
        exact.set_window(false);
        fast.set_window(false);
        exact.settle();
        fast.settle();
      }
      // Those that write do not overlap, so that their order makes no difference.
      const bool reads = random.one_in(2);
      const uint32_t count = 1 + random.below(5);
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t length =
            random.one_in(3) ? 1 + random.below(9000) : random.below(140'000) + 1;
        DmaAccess access = {reads ? DmaOp::kNread : DmaOp::kNwriteR, length, 150'000 * i,
                            150'000 * i, ++cookie};
        if (random.one_in(8)) {
          (reads ? access.remote : access.local) += kWindowBytes - random.below(200'000);
        }
        if (random.one_in(8)) {
          access.remote += random.below(64);
          access.local += random.below(64);
        }
        exact.post(access);
        fast.post(access);
      }
      exact.settle();
      fast.settle();
      const std::vector<DmaResult> done = exact.take();
      ASSERT_EQ(done.size(), count);
      const std::vector<DmaResult> fast_done = fast.take();
      ASSERT_EQ(fast_done.size(), count);
      bool failed = false;
      for (uint32_t i = 0; i < count; ++i) {
        failed = failed || done[i].status != Status::kOk;
        EXPECT_EQ(done[i].status, fast_done[i].status) << i;
        if (done[i].status == Status::kOk) {
          EXPECT_EQ(done[i].bytes, fast_done[i].bytes) << i;
        }
      }
      EXPECT_EQ(exact.saw_violation(), fast.saw_violation());
      if (!failed) {
        EXPECT_TRUE(std::equal(exact.local().va, exact.local().va + kLocalBytes, fast.local().va));
        EXPECT_TRUE(
            std::equal(exact.remote().va, exact.remote().va + kRemoteBytes, fast.remote().va));
      }
      if (closes) {
        exact.set_window(true);
        fast.set_window(true);
        exact.settle();
        fast.settle();
      }
      ASSERT_FALSE(testing::Test::HasFailure());
    }
    EXPECT_GT(fast.puller(0).pulls + fast.puller(1).pulls, 0u);
    EXPECT_EQ(exact.puller(0).pulls + exact.puller(1).pulls, 0u);
  }
}

}  // namespace
}  // namespace rio::test
