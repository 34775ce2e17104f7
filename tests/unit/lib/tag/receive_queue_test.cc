#include "lib/tag/receive_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rio::tag {
namespace {

constexpr HashSeed kSeed{.for_bits = 0x0123456789ABCDEF,
                         .for_source = 0xFEDCBA9876543210,
                         .for_both = 0x9E3779B97F4A7C15};

class ReceiveQueueTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(queue_.create(kSeed, 16, 0), 0); }

  static Receive receive(uint32_t source, uint64_t bits, uint64_t ignore = 0) {
    Receive out;
    out.source = source;
    out.bits = bits;
    out.ignore = ignore;
    return out;
  }

  ReceiveQueue queue_;
};

TEST_F(ReceiveQueueTest, EqualReceivesMatchInTheOrderOfPosting) {
  Receive a = receive(1, 5);
  Receive b = receive(1, 5);
  queue_.add(a);
  queue_.add(b);
  EXPECT_EQ(a.place, Place::kTable);
  EXPECT_EQ(queue_.take(1, 5), &a);
  EXPECT_EQ(a.place, Place::kNowhere);
  EXPECT_EQ(queue_.take(1, 5), &b);
  EXPECT_EQ(queue_.take(1, 5), nullptr);
}

TEST_F(ReceiveQueueTest, NothingElseMatches) {
  Receive a = receive(1, 5);
  queue_.add(a);
  EXPECT_EQ(queue_.take(2, 5), nullptr);
  EXPECT_EQ(queue_.take(1, 4), nullptr);
  EXPECT_EQ(queue_.take(1, 5 | 1ull << 63), nullptr);
  EXPECT_EQ(queue_.count(), 1u);
}

// MPI over libfabric: each receive ignores the same few flags of the tag.
TEST_F(ReceiveQueueTest, FlagsThatAllReceivesIgnoreBecomeTheUsualMask) {
  constexpr uint64_t kFlags = 3ull << 60;
  Receive five = receive(1, 5, kFlags);
  Receive six = receive(1, 6 | 1ull << 60, kFlags);
  Receive any = receive(kAnySource, 7, kFlags);
  queue_.add(five);
  queue_.add(six);
  EXPECT_EQ(queue_.wild(), 0u);
  queue_.add(any);
  EXPECT_EQ(queue_.wild(), 1u);
  EXPECT_EQ(queue_.take(1, 4), nullptr);
  EXPECT_EQ(queue_.take(1, 5 | 2ull << 60), &five);
  EXPECT_EQ(queue_.take(2, 7 | 3ull << 60), &any);
  EXPECT_EQ(queue_.wild(), 0u);
  EXPECT_EQ(queue_.cancel(six), 0);
  EXPECT_EQ(queue_.count(), 0u);
}

TEST_F(ReceiveQueueTest, TheUsualBitsChangeOnlyWhileTheTableIsEmpty) {
  Receive whole = receive(1, 5);
  Receive flagged = receive(1, 5, 1);
  queue_.add(whole);
  queue_.add(flagged);
  EXPECT_EQ(flagged.place, Place::kMasked);
  EXPECT_EQ(queue_.take(1, 4), &flagged);
  EXPECT_EQ(queue_.take(1, 5), &whole);
  queue_.add(flagged);
  EXPECT_EQ(flagged.place, Place::kTable);
  queue_.add(whole);
  EXPECT_EQ(whole.place, Place::kMasked);
  EXPECT_EQ(queue_.take(1, 4), &flagged);
  EXPECT_EQ(queue_.take(1, 4), nullptr);
  EXPECT_EQ(queue_.take(1, 5), &whole);
}

// Otherwise one receive of any tag would put all receives of one tag into the list.
TEST_F(ReceiveQueueTest, AReceiveOfAnyTagIsNeverUsual) {
  Receive any = receive(1, 0, 0xFFFF);
  Receive five = receive(1, 5);
  queue_.add(any);
  queue_.add(five);
  EXPECT_EQ(any.place, Place::kMasked);
  EXPECT_EQ(five.place, Place::kTable);
  EXPECT_EQ(queue_.take(1, 5), &any);
  EXPECT_EQ(queue_.take(1, 5), &five);
}

TEST_F(ReceiveQueueTest, ARunTakesTheReceivesThatItsMessagesMatch) {
  Receive of_five[] = {receive(1, 5), receive(1, 5), receive(1, 5)};
  Receive six = receive(1, 6);
  queue_.add(of_five[0]);
  queue_.add(six);
  queue_.add(of_five[1]);
  queue_.add(of_five[2]);
  {
    ReceiveQueue::Run run(queue_, 1);
    EXPECT_EQ(run.take(5), &of_five[0]);
    EXPECT_EQ(of_five[0].place, Place::kNowhere);
    EXPECT_EQ(run.take(6), &six);
    EXPECT_EQ(run.take(6), nullptr);
    EXPECT_EQ(run.take(5), &of_five[1]);
  }
  EXPECT_EQ(queue_.count(), 1u);
  EXPECT_EQ(queue_.cancel(of_five[1]), -ENOENT);
  queue_.add(of_five[0]);  // it is the youngest now
  EXPECT_EQ(queue_.take(1, 5), &of_five[2]);
  {
    ReceiveQueue::Run run(queue_, 1);
    EXPECT_EQ(run.take(5), &of_five[0]);
    EXPECT_EQ(run.take(5), nullptr);  // all receives of the key are taken
  }
  EXPECT_EQ(queue_.count(), 0u);
}

TEST_F(ReceiveQueueTest, ARunSeesOlderReceivesOfAnySource) {
  Receive all[] = {receive(1, 5), receive(kAnySource, 5), receive(1, 5), receive(1, 0, ~0ull)};
  for (Receive& each : all) {
    queue_.add(each);
  }
  ReceiveQueue::Run run(queue_, 1);
  for (Receive& each : all) {
    EXPECT_EQ(run.take(5), &each);
  }
  EXPECT_EQ(run.take(5), nullptr);
}

// Four receives, one of each kind, that all match a message, posted in every order: the earliest
// takes it.
TEST_F(ReceiveQueueTest, TheEarliestOfAnyKindMatches) {
  int order[] = {0, 1, 2, 3};
  do {
    Receive kinds[] = {receive(1, 0x55), receive(kAnySource, 0x55), receive(1, 0x50, 0x0F),
                       receive(kAnySource, 0, ~0ull)};
    for (const int kind : order) {
      queue_.add(kinds[kind]);
    }
    for (const int kind : order) {
      ASSERT_EQ(queue_.take(1, 0x55), &kinds[kind]);
    }
    ASSERT_EQ(queue_.take(1, 0x55), nullptr);
    ASSERT_EQ(queue_.count(), 0u);
  } while (std::next_permutation(std::begin(order), std::end(order)));
}

TEST_F(ReceiveQueueTest, AMaskedReceiveThatDoesNotMatchIsSkipped) {
  Receive other = receive(1, 0x60, 0x0F);
  Receive masked = receive(1, 0x50, 0x0F);
  Receive exact = receive(1, 0x55);
  queue_.add(other);
  queue_.add(masked);
  queue_.add(exact);
  EXPECT_EQ(queue_.take(1, 0x55), &masked);
  EXPECT_EQ(queue_.take(1, 0x55), &exact);
  EXPECT_EQ(queue_.take(1, 0x55), nullptr);
  EXPECT_EQ(queue_.take(1, 0x6A), &other);
}

TEST_F(ReceiveQueueTest, AgeIsComparedAcrossTheWrapOfNumbers) {
  for (const uint64_t start : {~0ull - 2, 0x7FFFFFFFFFFFFFFEull, 0xFFFFFFFEull}) {
    ReceiveQueue queue;
    ASSERT_EQ(queue.create(kSeed, 16, start), 0);
    EXPECT_EQ(queue.count(), 0u);
    Receive all[] = {receive(1, 5),     receive(kAnySource, 5), receive(1, 0, 7),
                     receive(1, 5),     receive(1, 5, ~0ull),   receive(kAnySource, 5),
                     receive(1, 5, 12), receive(kAnySource, 5)};
    for (Receive& each : all) {
      queue.add(each);
    }
    EXPECT_EQ(queue.count(), std::size(all));
    for (Receive& each : all) {
      ASSERT_EQ(queue.take(1, 5), &each) << start;
    }
    EXPECT_EQ(queue.count(), 0u);
  }
}

TEST_F(ReceiveQueueTest, CancelInEachState) {
  Receive kinds[] = {receive(1, 5), receive(kAnySource, 5), receive(1, 5, 1)};
  for (Receive& each : kinds) {
    EXPECT_EQ(queue_.cancel(each), -ENOENT);  // never posted
    queue_.add(each);
    EXPECT_EQ(queue_.cancel(each), 0);
    EXPECT_EQ(queue_.cancel(each), -ENOENT);  // cancelled
    EXPECT_EQ(queue_.take(1, 5), nullptr);
    queue_.add(each);
    EXPECT_EQ(queue_.take(1, 5), &each);
    EXPECT_EQ(queue_.cancel(each), -ENOENT);  // matched
    EXPECT_EQ(queue_.count(), 0u);
  }
}

TEST_F(ReceiveQueueTest, CancelledReceivesAreSkippedWhereverTheyStood) {
  for (const Pattern& pattern : {Pattern{5, 0, 1}, Pattern{5, 0, kAnySource}, Pattern{5, 2, 1}}) {
    for (size_t gone = 0; gone < 3; ++gone) {
      Receive all[3];
      for (Receive& each : all) {
        static_cast<Pattern&>(each) = pattern;
        queue_.add(each);
      }
      EXPECT_EQ(queue_.cancel(all[gone]), 0);
      for (size_t i = 0; i < 3; ++i) {
        if (i != gone) {
          ASSERT_EQ(queue_.take(1, 5), &all[i]);
        }
      }
      ASSERT_EQ(queue_.take(1, 5), nullptr);
    }
  }
}

TEST_F(ReceiveQueueTest, CancelIfTakesThoseOfOnePeer) {
  Receive of_peer[] = {receive(2, 1), receive(2, 1), receive(2, 9), receive(2, 0, ~0ull)};
  Receive others[] = {receive(1, 1), receive(kAnySource, 1), receive(3, 0, ~0ull)};
  for (Receive& each : of_peer) {
    queue_.add(each);
  }
  for (Receive& each : others) {
    queue_.add(each);
  }
  const auto gone = queue_.cancel_if([](const Receive& each) { return each.source == 2; });
  size_t count = 0;
  gone.for_each([&](Receive& each) {
    EXPECT_EQ(each.source, 2u);
    EXPECT_EQ(each.place, Place::kNowhere);
    EXPECT_EQ(queue_.cancel(each), -ENOENT);
    ++count;
  });
  EXPECT_EQ(count, std::size(of_peer));
  EXPECT_EQ(queue_.count(), std::size(others));
  EXPECT_EQ(queue_.take(1, 1), &others[0]);
  EXPECT_EQ(queue_.take(1, 1), &others[1]);
  EXPECT_EQ(queue_.take(3, 1), &others[2]);
  EXPECT_EQ(queue_.take(2, 1), nullptr);
}

TEST_F(ReceiveQueueTest, CancelIfOfAllLeavesNothing) {
  std::vector<Receive> all;
  for (uint32_t i = 0; i < 300; ++i) {
    all.push_back(receive(i % 3 == 0 ? kAnySource : i, i % 50, i % 5 == 0 ? 0xF0 : 0));
  }
  for (Receive& each : all) {
    queue_.add(each);
  }
  const auto gone = queue_.cancel_if([](const Receive&) { return true; });
  size_t count = 0;
  gone.for_each([&](const Receive&) { ++count; });
  EXPECT_EQ(count, all.size());
  EXPECT_EQ(queue_.count(), 0u);
  EXPECT_EQ(queue_.take(1, 1), nullptr);
}

// A million receives of one key: no search may depend on their number, or the test would take for
// ever.
TEST_F(ReceiveQueueTest, AMillionReceivesOfOneKey) {
  constexpr size_t kCount = 1000000;
  std::vector<Receive> all(kCount, receive(1, 5));
  for (Receive& each : all) {
    queue_.add(each);
  }
  EXPECT_EQ(queue_.longest_chain(), 1u);
  for (size_t i = 1; i < kCount; i += 2) {
    ASSERT_EQ(queue_.cancel(all[i]), 0);
  }
  for (size_t i = 0; i < kCount; i += 2) {
    ASSERT_EQ(queue_.take(1, 5), &all[i]);
  }
  EXPECT_EQ(queue_.take(1, 5), nullptr);
}

// A million receives with different keys, matched in reverse order.
TEST_F(ReceiveQueueTest, AMillionKeysInReverse) {
  constexpr size_t kCount = 1000000;
  std::vector<Receive> all(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    all[i] = receive(i % 2 == 0 ? static_cast<uint32_t>(i % 64) : kAnySource, i);
    queue_.add(all[i]);
  }
  EXPECT_LE(queue_.longest_chain(), 12u);
  for (size_t i = kCount; i-- > 0;) {
    ASSERT_EQ(queue_.take(static_cast<uint32_t>(i % 64), i), &all[i]);
  }
}

// A million masked receives, matched from the front: each is found without a long search, in order.
TEST_F(ReceiveQueueTest, AMillionMaskedReceives) {
  constexpr size_t kCount = 1000000;
  std::vector<Receive> all(kCount, receive(kAnySource, 0x500, 0xFF));
  for (Receive& each : all) {
    queue_.add(each);
  }
  EXPECT_EQ(queue_.take(1, 0x400), nullptr);  // searches through all of them, once
  EXPECT_EQ(queue_.cancel(all[kCount / 2]), 0);
  for (size_t i = 0; i < kCount; ++i) {
    if (i != kCount / 2) {
      ASSERT_EQ(queue_.take(1, 0x500 + i % 256), &all[i]);
    }
  }
  EXPECT_EQ(queue_.count(), 0u);
}

}  // namespace
}  // namespace rio::tag
