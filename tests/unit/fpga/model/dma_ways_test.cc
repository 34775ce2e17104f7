// Which reads and writes are pulled, and when.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fpga/model/core/way_choice.hpp"
#include "tests/unit/fpga/model/dma_cards.hpp"

namespace rio::test {
namespace {

class DmaPullWays : public testing::Test {
 protected:
  DmaPullWays() {
    fill(cards_.local(), 1);
    fill(cards_.remote(), 2);
  }
  [[nodiscard]] bool same(uint32_t length) {
    return std::equal(cards_.local().va, cards_.local().va + length, cards_.remote().va);
  }

  DmaCards cards_{false};
};

/// The host that posts one read after the other needs no bytes yet, and one system call for the
/// bytes of all is faster.
TEST_F(DmaPullWays, ReadsThatAreStillBeingPostedArePulledTogether) {
  constexpr uint32_t kReads = 8;
  for (uint32_t i = 0; i < kReads; ++i) {
    cards_.post({DmaOp::kNread, 30'000, 30'000 * i, 30'000 * i, i});
    cards_.steps(0, 1);
    cards_.steps(1, 2);
  }
  EXPECT_EQ(cards_.puller(0).pulls, 0u);
  cards_.steps(0, 1);
  EXPECT_EQ(cards_.puller(0).pulls, 1u);
  EXPECT_EQ(cards_.take().size(), kReads);
  EXPECT_TRUE(same(30'000 * kReads));
}

/// Other answers wait behind those to reads.
TEST_F(DmaPullWays, AHostThatGoesOnPostingGetsItsReads) {
  constexpr uint32_t kPostsMax = 64;
  cards_.post({DmaOp::kNread, 30'000, 0, 0, 0});
  cards_.steps(0, 1);
  cards_.steps(1, 2);
  for (uint32_t i = 1; i <= kPostsMax; ++i) {
    cards_.post({DmaOp::kNwriteR, 8, 40'000, 40'000, i});
    cards_.steps(0, 1);
  }
  EXPECT_EQ(cards_.puller(0).pulls, 1u);
  const std::vector<DmaResult> done = cards_.take();
  ASSERT_FALSE(done.empty());
  EXPECT_EQ(done[0], (DmaResult{0, Status::kOk, 30'000}));
}

/// How many of `count` accesses that are alone are pulled. @param pull_ns what a pull takes.
uint32_t pulled_of(DmaCards& cards, DmaOp op, uint32_t bytes, uint32_t count, uint64_t pull_ns) {
  MemoryPuller& puller = cards.puller(op == DmaOp::kNread ? 0 : 1);
  puller.after_pull = [&cards, pull_ns] { cards.clock().advance_ns(pull_ns); };
  const uint64_t before = puller.pulls;
  for (uint32_t i = 0; i < count; ++i) {
    cards.post({op, bytes, 0, 0, i});
    cards.steps(0, 1);
    cards.clock().advance_ns(1000);
    cards.steps(1, 2);
    cards.steps(0, 2);
    EXPECT_EQ(cards.take().size(), 1u);
  }
  puller.after_pull = nullptr;
  return static_cast<uint32_t>(puller.pulls - before);
}

/// The machine decides which way is faster, so both are tried.
TEST(DmaPullChoice, AnAccessThatIsAloneTakesTheFasterWay) {
  constexpr uint32_t kTried = model::WayChoice::kAtFirst / 2;
  constexpr DmaOp kOp = DmaOp::kNwriteR;
  DmaCards cards(false);
  EXPECT_EQ(pulled_of(cards, kOp, 20'000, 32, 0), 32 - kTried);
  static_cast<void>(pulled_of(cards, kOp, 20'000, 1000, 9000));
  EXPECT_LE(pulled_of(cards, kOp, 20'000, 256, 9000), 4u);
  EXPECT_EQ(pulled_of(cards, kOp, 12'000, 32, 9000), kTried) << "learnt at once";
  EXPECT_EQ(pulled_of(cards, kOp, 40'000, 256, 9000), 256u) << "too many packets";
  EXPECT_EQ(pulled_of(cards, kOp, 4096, 256, 0), 0u) << "one packet";
}

/// Reads are tried both ways, too; but what is leased needs no answer, so there is no other way.
TEST(DmaPullChoice, AReadTakesTheFasterWayUntilItIsLeased) {
  DmaCards cards(false);
  EXPECT_EQ(pulled_of(cards, DmaOp::kNread, 12'000, 1, 0), 0u);
  EXPECT_EQ(pulled_of(cards, DmaOp::kNread, 12'000, 256, 9000), 256u);
  EXPECT_EQ(pulled_of(cards, DmaOp::kNread, 4097, 32, 9000), 32u);
  EXPECT_EQ(pulled_of(cards, DmaOp::kNread, 4096, 256, 0), 0u) << "one packet";
}

/// A choice of accesses of one length, on a machine on which both ways take so many nanoseconds.
class Accesses {
 public:
  uint32_t packets_ns = 3000;
  uint32_t long_ns = 8000;
  uint64_t between_ns = 10'000;

  /// @return whether an access went as a kLongRequest.
  bool one(uint64_t more_ns = 0) {
    now_ns_ += between_ns;
    const model::WayChoice::Turn turn = choice_.next(kReads, kBytes, now_ns_);
    if (turn.is_timed) {
      choice_.took(kReads, kBytes, turn.is_long, (turn.is_long ? long_ns : packets_ns) + more_ns);
    }
    return turn.is_long;
  }
  uint32_t longs_of(uint32_t count) {
    uint32_t longs = 0;
    for (uint32_t i = 0; i < count; ++i) {
      longs += one() ? 1 : 0;
    }
    return longs;
  }
  model::WayChoice::Turn write() { return choice_.next(false, kBytes, now_ns_); }

 private:
  static constexpr bool kReads = true;
  static constexpr uint32_t kBytes = 10'000;
  model::WayChoice choice_;
  uint64_t now_ns_ = 0;
};

constexpr uint32_t kAtFirst = model::WayChoice::kAtFirst;
constexpr uint32_t kOtherEvery = model::WayChoice::kOtherEvery;

TEST(DmaPullChoice, TheFirstAccessesTellWhichWayIsFaster) {
  for (const bool long_is_faster : {false, true}) {
    Accesses accesses;
    accesses.long_ns = long_is_faster ? 2000 : 8000;
    EXPECT_EQ(accesses.longs_of(kAtFirst), kAtFirst / 2);
    EXPECT_EQ(accesses.longs_of(kOtherEvery - kAtFirst - 1),
              long_is_faster ? kOtherEvery - kAtFirst - 1 : 0);
    EXPECT_FALSE(accesses.write().is_long) << "writes are another matter";
  }
}

/// Both sides have pages to touch and code to load.
TEST(DmaPullChoice, TheFirstAccessOfAWayMayTakeLong) {
  for (const bool long_is_faster : {false, true}) {
    Accesses accesses;
    accesses.long_ns = long_is_faster ? 2000 : 8000;
    for (uint32_t i = 0; i < kAtFirst; ++i) {
      static_cast<void>(accesses.one(i < 2 ? 60'000 : 0));
    }
    EXPECT_EQ(accesses.longs_of(kOtherEvery - kAtFirst - 1),
              long_is_faster ? kOtherEvery - kAtFirst - 1 : 0);
  }
}

TEST(DmaPullChoice, TheChoiceFollowsTheMachine) {
  Accesses accesses;
  for (const bool long_is_faster : {true, false, true, false}) {
    accesses.packets_ns = long_is_faster ? 8000 : 3000;
    accesses.long_ns = long_is_faster ? 3000 : 8000;
    static_cast<void>(accesses.longs_of(2 * kOtherEvery));
    EXPECT_EQ(accesses.longs_of(1024), long_is_faster ? 1024u - 16 : 16u);
  }
}

/// The way that is not taken has become faster, and the one that is taken is as before.
TEST(DmaPullChoice, AnotherWayThatHasBecomeFasterIsFoundSoon) {
  Accesses accesses;
  static_cast<void>(accesses.longs_of(1024));
  accesses.long_ns = 2000;
  static_cast<void>(accesses.longs_of(kOtherEvery + 4 * model::WayChoice::kTimedEvery));
  EXPECT_GE(accesses.longs_of(1024), 1024u - 16);
}

/// While no accesses of a kind are made, nothing is learnt.
TEST(DmaPullChoice, AfterAPauseTheOtherWayIsTriedSoon) {
  Accesses accesses;
  static_cast<void>(accesses.longs_of(1024));
  accesses.between_ns = model::WayChoice::kPauseNs + 1;
  EXPECT_EQ(accesses.longs_of(1), 0u);
  accesses.between_ns = 10'000;
  EXPECT_EQ(accesses.longs_of(model::WayChoice::kTimedEvery - 1), 1u);
  EXPECT_EQ(accesses.longs_of(kOtherEvery - 1), 0u);
}

/// A process that loses its core within one access says nothing of the way.
TEST(DmaPullChoice, OneSlowAccessChangesNothing) {
  Accesses accesses;
  uint32_t others = 0;
  for (uint32_t i = 0; i < 4096; ++i) {
    others += accesses.one(i / 1024 == 2 && i % 1024 < 8 ? 1'000'000 : 0) ? 1 : 0;
  }
  EXPECT_EQ(others, 4096 / kOtherEvery + kAtFirst / 2);
}

/// While others are under way, an access of few packets is pulled with them.
TEST_F(DmaPullWays, ShortAccessesArePulledWhereThereAreSeveral) {
  const struct {
    DmaOp op;
    uint32_t bytes;
    uint32_t puller;
  } cases[] = {{DmaOp::kNwriteR, 4096, 1}, {DmaOp::kNread, 8192, 0}};
  for (const auto& each : cases) {
    cards_.post({each.op, each.bytes, 0, 0, 0});
    cards_.settle();
    EXPECT_EQ(cards_.puller(each.puller).pulls, 0u) << "it was alone";
    for (uint32_t i = 0; i < 8; ++i) {
      cards_.post({each.op, each.bytes - i / 4, 10'000 * i, 10'000 * i, i});
    }
    cards_.settle();
    EXPECT_EQ(cards_.puller(each.puller).pulls, 1u);
    EXPECT_EQ(cards_.puller(each.puller).bytes, 4 * each.bytes) << "or shorter ones, too";
    EXPECT_EQ(cards_.take().size(), 9u);
  }
}

}  // namespace
}  // namespace rio::test
