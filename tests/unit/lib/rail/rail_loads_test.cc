#include "lib/rail/rail_loads.hpp"

#include <gtest/gtest.h>

namespace rio::rail {
namespace {

constexpr uint64_t kMessage = 4096;

/// Keep `messages` outstanding on a rail for a while, each of which takes `ns`.
void run(RailLoads& loads, uint32_t rail, uint64_t ns, uint32_t messages = 8, int count = 400) {
  uint64_t now = 1'000'000;
  for (uint32_t i = 0; i < messages; ++i) {
    loads.posted(rail, kMessage);
  }
  for (int i = 0; i < count; ++i) {
    now += ns;
    loads.completed(rail, kMessage, now);
    loads.posted(rail, kMessage);
  }
  for (uint32_t i = 0; i < messages; ++i) {
    loads.dropped(rail, kMessage);
  }
}

TEST(RailLoads, FinishingTimeCountsWhatIsQueued) {
  RailLoads loads;
  const uint64_t alone = loads.finish_ns(0, kMessage);
  EXPECT_GT(alone, 0u);
  loads.posted(0, 3 * kMessage);
  EXPECT_EQ(loads.queued_bytes(0), 3 * kMessage);
  EXPECT_EQ(loads.finish_ns(0, kMessage), 4 * alone);
  EXPECT_EQ(loads.finish_ns(1, kMessage), alone);
  loads.completed(0, kMessage, 5);
  loads.dropped(0, kMessage);
  EXPECT_EQ(loads.queued_bytes(0), kMessage);
}

TEST(RailLoads, AFarCardCountsLess) {
  RailLoads loads;
  loads.set_distance(1, 21);
  EXPECT_EQ(loads.finish_ns(1, 10240), loads.finish_ns(0, 10240) * 21 / 10);
  EXPECT_NEAR(loads.rate_kib_s(1), loads.rate_kib_s(0) / 2.1, 1000);
}

TEST(RailLoads, LearnsTheRateOfABusyRail) {
  RailLoads loads;
  run(loads, 0, 8192);   // 500 MB/s
  run(loads, 1, 40960);  // 100 MB/s
  EXPECT_EQ(loads.finish_ns(0, kMessage), 8192u);
  EXPECT_EQ(loads.finish_ns(1, kMessage), 40960u);
  EXPECT_NEAR(loads.rate_kib_s(0), 5 * loads.rate_kib_s(1), 10);
  run(loads, 0, 16384);
  EXPECT_NEAR(static_cast<double>(loads.finish_ns(0, kMessage)), 16384, 200);
}

TEST(RailLoads, ARailWithLittleToDoShowsNoRate) {
  RailLoads loads;
  const uint64_t before = loads.finish_ns(0, kMessage);
  run(loads, 0, 500'000, RailLoads::kBusyBytes / kMessage);
  EXPECT_EQ(loads.finish_ns(0, kMessage), before);
  run(loads, 0, 500'000, RailLoads::kBusyBytes / kMessage + 1);
  EXPECT_GT(loads.finish_ns(0, kMessage), before);
}

TEST(RailLoads, ARailThatWasNotLearntCountsAsTheFastestByDistance) {
  RailLoads loads;
  loads.set_distance(1, 20);
  loads.set_distance(2, 20);
  run(loads, 0, 81920);
  EXPECT_EQ(loads.finish_ns(1, kMessage), 2u * 81920);
  EXPECT_EQ(loads.finish_ns(3, kMessage), 81920u);
  run(loads, 2, 8192);  // far and fast
  EXPECT_EQ(loads.finish_ns(1, kMessage), 8192u);
  EXPECT_EQ(loads.finish_ns(3, kMessage), 4096u);
  EXPECT_EQ(loads.finish_ns(0, kMessage), 81920u);
}

TEST(RailLoads, AFailureEndsASample) {
  RailLoads loads;
  run(loads, 0, 8192);
  for (int i = 0; i < 8; ++i) {
    loads.posted(0, kMessage);
  }
  loads.completed(0, kMessage, 10'000'000);
  loads.dropped(0, kMessage);
  for (int i = 0; i < 100; ++i) {  // the first of them comes after a long silence
    loads.posted(0, kMessage);
    loads.completed(0, kMessage, 1'000'000'000 + 8192 * i);
  }
  EXPECT_EQ(loads.finish_ns(0, 0), loads.queued_bytes(0) * 2);
}

TEST(RailLoads, ForgetsARailThatWasAway) {
  RailLoads loads;
  run(loads, 0, 8192);
  run(loads, 1, 81920);
  loads.posted(1, kMessage);
  loads.forget(1);
  EXPECT_EQ(loads.queued_bytes(1), kMessage);
  EXPECT_EQ(loads.finish_ns(1, 0), 8192u);
  loads.forget(0);
  EXPECT_EQ(loads.finish_ns(0, kMessage), RailLoads().finish_ns(0, kMessage));
}

TEST(RailLoads, RatesStayWithinTheirBounds) {
  RailLoads loads;
  run(loads, 0, 0);
  EXPECT_EQ(loads.finish_ns(0, 1024), 1u);
  EXPECT_EQ(loads.rate_kib_s(0), 1'000'000'000u);
  run(loads, 1, 1'000'000'000'000);
  EXPECT_EQ(loads.rate_kib_s(1), 1u);
  loads.set_distance(2, 255);
  loads.forget(0);
  EXPECT_EQ(loads.rate_kib_s(2), 1u);
}

}  // namespace
}  // namespace rio::rail
