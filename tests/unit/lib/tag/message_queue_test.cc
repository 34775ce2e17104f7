#include "lib/tag/message_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rio::tag {
namespace {

constexpr HashSeed kSeed{.for_bits = 0x0123456789ABCDEF,
                         .for_source = 0xFEDCBA9876543210,
                         .for_both = 0x9E3779B97F4A7C15};
constexpr uint32_t kMany = 4 * MessageQueue::kShortWalk;  // enough that the queue uses tables

class MessageQueueTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(queue_.create(kSeed, 16), 0); }

  static Message message(uint32_t source, uint64_t bits) {
    Message out;
    out.source = source;
    out.bits = bits;
    return out;
  }
  static Pattern pattern(uint32_t source, uint64_t bits, uint64_t ignore = 0) {
    return {.bits = bits, .ignore = ignore, .source = source};
  }
  /// Appends messages that no test takes, in front of the others.
  void append_strangers(uint32_t count) {
    strangers_.assign(count, message(77, 0xFFFF));
    for (Message& each : strangers_) {
      queue_.append(each);
    }
  }

  MessageQueue queue_;
  std::vector<Message> strangers_;
};

TEST_F(MessageQueueTest, NothingIsFoundInAnEmptyQueue) {
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.find(pattern(1, 5)), nullptr);
  EXPECT_EQ(queue_.find(pattern(kAnySource, 5)), nullptr);
  EXPECT_EQ(queue_.find(pattern(kAnySource, 0, ~0ull)), nullptr);
  EXPECT_EQ(queue_.take(pattern(1, 5)), nullptr);
  EXPECT_EQ(queue_.claim(pattern(1, 5)), nullptr);
}

// With few messages, which the queue searches, and with many, which it looks up in tables.
TEST_F(MessageQueueTest, TheEarliestArrivedIsTaken) {
  for (const uint32_t strangers : {0u, kMany}) {
    append_strangers(strangers);
    Message all[] = {message(2, 5), message(1, 5), message(1, 6), message(1, 5)};
    for (Message& each : all) {
      queue_.append(each);
    }
    EXPECT_EQ(queue_.find(pattern(1, 5)), &all[1]);
    EXPECT_EQ(queue_.find(pattern(1, 5)), &all[1]);  // find() does not remove it
    EXPECT_EQ(queue_.find(pattern(kAnySource, 5)), &all[0]);
    EXPECT_EQ(queue_.find(pattern(1, 4, 2)), &all[2]);
    EXPECT_EQ(queue_.find(pattern(3, 5)), nullptr);
    EXPECT_EQ(queue_.find(pattern(kAnySource, 7)), nullptr);
    EXPECT_EQ(queue_.take(pattern(1, 5)), &all[1]);
    EXPECT_EQ(all[1].place, Place::kNowhere);
    EXPECT_EQ(queue_.take(pattern(kAnySource, 5)), &all[0]);
    EXPECT_EQ(queue_.take(pattern(kAnySource, 5)), &all[3]);
    EXPECT_EQ(queue_.take(pattern(kAnySource, 5)), nullptr);
    EXPECT_EQ(queue_.take(pattern(1, 0, 0xFF)), &all[2]);
    EXPECT_EQ(queue_.count(), strangers);
    for (Message& each : strangers_) {
      EXPECT_EQ(queue_.take(pattern(kAnySource, 0, ~0ull)), &each);
    }
  }
}

TEST_F(MessageQueueTest, TablesIncludeLaterMessages) {
  append_strangers(kMany);
  EXPECT_EQ(queue_.find(pattern(1, 5)), nullptr);           // the first table exists from here on
  EXPECT_EQ(queue_.find(pattern(kAnySource, 5)), nullptr);  // the second table
  Message a = message(1, 5);
  Message b = message(2, 5);
  queue_.append(b);
  queue_.append(a);
  EXPECT_EQ(queue_.find(pattern(1, 5)), &a);
  EXPECT_EQ(queue_.find(pattern(kAnySource, 5)), &b);
  EXPECT_EQ(queue_.discard(b), 0);
  EXPECT_EQ(queue_.find(pattern(kAnySource, 5)), &a);
  EXPECT_EQ(queue_.find(pattern(2, 5)), nullptr);
}

TEST_F(MessageQueueTest, ATableServesReceivesThatIgnoreTheSameFlags) {
  constexpr uint64_t kFlags = 3ull << 60;
  append_strangers(kMany);
  Message a = message(1, 5 | 1ull << 60);
  Message b = message(1, 5 | 2ull << 60);
  queue_.append(a);
  EXPECT_EQ(queue_.find(pattern(1, 5, kFlags)), &a);
  EXPECT_EQ(queue_.tables(), 1);
  queue_.append(b);
  EXPECT_EQ(queue_.find(pattern(1, 5)), nullptr);
  EXPECT_EQ(queue_.find(pattern(1, 5 | 2ull << 60)), &b);
  EXPECT_EQ(queue_.find(pattern(1, 5 | 2ull << 60, 1)), &b);
  EXPECT_EQ(queue_.take(pattern(1, 5, kFlags)), &a);
  EXPECT_EQ(queue_.take(pattern(1, 5, kFlags)), &b);
}

TEST_F(MessageQueueTest, TablesComeWithLookUpsAndGoWithTheLastMessage) {
  append_strangers(kMany);
  EXPECT_EQ(queue_.find(pattern(77, 0xFFFF)), &strangers_[0]);
  EXPECT_EQ(queue_.find(pattern(1, 5, 0xFFF)), nullptr);
  EXPECT_EQ(queue_.tables(), 0);  // the first matched early, the second ignores many bits
  EXPECT_EQ(queue_.find(pattern(1, 5)), nullptr);
  EXPECT_EQ(queue_.tables(), 1);
  EXPECT_EQ(queue_.find(pattern(kAnySource, 5)), nullptr);
  EXPECT_EQ(queue_.tables(), 2);
  while (!queue_.empty()) {
    EXPECT_EQ(queue_.tables(), 2);
    EXPECT_EQ(queue_.discard(*queue_.waiting().first()), 0);
  }
  EXPECT_EQ(queue_.tables(), 0);
}

// Filled and emptied again and again, with and without look-ups in between.
TEST_F(MessageQueueTest, NoOldMessageIsFoundAfterTheQueueWasEmpty) {
  for (uint32_t round = 0; round < 8; ++round) {
    append_strangers(kMany);
    Message one = message(1, round);
    queue_.append(one);
    if (round % 2 == 0) {
      EXPECT_EQ(queue_.find(pattern(1, round)), &one);
    }
    if (round % 3 == 0) {
      EXPECT_EQ(queue_.find(pattern(kAnySource, round)), &one);
    }
    EXPECT_EQ(queue_.take(pattern(77, 0xFFFF)), &strangers_[0]);
    while (!queue_.empty()) {
      EXPECT_EQ(queue_.discard(*queue_.waiting().first()), 0);
    }
    EXPECT_EQ(queue_.find(pattern(1, round)), nullptr);
  }
}

TEST_F(MessageQueueTest, AClaimedMessageIsNotFound) {
  for (const uint32_t strangers : {0u, kMany}) {
    append_strangers(strangers);
    Message a = message(1, 5);
    Message b = message(1, 5);
    queue_.append(a);
    queue_.append(b);
    EXPECT_EQ(queue_.claim(pattern(1, 5)), &a);
    EXPECT_EQ(a.place, Place::kClaimed);
    EXPECT_EQ(queue_.claimed().first(), &a);
    EXPECT_EQ(MessageQueue::List::next(a), nullptr);
    EXPECT_EQ(queue_.find(pattern(1, 5)), &b);
    EXPECT_EQ(queue_.take(pattern(1, 5)), &b);
    EXPECT_EQ(queue_.take(pattern(1, 5)), nullptr);
    EXPECT_EQ(queue_.release(a), 0);
    EXPECT_EQ(a.place, Place::kNowhere);
    EXPECT_TRUE(queue_.claimed().is_empty());
    EXPECT_EQ(queue_.count(), strangers);
    while (!queue_.empty()) {
      EXPECT_EQ(queue_.discard(*queue_.waiting().first()), 0);
    }
  }
}

TEST_F(MessageQueueTest, AHandleIsGoodOnce) {
  Message a = message(1, 5);
  EXPECT_EQ(queue_.release(a), -ENOENT);  // it was never in the queue
  queue_.append(a);
  EXPECT_EQ(queue_.release(a), -ENOENT);  // it waits and is not claimed
  EXPECT_EQ(queue_.claim(pattern(1, 5)), &a);
  EXPECT_EQ(queue_.release(a), 0);
  EXPECT_EQ(queue_.release(a), -ENOENT);
}

TEST_F(MessageQueueTest, DiscardInEachState) {
  Message a = message(1, 5);
  EXPECT_EQ(queue_.discard(a), -ENOENT);
  queue_.append(a);
  EXPECT_EQ(queue_.discard(a), 0);
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(queue_.discard(a), -ENOENT);
  queue_.append(a);
  EXPECT_EQ(queue_.claim(pattern(1, 5)), &a);
  EXPECT_EQ(queue_.discard(a), 0);
  EXPECT_TRUE(queue_.claimed().is_empty());
}

// A hundred thousand messages, received in reverse order: with a search for each the test would
// take for ever.
TEST_F(MessageQueueTest, ManyInReverse) {
  constexpr size_t kCount = 100000;
  std::vector<Message> all(kCount);
  for (const bool any : {false, true}) {
    for (size_t i = 0; i < kCount; ++i) {
      all[i] = message(static_cast<uint32_t>(i % 63), i / 2);
      queue_.append(all[i]);
    }
    for (size_t i = kCount; i-- > 0;) {
      const uint32_t source = any ? kAnySource : all[i].source;
      const size_t first = any ? i / 2 * 2 + (i % 2 == 0) : i;  // the older of two equal ones
      ASSERT_EQ(queue_.take(pattern(source, i / 2)), &all[first]) << i;
    }
    EXPECT_TRUE(queue_.empty());
    EXPECT_LE(queue_.longest_chain(), 12u);
  }
}

}  // namespace
}  // namespace rio::tag
