#include "fpga/wire/udp/receiver.hpp"

#include <gtest/gtest.h>

#include <array>

namespace rio::wire::udp {
namespace {

Arrival put(Receiver& receiver, uint32_t unit) {
  const std::array<uint8_t, 1> bytes = {static_cast<uint8_t>(unit)};
  return receiver.put(unit, bytes);
}

TEST(UdpReceiver, DeliversUnitsInOrderAcrossTheWrap) {
  Receiver receiver(4, 0xfffffffe);
  EXPECT_TRUE(receiver.front().empty());
  EXPECT_EQ(put(receiver, 0), Arrival::kNew);
  EXPECT_EQ(put(receiver, 0xffffffff), Arrival::kNew);
  EXPECT_TRUE(receiver.front().empty());
  EXPECT_EQ(receiver.heard(), (Heard{0xfffffffe, 4, 3}));
  EXPECT_EQ(put(receiver, 0xfffffffe), Arrival::kNew);
  EXPECT_EQ(receiver.heard(), (Heard{1, 1, 0}));
  for (const uint32_t want : {0xfeu, 0xffu, 0u}) {
    ASSERT_EQ(receiver.front().size(), 1u);
    EXPECT_EQ(receiver.front()[0], want);
    receiver.pop();
  }
  EXPECT_TRUE(receiver.front().empty());
  EXPECT_EQ(receiver.heard(), (Heard{1, 4, 0}));
}

TEST(UdpReceiver, RecognisesDuplicatesAndForeignUnits) {
  Receiver receiver(4, 10);
  EXPECT_EQ(put(receiver, 11), Arrival::kNew);
  EXPECT_EQ(put(receiver, 11), Arrival::kAgain);
  EXPECT_EQ(put(receiver, 14), Arrival::kOutside);
  EXPECT_EQ(put(receiver, 9), Arrival::kAgain);
  EXPECT_EQ(put(receiver, 10), Arrival::kNew);
  EXPECT_EQ(put(receiver, 10), Arrival::kAgain);
  receiver.pop();
  EXPECT_EQ(put(receiver, 10), Arrival::kAgain);
  EXPECT_EQ(put(receiver, 14), Arrival::kNew);
}

TEST(UdpReceiver, ReportsThatItHasNoRoom) {
  Receiver receiver(2, 0);
  EXPECT_EQ(put(receiver, 0), Arrival::kNew);
  EXPECT_EQ(put(receiver, 1), Arrival::kNew);
  EXPECT_EQ(receiver.heard(), (Heard{2, 0, 0}));
  EXPECT_EQ(put(receiver, 2), Arrival::kOutside);
}

}  // namespace
}  // namespace rio::wire::udp
