#include "lib/rail/rail_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace rio::rail {
namespace {

using State = RailState::State;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kTimeout = 100 * kMs;
constexpr uint64_t kStart = 1000 * kMs;

/// Answer a probe as soon as it is due. @return when it was answered.
uint64_t answer_next(RailState& path, uint64_t now_ns) {
  now_ns = std::max(now_ns, path.next_probe_ns());
  EXPECT_TRUE(path.probe_due(now_ns));
  path.probe_sent(now_ns);
  path.probe_answered(now_ns);
  return now_ns;
}

/// Answer all probes until the path is up. @return when it is.
uint64_t bring_up(RailState& path, uint64_t now_ns) {
  for (int i = 0; i < 10000 && !path.is_up(); ++i) {
    now_ns = answer_next(path, now_ns);
  }
  EXPECT_TRUE(path.is_up());
  return now_ns;
}

TEST(RailState, TheFirstDoubtMakesItSuspectAndAnAnswerUpAgain) {
  RailState path(kTimeout);
  EXPECT_TRUE(path.is_up());
  EXPECT_FALSE(path.moves_work());
  EXPECT_EQ(path.next_probe_ns(), RailState::kNever);
  path.in_doubt(kStart);
  EXPECT_EQ(path.state(), State::kSuspect);
  EXPECT_FALSE(path.is_up());
  EXPECT_TRUE(path.is_last_resort());
  EXPECT_TRUE(path.moves_work());
  EXPECT_TRUE(path.probe_due(kStart));
  path.probe_sent(kStart);
  EXPECT_FALSE(path.probe_due(kStart + kTimeout));
  path.probe_answered(kStart + 1);
  EXPECT_EQ(path.state(), State::kSuspect);  // the card does not use the message's letter yet
  const uint64_t end = path.next_probe_ns();
  EXPECT_GE(end, kStart + 2 * kTimeout);
  EXPECT_LE(end, kStart + 4 * kTimeout);
  path.probe_sent(end);
  path.probe_answered(end + 1);
  EXPECT_TRUE(path.is_up());
  EXPECT_EQ(path.counts().moves, 1u);
  EXPECT_EQ(path.counts().downs, 0u);
  EXPECT_EQ(path.counts().returns, 1u);
}

TEST(RailState, DoubtsOfMessagesSentBeforeTheFirstOneAreOneDoubt) {
  RailState path(kTimeout);
  path.in_doubt(kStart);
  path.in_doubt(kStart);
  path.in_doubt(kStart + kTimeout - 1);
  EXPECT_EQ(path.state(), State::kSuspect);
  path.in_doubt(kStart + kTimeout);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.counts().moves, 1u);
  EXPECT_EQ(path.counts().downs, 1u);
}

TEST(RailState, ADoubtIsOldIfAProbeSentLaterWasAnswered) {
  RailState path(kTimeout);
  path.in_doubt(kStart);
  path.probe_sent(kStart + 2);
  path.probe_answered(kStart + 3);
  path.in_doubt(kStart + kTimeout);  // sent before kStart + 2
  EXPECT_EQ(path.state(), State::kSuspect);
  path.in_doubt(kStart + 2 + kTimeout + kTimeout / 4);
  EXPECT_EQ(path.state(), State::kDown);
}

TEST(RailState, AnUnansweredProbeMakesASuspectGoDown) {
  RailState path(kTimeout);
  path.in_doubt(kStart);
  path.probe_sent(kStart);
  path.probe_unanswered(kStart + kTimeout);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_FALSE(path.is_last_resort());
  EXPECT_TRUE(path.moves_work());
}

TEST(RailState, ADoubtSoonAfterTheReturnMakesItGoDownAtOnce) {
  RailState path(kTimeout);
  path.in_doubt(kStart);
  const uint64_t up = answer_next(path, answer_next(path, kStart));
  ASSERT_TRUE(path.is_up());
  const uint64_t calm = RailState::kCalmHolds * RailState::kHoldLeastNs;
  RailState later = path;
  path.in_doubt(up + calm - 1);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.hold_ns(), 2 * RailState::kHoldLeastNs);
  later.in_doubt(up + calm);
  EXPECT_EQ(later.state(), State::kSuspect);
}

TEST(RailState, ARefusalOfTheLinkMakesItGoDown) {
  RailState path(kTimeout);
  path.refused(kStart);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.next_probe_ns(), kStart + kTimeout);
  path.refused(kStart + 5);
  EXPECT_EQ(path.next_probe_ns(), kStart + kTimeout);
  EXPECT_EQ(path.counts().downs, 1u);
}

TEST(RailState, ALinkThatIsDownIsProbedSeldomAndAtOnceWhenItIsUp) {
  RailState path(kTimeout);
  path.link_up(kStart);
  EXPECT_TRUE(path.is_up());
  path.link_down(kStart);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.next_probe_ns(), kStart + RailState::kProbeMostNs);
  path.link_down(kStart + 7);
  EXPECT_EQ(path.next_probe_ns(), kStart + RailState::kProbeMostNs);
  path.link_up(kStart + 9);
  EXPECT_EQ(path.next_probe_ns(), kStart + 9);
  EXPECT_EQ(path.counts().downs, 1u);
}

TEST(RailState, AnAnswerCountsForALinkWhoseReturnWasNotReported) {
  RailState path(kTimeout);
  path.link_down(kStart);
  answer_next(path, kStart);
  EXPECT_EQ(path.state(), State::kProbing);
  path.refused(kStart + 2000 * kMs);
  EXPECT_LT(path.next_probe_ns(), kStart + 2000 * kMs + RailState::kProbeMostNs);
}

TEST(RailState, ProbesOfAPathThatIsDownGrowApart) {
  for (const uint64_t timeout : {kMs, kTimeout, 2000 * kMs}) {
    RailState path(timeout);
    path.refused(kStart);
    uint64_t now = kStart;
    const uint64_t most = std::max(timeout, RailState::kProbeMostNs);
    for (uint64_t interval = timeout; interval < 4 * most; interval *= 2) {
      const uint64_t due = now + std::min(interval, most);
      EXPECT_EQ(path.next_probe_ns(), due);
      EXPECT_FALSE(path.probe_due(due - 1));
      path.probe_sent(due);
      EXPECT_EQ(path.next_probe_ns(), RailState::kNever);
      now = due + timeout;
      path.probe_unanswered(now);
    }
    EXPECT_EQ(path.state(), State::kDown);
  }
}

TEST(RailState, APathThatAnswersIsLikelierToWorkThanOneInDoubt) {
  const RailState up(kTimeout);
  RailState probing(kTimeout);
  probing.refused(kStart);
  EXPECT_EQ(probing.rank(), 0u);
  static_cast<void>(answer_next(probing, kStart));
  RailState suspect(kTimeout);
  suspect.in_doubt(kStart);
  EXPECT_EQ(up.rank(), RailState::kRankMost);
  EXPECT_GT(up.rank(), probing.rank());
  EXPECT_GT(probing.rank(), suspect.rank());
  EXPECT_GT(suspect.rank(), 0u);
}

TEST(RailState, ItIsUpAgainOnlyAfterAnswersOverTheHold) {
  RailState path(kTimeout);
  path.refused(kStart);
  const uint64_t first = answer_next(path, kStart);
  EXPECT_EQ(path.state(), State::kProbing);
  EXPECT_TRUE(path.is_last_resort());
  uint64_t now = first;
  while (path.state() == State::kProbing) {
    EXPECT_LE(path.next_probe_ns() - now, RailState::kHoldProbeMostNs);
    now = answer_next(path, now);
    EXPECT_EQ(path.is_up(), now >= first + RailState::kHoldLeastNs);
  }
  EXPECT_EQ(path.counts().returns, 1u);
}

TEST(RailState, ACallerThatLooksSeldomNeedsAsManyAnswers) {
  RailState path(kTimeout);
  path.refused(kStart);
  uint64_t now = kStart + 1000 * kMs;
  for (uint32_t answers = 0; answers < RailState::kAnswersLeast; ++answers) {
    EXPECT_FALSE(path.is_up());
    now += 300 * kMs;  // longer than the hold
    answer_next(path, now);
  }
  EXPECT_TRUE(path.is_up());
}

TEST(RailState, AFailureInTheHoldBeginsItAgain) {
  RailState path(kTimeout);
  path.refused(kStart);
  uint64_t now = answer_next(path, kStart);
  for (int i = 0; i < 5; ++i) {
    now = answer_next(path, now);
  }
  path.probe_sent(path.next_probe_ns());
  path.probe_unanswered(now + kTimeout);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.counts().downs, 1u);
  EXPECT_EQ(path.hold_ns(), RailState::kHoldLeastNs);
  const uint64_t again = answer_next(path, now);
  now = bring_up(path, again);
  EXPECT_GE(now - again, RailState::kHoldLeastNs);
}

TEST(RailState, ADoubtInTheHoldMakesItGoDown) {
  RailState path(kTimeout);
  path.refused(kStart);
  const uint64_t now = answer_next(path, kStart);
  path.in_doubt(now + 1);  // sent before the probe
  EXPECT_EQ(path.state(), State::kProbing);
  path.in_doubt(now + 2 * kTimeout);
  EXPECT_EQ(path.state(), State::kDown);
}

TEST(RailState, EachFlapDoublesTheHoldAndCalmTimeHalvesIt) {
  RailState path(kTimeout);
  uint64_t now = kStart;
  path.refused(now);
  for (uint64_t hold = RailState::kHoldLeastNs;; hold *= 2) {
    hold = std::min(hold, RailState::kHoldMostNs);
    EXPECT_EQ(path.hold_ns(), hold);
    const uint64_t answered = answer_next(path, now);
    now = bring_up(path, answered);
    EXPECT_GE(now - answered, hold);
    if (hold == RailState::kHoldMostNs) {
      break;
    }
    now += RailState::kCalmHolds * hold - 1;
    path.refused(now);
  }
  RailState once = path;
  RailState forever = path;
  const uint64_t calm = RailState::kCalmHolds * RailState::kHoldMostNs;
  once.refused(now + calm);
  EXPECT_EQ(once.hold_ns(), RailState::kHoldMostNs / 2);
  once.refused(now + calm + 1);
  EXPECT_EQ(once.hold_ns(), RailState::kHoldMostNs / 2);
  forever.refused(now + 2 * calm);
  EXPECT_EQ(forever.hold_ns(), RailState::kHoldLeastNs);
  path.refused(now + calm - 1);
  EXPECT_EQ(path.hold_ns(), RailState::kHoldMostNs);
}

TEST(RailState, AnAnswerToAProbeSentBeforeItWentDownProvesNothing) {
  RailState path(kTimeout);
  path.in_doubt(kStart);
  path.probe_sent(kStart);
  path.link_down(kStart + 10);
  path.probe_answered(kStart + 11);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.next_probe_ns(), kStart + 10 + RailState::kProbeMostNs);
  path.link_up(kStart + 12);
  path.probe_sent(kStart + 12);
  path.probe_answered(kStart + 13);
  EXPECT_EQ(path.state(), State::kProbing);
}

TEST(RailState, ACardThatIsGoneIsNotProbedUntilItIsBack) {
  RailState path(kTimeout);
  path.in_doubt(kStart);
  path.probe_sent(kStart);
  path.card_gone(kStart + 1);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.next_probe_ns(), RailState::kNever);
  path.probe_answered(kStart + 2);  // of the card that is gone
  path.delivered(kStart + 2);
  path.link_down(kStart + 2);
  path.link_up(kStart + 3);
  path.want(kStart + 3);
  path.card_gone(kStart + 3);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.next_probe_ns(), RailState::kNever);
  path.card_back(kStart + 4);
  EXPECT_EQ(path.next_probe_ns(), kStart + 4);
  bring_up(path, kStart + 4);
  EXPECT_EQ(path.counts().downs, 1u);
}

TEST(RailState, AWantedPathIsProbedAfterEachTimeout) {
  RailState path(kMs);
  path.refused(kStart);
  uint64_t now = kStart;
  for (int i = 0; i < 20; ++i) {  // until the interval is long
    now = path.next_probe_ns();
    path.probe_sent(now);
    now += kMs;
    path.probe_unanswered(now);
  }
  EXPECT_EQ(path.next_probe_ns(), now + RailState::kProbeMostNs);
  for (int i = 0; i < 5; ++i) {
    path.want(now);
    EXPECT_EQ(path.next_probe_ns(), now);
    path.probe_sent(now);
    now += kMs;
    path.probe_unanswered(now);
  }
  path.want(now);
  path.probe_sent(now);
  path.probe_unanswered(now + kMs / 2);
  path.want(now + kMs / 2);
  EXPECT_EQ(path.next_probe_ns(), now + kMs);
}

TEST(RailState, ADeliveryMakesAPathThatIsDownBeProbedAtOnce) {
  RailState path(kTimeout);
  path.delivered(kStart);
  EXPECT_TRUE(path.is_up());
  path.refused(kStart);
  path.delivered(kStart + 1);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_EQ(path.next_probe_ns(), kStart + 1);
}

TEST(RailState, APathThatIsNotKnownIsUpAtTheFirstAnswer) {
  RailState path(kTimeout, false);
  EXPECT_EQ(path.state(), State::kDown);
  EXPECT_TRUE(path.probe_due(kStart));
  path.probe_sent(kStart);
  path.probe_answered(kStart + 1);
  EXPECT_TRUE(path.is_up());
  EXPECT_EQ(path.counts().returns, 0u);
  EXPECT_EQ(path.hold_ns(), 0u);
  path.in_doubt(kStart + 2 * kTimeout);
  EXPECT_EQ(path.state(), State::kSuspect);
}

TEST(RailState, ReportsOfAProbeThatWasNotSentHaveNoEffect) {
  RailState path(kTimeout);
  path.in_doubt(kStart);
  path.probe_answered(kStart + 1);
  path.probe_unanswered(kStart + 1);
  EXPECT_EQ(path.state(), State::kSuspect);
  path.probe_sent(kStart + 1);
  path.probe_unsent();
  EXPECT_TRUE(path.probe_due(kStart + 1));
}

}  // namespace
}  // namespace rio::rail
