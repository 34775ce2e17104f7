// The turn of a queue: threads that poll, and a control path that takes it from them. No EAL
// process.
#include "pmd/card/turn.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace rio::pmd {
namespace {

constexpr uint32_t kPatienceMs = 30'000;

TEST(TurnTest, OneThreadAtATimeHasIt) {
  Turn turn;
  EXPECT_TRUE(turn.is_free());
  ASSERT_TRUE(turn.take());
  EXPECT_FALSE(turn.is_free());
  EXPECT_FALSE(turn.take());
  EXPECT_FALSE(turn.take()) << "a refusal changes nothing";
  turn.give();
  {
    const InTurn inside(turn);
    EXPECT_TRUE(inside);
    const InTurn other(turn);
    EXPECT_FALSE(other);
  }
  EXPECT_TRUE(turn.is_free());
}

TEST(TurnTest, ItMayBeTakenForGood) {
  Turn turn;
  ASSERT_TRUE(turn.take_for_good(0));
  EXPECT_FALSE(turn.take());
  EXPECT_FALSE(turn.is_free());
  EXPECT_FALSE(turn.take_for_good(1)) << "it is taken already";
  EXPECT_FALSE(turn.take());
  turn.give();
  EXPECT_TRUE(turn.take());
}

TEST(TurnTest, AThreadThatStaysInsideKeepsIt) {
  Turn turn;
  ASSERT_TRUE(turn.take());
  EXPECT_FALSE(turn.take_for_good(1));
  EXPECT_FALSE(turn.take());
  turn.give();
  EXPECT_TRUE(turn.take()) << "after giving up the control path does not block it";
}

// Three threads never pause between bursts; only one at a time is inside.
TEST(TurnTest, PollersNeitherMeetNorKeepTheControlPathOut) {
  constexpr int kThreads = 3;
  constexpr int kTimes = 50;
  Turn turn;
  uint64_t inside = 0;  // not atomic, so that the thread sanitizer checks it
  std::atomic<uint64_t> bursts{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> pollers;
  for (int i = 0; i < kThreads; ++i) {
    pollers.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
        const InTurn in(turn);
        if (in) {
          ++inside;
          bursts.fetch_add(1, std::memory_order_relaxed);
        }
      }
    });
  }
  int taken = 0;
  for (; taken < kTimes && turn.take_for_good(kPatienceMs); ++taken) {
    const uint64_t before = inside;
    std::this_thread::yield();
    EXPECT_EQ(inside, before) << "a thread was inside";
    EXPECT_EQ(bursts.load(), before);
    turn.give();
    std::this_thread::yield();
  }
  stop = true;
  for (std::thread& poller : pollers) {
    poller.join();
  }
  EXPECT_EQ(taken, kTimes);
  EXPECT_EQ(inside, bursts.load());
}

}  // namespace
}  // namespace rio::pmd
