#include "lib/msg/patience.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>

#include "lib/msg/message_context.hpp"
#include "lib/msg/message_port.hpp"

namespace rio::msg {
namespace {

/// A scheduler that the test plays.
struct Played {
  uint64_t now_ns = 1'000'000'000;
  uint32_t switches = 0;
  uint64_t yields = 0;
  uint64_t yield_lasts_ns = 1'000;
  bool others_are_ready = true;
};
Played played;

const Scheduler kPlayed = {[] { return played.now_ns; }, [] { return played.switches; },
                           [] {
                             ++played.yields;
                             played.now_ns += played.yield_lasts_ns;
                             played.switches += played.others_are_ready ? 1 : 0;
                           }};

class PatienceTest : public testing::Test {
 protected:
  /// The thread polls, and another one takes its CPU for a while.
  void lose_cpu() {
    ++played.switches;
    played.now_ns += Patience::kGapNs;
    patience_.look(true);
  }
  /// Polls that find nothing, until one that yields. @return nanoseconds that they take.
  uint64_t wait_for_yield() {
    const uint64_t begin_ns = played.now_ns;
    while (!patience_.poll(true)) {
      played.now_ns += kPollNs;
    }
    const uint64_t end_ns = played.now_ns;
    patience_.yield();
    return end_ns - begin_ns;
  }

  static constexpr uint64_t kPollNs = 500;
  Played& begins_anew_ = (played = Played());  // before patience_ looks at it
  Patience patience_{kPlayed};
};

TEST_F(PatienceTest, PollsOnWhileNoOtherThreadWantsTheCpu) {
  for (int i = 0; i < 1000; ++i) {
    played.now_ns += Patience::kGapNs;  // the thread computes between its polls
    patience_.look(true);
    EXPECT_FALSE(patience_.is_shared());
  }
}

TEST_F(PatienceTest, SharesTheCpuOnceAnotherThreadHasTakenItWhileItWaited) {
  lose_cpu();
  EXPECT_TRUE(patience_.is_shared());
}

TEST_F(PatienceTest, MindsNoSwitchWhileMessagesArrive) {
  ++played.switches;
  played.now_ns += Patience::kGapNs;
  patience_.look(false);
  EXPECT_FALSE(patience_.is_shared());
}

TEST_F(PatienceTest, AsksForSwitchesOnlyAfterAGap) {
  ++played.switches;
  played.now_ns += Patience::kGapNs - 1;
  patience_.look(true);
  EXPECT_FALSE(patience_.is_shared());
}

TEST_F(PatienceTest, YieldsAfterTheLimitAndNotBefore) {
  lose_cpu();
  const uint64_t limit_ns = patience_.limit_ns();
  EXPECT_FALSE(patience_.poll(true));
  played.now_ns += limit_ns - 1;
  EXPECT_FALSE(patience_.poll(true));
  played.now_ns += 1;
  EXPECT_TRUE(patience_.poll(true));
}

TEST_F(PatienceTest, AnArrivalBeginsTheLimitAnew) {
  lose_cpu();
  played.now_ns += patience_.limit_ns();
  EXPECT_FALSE(patience_.poll(false));
  played.now_ns += patience_.limit_ns() - 1;
  EXPECT_FALSE(patience_.poll(true));
}

TEST_F(PatienceTest, AYieldBeginsTheLimitAnew) {
  lose_cpu();
  wait_for_yield();
  EXPECT_FALSE(patience_.poll(true));
  EXPECT_EQ(played.yields, 1u);
}

TEST_F(PatienceTest, TheLimitShrinksWhileOthersYieldSoon) {
  lose_cpu();
  for (int i = 0; i < 20; ++i) {
    wait_for_yield();
  }
  EXPECT_EQ(patience_.limit_ns(), Patience::kLimitMinNs);
  EXPECT_EQ(wait_for_yield(), Patience::kLimitMinNs);
}

TEST_F(PatienceTest, TheLimitGrowsWhileOthersCompute) {
  lose_cpu();
  played.yield_lasts_ns = Patience::kLongNs;
  for (int i = 0; i < 20; ++i) {
    wait_for_yield();
  }
  EXPECT_EQ(patience_.limit_ns(), Patience::kLimitMaxNs);
  EXPECT_TRUE(patience_.is_shared());
}

TEST_F(PatienceTest, YieldsThatLetNoThreadRunEndTheSharing) {
  lose_cpu();
  const uint64_t limit_ns = patience_.limit_ns();
  played.others_are_ready = false;
  for (uint32_t i = 0; i < Patience::kLoneYields; ++i) {
    EXPECT_TRUE(patience_.is_shared());
    wait_for_yield();
  }
  EXPECT_FALSE(patience_.is_shared());
  EXPECT_EQ(patience_.limit_ns(), limit_ns);
}

TEST_F(PatienceTest, OnlyLoneYieldsInARowEndTheSharing) {
  lose_cpu();
  for (uint32_t i = 0; i < 4 * Patience::kLoneYields; ++i) {
    played.others_are_ready = i % Patience::kLoneYields == 0;
    wait_for_yield();
    EXPECT_TRUE(patience_.is_shared());
  }
}

TEST_F(PatienceTest, SharingEndsWithTimeIfTheThreadNeverHasToYield) {
  lose_cpu();
  for (uint64_t ns = 0; ns <= Patience::kSharedNs; ns += 100'000) {
    EXPECT_TRUE(patience_.is_shared());
    played.now_ns += 100'000;
    EXPECT_FALSE(patience_.poll(false));
    patience_.look(false);
  }
  EXPECT_FALSE(patience_.is_shared());
}

/// Ports take the Patience of the thread that calls them.
class PortPatienceTest : public testing::TestWithParam<Threads> {
 protected:
  PortPatienceTest() {
    played = {};
    played.now_ns = linux_scheduler().now_ns();
    Patience::of_this_thread() = Patience(kPlayed);
    PortConfig config;
    config.threads = GetParam();
    EXPECT_EQ(MessagePort::open(config, &port_), 0);
  }
  ~PortPatienceTest() override { Patience::of_this_thread() = Patience(); }

  void share() {
    ++played.switches;
    played.now_ns += Patience::kGapNs;
    Patience::of_this_thread().look(true);
  }
  /// Polls a port to which nothing comes. The played clock goes on by each poll.
  void poll(uint32_t times) {
    for (uint32_t i = 0; i < times; ++i) {
      if (GetParam() != Threads::kOne) {
        port_->enter();
      }
      EXPECT_EQ(port_->progress(), 0u);
      if (GetParam() != Threads::kOne) {
        const uint64_t before = played.yields;
        EXPECT_EQ(before, yields_);  // none under the lock
        port_->leave();
      }
      yields_ = played.yields;
      played.now_ns += 1'000;
    }
  }

  std::unique_ptr<MessagePort> port_;
  uint64_t yields_ = 0;
};

TEST_P(PortPatienceTest, APortThatIsAloneDoesNotYield) {
  poll(100'000);
  EXPECT_EQ(played.yields, 0u);
  EXPECT_EQ(port_->stats().yields, 0u);
}

TEST_P(PortPatienceTest, AWaitingPortYieldsOnceTheCpuIsShared) {
  share();
  poll(10'000);
  EXPECT_GT(played.yields, 1'000u);
  EXPECT_EQ(port_->stats().yields, played.yields);
}

TEST_P(PortPatienceTest, APortFindsOutThatTheCpuIsShared) {
  for (uint32_t i = 0; i < 100 && played.yields == 0; ++i) {
    ++played.switches;
    played.now_ns += Patience::kGapNs;
    poll(100);
  }
  EXPECT_GT(played.yields, 0u);
}

INSTANTIATE_TEST_SUITE_P(Threads, PortPatienceTest,
                         testing::Values(Threads::kOne, Threads::kPerContext));

}  // namespace
}  // namespace rio::msg
