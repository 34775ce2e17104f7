#include "apps/testpmd/barrier_group.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace rio::testpmd {
namespace {

TEST(BarrierGroup, KnowsTheLastArrivalOnlyWhenAllHaveArrived) {
  BarrierGroup group(3, 7);
  group.arrive(0, 8, 100);
  group.arrive(2, 8, 90);
  EXPECT_EQ(group.last_arrival(8), 0u);
  group.arrive(1, 8, 120);
  EXPECT_EQ(group.last_arrival(8), 120u);
  group.arrive(1, 9,
               500);  // an arrival at the next epoch does not change the last arrival at this one
  EXPECT_EQ(group.last_arrival(8), 120u);
  EXPECT_EQ(group.last_arrival(9), 0u);
}

TEST(BarrierGroup, AllMembersEndWithTheSameEpoch) {
  BarrierGroup group(2, 0);
  EXPECT_TRUE(group.may_arrive(1, true));
  EXPECT_TRUE(group.may_arrive(1, false)) << "another one has arrived there";
  EXPECT_FALSE(group.may_arrive(2, false));
  EXPECT_FALSE(group.may_arrive(2, true)) << "the run ends";
  EXPECT_TRUE(group.may_arrive(1, true));
}

TEST(BarrierGroup, EpochsEndAtAllOrNot) {
  BarrierGroup group(2, 3);
  EXPECT_TRUE(group.all_ended(3));
  group.end(0, 4);
  EXPECT_FALSE(group.all_ended(4));
  group.end(1, 4);
  EXPECT_TRUE(group.all_ended(4));
}

/// Members in threads of their own, one of which ends the run: all end with the same epoch.
TEST(BarrierGroup, ThreadsAgreeOnTheLastEpoch) {
  constexpr uint32_t kMembers = 3;
  constexpr uint64_t kEnd = 200;
  BarrierGroup group(kMembers, 0);
  uint64_t last[kMembers] = {};
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kMembers; ++i) {
    threads.emplace_back([&, i] {
      uint64_t epoch = 0;
      while (group.may_arrive(epoch + 1, i != 0 || epoch + 1 < kEnd)) {
        ++epoch;
        group.arrive(i, epoch, epoch);
        group.end(i, epoch);
        while (!group.all_ended(epoch)) {
          std::this_thread::yield();
        }
        EXPECT_EQ(group.last_arrival(epoch), epoch);
      }
      last[i] = epoch;
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_GE(last[0], kEnd - 1);
  EXPECT_EQ(last[1], last[0]);
  EXPECT_EQ(last[2], last[0]);
}

}  // namespace
}  // namespace rio::testpmd
