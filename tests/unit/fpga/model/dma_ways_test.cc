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

/// A host that takes each read before it posts the next one makes no steps in between.
TEST_F(DmaPullWays, ALeasedReadThatIsAloneEndsInTheStepThatFindsIt) {
  cards_.post({DmaOp::kNread, 40'000, 0, 0, 0});
  cards_.settle();  // the answer is the lease
  EXPECT_EQ(cards_.take().size(), 1u);
  for (uint32_t i = 1; i <= 8; ++i) {
    cards_.post({DmaOp::kNread, 40'000, 0, 0, i});
    cards_.steps(0, 1);
    EXPECT_EQ(cards_.take().size(), 1u) << i;
  }
}

/// How many of `count` accesses that are alone are pulled. @param pull_ns what a pull takes.
uint32_t pulled_of(DmaCards& cards, DmaOp op, uint32_t bytes, uint32_t count, uint64_t pull_ns) {
  MemoryPuller& puller = cards.puller(op == DmaOp::kNread ? 0 : 1);
  puller.after_pull = [&cards, pull_ns] { cards.clock().advance_ns(pull_ns); };
  const uint64_t before = puller.pulls;
  for (uint32_t i = 0; i < count; ++i) {
    cards.post({op, bytes, 0, 0, i});
    cards.steps(0, 1);
    size_t done = cards.take().size();
    if (done == 0) {  // it waits for an answer
      cards.clock().advance_ns(1000);
      cards.steps(1, 2);
      cards.steps(0, 2);
      done = cards.take().size();
    }
    EXPECT_EQ(done, 1u) << bytes << ", access " << i;
  }
  puller.after_pull = nullptr;
  return static_cast<uint32_t>(puller.pulls - before);
}

using model::WayChoice;
constexpr uint32_t kAtFirst = WayChoice::kAtFirst;
constexpr uint32_t kOtherEvery = WayChoice::kOtherEvery;
constexpr uint32_t kRow = WayChoice::kRow;

/// The machine decides which way is faster, so both are tried.
TEST(DmaPullChoice, AWriteThatIsAloneTakesTheFasterWay) {
  constexpr uint32_t kTried = kAtFirst / 2;
  constexpr DmaOp kOp = DmaOp::kNwriteR;
  DmaCards cards(false);
  EXPECT_EQ(pulled_of(cards, kOp, 20'000, 32, 0), 32 - kTried);
  static_cast<void>(pulled_of(cards, kOp, 20'000, 1000, 9000));
  EXPECT_LE(pulled_of(cards, kOp, 20'000, 1024, 9000), 5 * kRow);
  EXPECT_EQ(pulled_of(cards, kOp, 12'000, 32, 9000), kTried) << "learnt at once";
  EXPECT_EQ(pulled_of(cards, kOp, 40'000, 256, 9000), 256u) << "too many packets";
  EXPECT_EQ(pulled_of(cards, kOp, 4096, 256, 0), 0u) << "one packet";
}

/// Leased bytes are read in the step that finds the descriptor, and so need no answer.
TEST(DmaPullChoice, AReadThatIsAloneTakesTheFasterWay) {
  constexpr uint32_t kTried = kAtFirst / 2;
  for (const uint32_t bytes : {65u, 1024u, 1025u, 4096u, 4097u, 12'000u, 20'000u}) {
    DmaCards cards(false);
    EXPECT_EQ(pulled_of(cards, DmaOp::kNread, bytes, 64, 100), 64 - kTried) << bytes;
    static_cast<void>(pulled_of(cards, DmaOp::kNread, bytes, 1000, 9000));
    EXPECT_LE(pulled_of(cards, DmaOp::kNread, bytes, 1024, 9000), 5 * kRow) << bytes;
  }
  DmaCards cards(false);
  EXPECT_EQ(pulled_of(cards, DmaOp::kNread, 64, 256, 0), 0u) << "one frame of two cache lines";
  EXPECT_EQ(pulled_of(cards, DmaOp::kNread, 40'000, 256, 9000), 256u) << "too many packets";
}

/// A system call leaves cold caches to the program, which shows in the time before its next access.
TEST(DmaPullChoice, TheTimeBeforeAnAccessCounts) {
  DmaCards cards(false);
  const auto pulled = [&](uint64_t after_ns) {
    const auto& puller = cards.puller(0);
    const uint64_t before = puller.pulls;
    for (uint32_t i = 0; i < kOtherEvery; ++i) {
      const uint64_t pulls = puller.pulls;
      EXPECT_LE(pulled_of(cards, DmaOp::kNread, 12'000, 1, 500), 1u);
      cards.clock().advance_ns(puller.pulls != pulls ? after_ns : 0);
    }
    return puller.pulls - before;
  };
  static_cast<void>(pulled(0));
  EXPECT_EQ(pulled(0), kOtherEvery - kRow) << "500 ns instead of 1000";
  static_cast<void>(pulled(1500));
  static_cast<void>(pulled(1500));
  EXPECT_LE(pulled(1500), 2 * kRow);
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
    const WayChoice::Turn turn = choice_.next(kReads, kBytes, now_ns_);
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
  WayChoice::Turn write() { return choice_.next(false, kBytes, now_ns_); }

 private:
  static constexpr bool kReads = true;
  static constexpr uint32_t kBytes = 10'000;
  WayChoice choice_;
  uint64_t now_ns_ = 0;
};

TEST(DmaPullChoice, TheFirstAccessesTellWhichWayIsFaster) {
  for (const bool long_is_faster : {false, true}) {
    Accesses accesses;
    accesses.long_ns = long_is_faster ? 2000 : 8000;
    EXPECT_EQ(accesses.longs_of(kAtFirst), kAtFirst / 2);
    constexpr uint32_t kThen = kOtherEvery - kAtFirst - kRow;
    EXPECT_EQ(accesses.longs_of(kThen), long_is_faster ? kThen : 0);
    EXPECT_EQ(accesses.longs_of(kRow), long_is_faster ? 0 : kRow);
    EXPECT_FALSE(accesses.write().is_long) << "writes are another matter";
  }
}

/// Both sides have pages to touch and code to load.
TEST(DmaPullChoice, TheFirstAccessesOfARowMayTakeLong) {
  for (const bool long_is_faster : {false, true}) {
    Accesses accesses;
    accesses.long_ns = long_is_faster ? 2000 : 8000;
    for (uint32_t i = 0; i < 4 * kOtherEvery; ++i) {
      static_cast<void>(accesses.one(i % kRow < 2 ? 60'000 : 0));
    }
    EXPECT_EQ(accesses.longs_of(kOtherEvery), long_is_faster ? kOtherEvery - kRow : kRow);
  }
}

TEST(DmaPullChoice, TheChoiceFollowsTheMachine) {
  Accesses accesses;
  for (const bool long_is_faster : {true, false, true, false}) {
    accesses.packets_ns = long_is_faster ? 8000 : 3000;
    accesses.long_ns = long_is_faster ? 3000 : 8000;
    static_cast<void>(accesses.longs_of(2 * kOtherEvery));
    constexpr uint32_t kOthers = 1024 / kOtherEvery * kRow;
    EXPECT_EQ(accesses.longs_of(1024), long_is_faster ? 1024 - kOthers : kOthers);
  }
}

/// The way that is not taken has become faster, and the one that is taken is as before.
TEST(DmaPullChoice, AnotherWayThatHasBecomeFasterIsFoundSoon) {
  Accesses accesses;
  static_cast<void>(accesses.longs_of(1024));
  accesses.long_ns = 2000;
  static_cast<void>(accesses.longs_of(kOtherEvery + 4 * WayChoice::kTimedEvery));
  EXPECT_GE(accesses.longs_of(1024), 1024u - 5 * kRow);
}

/// While no accesses of a kind are made, nothing is learnt.
TEST(DmaPullChoice, AfterAPauseTheOtherWayIsTriedSoon) {
  for (uint32_t before = 1024; before < 1024 + WayChoice::kTimedEvery; ++before) {
    Accesses accesses;
    static_cast<void>(accesses.longs_of(before));
    accesses.between_ns = WayChoice::kPauseNs + 1;
    const uint32_t first = accesses.longs_of(1);
    accesses.between_ns = 10'000;
    EXPECT_EQ(first + accesses.longs_of(WayChoice::kTimedEvery), kRow) << before;
    EXPECT_EQ(accesses.longs_of(kOtherEvery - kRow - WayChoice::kTimedEvery), 0u) << before;
  }
}

/// A process that loses its core within one access says nothing of the way.
TEST(DmaPullChoice, OneSlowAccessChangesNothing) {
  Accesses accesses;
  uint32_t others = 0;
  for (uint32_t i = 0; i < 4096; ++i) {
    others += accesses.one(i / 1024 == 2 && i % 1024 < 16 ? 1'000'000 : 0) ? 1 : 0;
  }
  EXPECT_EQ(others, 4096 / kOtherEvery * kRow + kAtFirst / 2);
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
