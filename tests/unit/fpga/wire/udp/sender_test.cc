#include "fpga/wire/udp/sender.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

namespace rio::wire::udp {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kFirst = 0xfffffffe;

class UdpSender : public ::testing::Test {
 protected:
  bool push() {
    const bool has_room = !sender_.begin(100).empty();
    if (has_room) {
      sender_.end(100);
    }
    return has_room;
  }
  void push_and_send(int units) {
    for (int i = 0; i < units; ++i) {
      ASSERT_TRUE(push());
      ASSERT_FALSE(sender_.send(1).payload.empty());
    }
  }

  Congestion congestion_{100};
  Sender sender_{8, kFirst, &congestion_};
};

TEST_F(UdpSender, SendsInOrderAndOnce) {
  ASSERT_TRUE(push());
  ASSERT_TRUE(push());
  EXPECT_EQ(sender_.send(1).unit, kFirst);
  EXPECT_EQ(sender_.send(1).unit, kFirst + 1);
  EXPECT_TRUE(sender_.send(1).payload.empty());
}

TEST_F(UdpSender, KeepsNoMoreThanItsWindow) {
  push_and_send(8);
  EXPECT_FALSE(push());
  EXPECT_EQ(sender_.heard({kFirst + 1, 8, 0}, 2), 0);
  EXPECT_EQ(sender_.kept(), 7u);
  EXPECT_TRUE(push());
}

TEST_F(UdpSender, ResendsUnitsThatThreeLaterOnesHaveOvertaken) {
  push_and_send(5);
  EXPECT_EQ(sender_.heard({kFirst, 8, 0b011}, 2), 0);
  EXPECT_TRUE(sender_.send(2).payload.empty());
  EXPECT_EQ(sender_.heard({kFirst, 8, 0b111}, 3), 0);
  EXPECT_EQ(sender_.send(3).unit, kFirst);
  EXPECT_TRUE(sender_.send(3).payload.empty());
  EXPECT_EQ(sender_.heard({kFirst + 5, 8, 0}, 4), 0);
  EXPECT_EQ(sender_.kept(), 0u);
  EXPECT_EQ(congestion_.under_way_bytes(), 0u);
  EXPECT_EQ(sender_.due_ns(), UINT64_MAX);
}

TEST_F(UdpSender, ResendsEverythingAfterSilence) {
  push_and_send(2);
  EXPECT_EQ(sender_.due_ns(), 1 + 200 * kMs);
  sender_.look(200 * kMs);
  EXPECT_EQ(sender_.silent(), 0u);
  sender_.look(1 + 200 * kMs);
  EXPECT_EQ(sender_.silent(), 1u);
  EXPECT_EQ(sender_.send(201 * kMs).unit, kFirst);
  EXPECT_TRUE(sender_.send(201 * kMs).payload.empty());  // only one datagram now
  EXPECT_EQ(sender_.heard({kFirst + 1, 8, 0}, 202 * kMs), 0);
  EXPECT_EQ(sender_.silent(), 0u);
  EXPECT_EQ(congestion_.timeout_ns(), 200 * kMs);  // Karn: no round-trip time from a repeated unit
  EXPECT_EQ(sender_.send(202 * kMs).unit, kFirst + 1);
}

TEST_F(UdpSender, PaysOnceForATimeOut) {
  push_and_send(8);
  sender_.look(sender_.due_ns());
  EXPECT_EQ(congestion_.window_bytes(), 100u);
  for (uint32_t i = 1; i <= 4; ++i) {  // doubles up to half of the earlier thousand
    while (!sender_.send(300 * kMs).payload.empty()) {
    }
    EXPECT_EQ(sender_.heard({kFirst + i, 8, 0}, 301 * kMs), 0);
  }
  EXPECT_EQ(congestion_.window_bytes(), 500u);
}

TEST_F(UdpSender, RefusesReportsOfUnsentUnits) {
  push_and_send(2);
  ASSERT_TRUE(push());
  EXPECT_EQ(sender_.heard({kFirst + 3, 8, 0}, 2), -EPROTO);
  EXPECT_EQ(sender_.heard({kFirst, 8, 0b10}, 2), -EPROTO);
  EXPECT_EQ(sender_.heard({kFirst, kWindowMax + 1, 0}, 2), -EPROTO);
  EXPECT_EQ(sender_.kept(), 3u);
  EXPECT_EQ(sender_.heard({kFirst, 8, 0b1}, 2), 0);
}

TEST_F(UdpSender, IgnoresOldReports) {
  push_and_send(2);
  EXPECT_EQ(sender_.heard({kFirst + 2, 8, 0}, 2), 0);
  EXPECT_EQ(sender_.heard({kFirst + 1, 8, 0}, 3), 0);
  EXPECT_EQ(sender_.kept(), 0u);
}

TEST_F(UdpSender, AsksAPeerWithoutRoomWithOneUnit) {
  push_and_send(1);
  EXPECT_EQ(sender_.heard({kFirst + 1, 0, 0}, 2), 0);
  // The first allowance, 8 units from kFirst on, is still valid.
  push_and_send(7);
  EXPECT_EQ(sender_.heard({kFirst + 8, 0, 0}, 3), 0);
  ASSERT_TRUE(push());
  ASSERT_TRUE(push());
  EXPECT_EQ(sender_.send(4).unit, kFirst + 8);
  EXPECT_TRUE(sender_.send(4).payload.empty());
  EXPECT_EQ(sender_.heard({kFirst + 8, 2, 0}, 5), 0);
  EXPECT_EQ(sender_.send(5).unit, kFirst + 9);
}

}  // namespace
}  // namespace rio::wire::udp
