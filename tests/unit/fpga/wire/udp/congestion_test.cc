#include "fpga/wire/udp/congestion.hpp"

#include <gtest/gtest.h>

namespace rio::wire::udp {
namespace {

constexpr uint64_t kMs = 1'000'000;

TEST(UdpCongestion, BeginsWithTenDatagramsAndDoublesEachRoundTrip) {
  Congestion congestion(1000);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(congestion.may_send(1000));
    congestion.on_sent(1000);
  }
  EXPECT_FALSE(congestion.may_send(1));
  for (int i = 0; i < 4; ++i) {
    congestion.on_acked(1000, 1);
  }
  EXPECT_EQ(congestion.window_bytes(), 14000u);
  EXPECT_EQ(congestion.under_way_bytes(), 6000u);
}

TEST(UdpCongestion, HalvesOnceForTheLossesOfOneWindow) {
  Congestion congestion(1000);
  for (int i = 0; i < 10; ++i) {
    congestion.on_sent(1000);
  }
  congestion.on_lost(1000, 5, 20);
  congestion.on_lost(1000, 20, 21);
  EXPECT_EQ(congestion.window_bytes(), 5000u);
  congestion.on_lost(1000, 21, 30);
  EXPECT_EQ(congestion.window_bytes(), 2500u);
  congestion.on_lost(1000, 31, 40);
  EXPECT_EQ(congestion.window_bytes(), 2000u);  // never below two datagrams
}

TEST(UdpCongestion, GrowsByOneDatagramARoundTripAfterALoss) {
  Congestion congestion(1000);
  for (int i = 0; i < 10; ++i) {
    congestion.on_sent(1000);
  }
  congestion.on_lost(1000, 5, 20);
  congestion.on_acked(1000, 20);  // sent before: it does not count
  for (int i = 0; i < 4; ++i) {
    congestion.on_acked(1000, 21);
    congestion.on_sent(1000);
  }
  EXPECT_EQ(congestion.window_bytes(), 5000u);
  congestion.on_acked(1000, 21);
  EXPECT_EQ(congestion.window_bytes(), 6000u);
}

TEST(UdpCongestion, DoesNotGrowWhileTheWindowIsNotFilled) {
  Congestion congestion(1000);
  congestion.on_sent(1000);
  congestion.on_acked(1000, 1);
  EXPECT_EQ(congestion.window_bytes(), 10000u);
}

TEST(UdpCongestion, TimesOutByTheRoundTripAndDoubles) {
  Congestion congestion(1000);
  EXPECT_EQ(congestion.timeout_ns(), 200 * kMs);
  congestion.on_round_trip(40 * kMs);
  EXPECT_EQ(congestion.timeout_ns(), 120 * kMs);  // 40 + 4 * 20
  congestion.on_timeout(1);
  EXPECT_EQ(congestion.timeout_ns(), 240 * kMs);
  EXPECT_EQ(congestion.window_bytes(), 1000u);
  for (int i = 0; i < 100; ++i) {
    congestion.on_timeout(1);
  }
  EXPECT_EQ(congestion.timeout_ns(), 2000 * kMs);
  congestion.on_acked(1, 2);
  EXPECT_EQ(congestion.timeout_ns(), 120 * kMs);
}

TEST(UdpCongestion, LearnsNothingFromConsecutiveTimeOuts) {
  Congestion congestion(1000);
  congestion.on_timeout(1);
  congestion.on_timeout(2);
  for (int i = 0; i < 4; ++i) {
    congestion.on_sent(5000);
    congestion.on_acked(1000, 3);
  }
  EXPECT_EQ(congestion.window_bytes(), 5000u);
}

TEST(UdpCongestion, NeverWaitsLessThanTenMilliseconds) {
  Congestion congestion(1000);
  congestion.on_round_trip(1000);
  EXPECT_EQ(congestion.timeout_ns(), 10 * kMs);
}

TEST(UdpCongestion, OneDatagramMayAlwaysBeSent) {
  Congestion congestion(10);
  EXPECT_TRUE(congestion.may_send(5000));
  congestion.on_sent(5000);
  EXPECT_FALSE(congestion.may_send(1));
}

}  // namespace
}  // namespace rio::wire::udp
