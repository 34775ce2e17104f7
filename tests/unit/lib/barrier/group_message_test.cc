#include "lib/barrier/group_message.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace rio::barrier {
namespace {

std::vector<uint8_t> bytes_of(const GroupMessage& message) {
  std::vector<uint8_t> bytes(message.size_bytes());
  std::memcpy(bytes.data(), &message, bytes.size());
  return bytes;
}

bool is_read(const GroupMessage& message) {
  GroupMessage out;
  const std::vector<uint8_t> bytes = bytes_of(message);
  return read(bytes, &out) && bytes_of(out) == bytes;
}

GroupMessage valid(What what) {
  GroupMessage message;
  message.what = what;
  message.key = 5;
  message.serial = 6;
  message.ticket = 7;
  message.ranks = 8;
  message.error = what == What::kFailed ? -5 : 0;
  return message;
}

TEST(GroupMessage, EachKindIsReadBack) {
  for (uint8_t what = 1; what <= 9; ++what) {
    EXPECT_TRUE(is_read(valid(static_cast<What>(what)))) << static_cast<int>(what);
  }
}

TEST(GroupMessage, NotificationHasTheseBytes) {
  GroupMessage message = valid(What::kNotification);
  message.round = 3;
  message.rank = 0x0A0B;
  message.epoch = 0x01020304;
  const std::vector<uint8_t> bytes = {6, 1, 3, 0, 0x0B, 0x0A, 0, 0, 5, 0, 0, 0,
                                      0, 0, 0, 0, 6,    0,    0, 0, 4, 3, 2, 1};
  EXPECT_EQ(bytes_of(message), bytes);
}

TEST(GroupMessage, OtherKindsVersionsAndLengthsAreMalformed) {
  EXPECT_FALSE(is_read(valid(static_cast<What>(0))));
  EXPECT_FALSE(is_read(valid(static_cast<What>(10))));
  GroupMessage message = valid(What::kJoin);
  message.version = 2;
  EXPECT_FALSE(is_read(message));
  for (const What what : {What::kJoin, What::kNotification}) {
    std::vector<uint8_t> bytes = bytes_of(valid(what));
    for (size_t length = 0; length <= 100; ++length) {
      const size_t right = bytes_of(valid(what)).size();
      bytes.resize(length);
      GroupMessage out;
      if (length >= sizeof(What)) {
        bytes[0] = static_cast<uint8_t>(what);
      }
      EXPECT_TRUE(length == right || !read(bytes, &out)) << length;
    }
  }
}

TEST(GroupMessage, NumbersOutOfRangeAreMalformed) {
  GroupMessage message = valid(What::kNotification);
  message.round = kRoundsMax;
  EXPECT_FALSE(is_read(message));
  message = valid(What::kNotification);
  message.serial = 0;
  EXPECT_FALSE(is_read(message));
  message = valid(What::kJoin);
  message.ticket = 0;
  EXPECT_FALSE(is_read(message));
  message = valid(What::kJoin);
  message.ranks = 0;
  EXPECT_FALSE(is_read(message));
  message = valid(What::kJoin);
  message.ways = 8;
  EXPECT_FALSE(is_read(message));
  message = valid(What::kPropose);
  message.id = 128;
  EXPECT_FALSE(is_read(message));
  message.id = kNoId;
  EXPECT_TRUE(is_read(message));
  for (const int32_t error : {0, 1, -4096, INT32_MIN}) {
    message = valid(What::kFailed);
    message.error = error;
    EXPECT_FALSE(is_read(message)) << error;
  }
}

}  // namespace
}  // namespace rio::barrier
