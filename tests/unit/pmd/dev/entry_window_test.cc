#include "pmd/dev/entry_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <random>
#include <set>
#include <vector>

#include "tests/support/fake_bus.hpp"

namespace rio::pmd {
namespace {

TEST(EntryWindowTest, RoomInARowEndsAtTheWrap) {
  test::FakeBus bus(nullptr);
  EntryWindow window;
  ASSERT_EQ(window.create(bus, 3, 5), 0);
  EXPECT_EQ(window.room(), 8u);
  EXPECT_EQ(window.room_in_a_row(), 3u);
  window.post(3);
  EXPECT_EQ(window.room_in_a_row(), 5u);
  window.post(5);
  EXPECT_EQ(window.room_in_a_row(), 0u);
  EXPECT_EQ(window.plain_in_a_row(), 3u);
  window.complete_in_order(3);
  EXPECT_EQ(window.plain_in_a_row(), 5u);
  EXPECT_EQ(window.room_in_a_row(), 3u);
}

TEST(EntryWindowTest, NothingIsPlainWhileThereAreMarks) {
  test::FakeBus bus(nullptr);
  EntryWindow window;
  ASSERT_EQ(window.create(bus, 3, 0), 0);
  window.post(3);
  EXPECT_TRUE(window.complete(1));
  EXPECT_EQ(window.plain_in_a_row(), 0u);
  EXPECT_EQ(window.outstanding(), 2u);
  EXPECT_EQ(window.used(), 3u);
  EXPECT_TRUE(window.complete(0));
  EXPECT_EQ(window.plain_in_a_row(), 1u);
  EXPECT_EQ(window.used(), 1u);
}

TEST(EntryWindowTest, ItsArraysAreSharedAndContiguous) {
  test::FakeBus bus(nullptr);
  {
    EntryWindow window;
    bus.shared_until_failure = 0;
    EXPECT_EQ(window.create(bus, 3, 0), -ENOMEM);
    bus.shared_until_failure = 1;
    ASSERT_EQ(window.create(bus, 3, 0), 0);
    EXPECT_EQ(bus.live_shared(), 1u);
    EXPECT_TRUE(bus.is_shared(window.cookies(), 8 * sizeof(uint64_t)));
    EXPECT_TRUE(bus.is_shared(window.sizes(), 8 * sizeof(uint32_t)));
    EXPECT_EQ(static_cast<void*>(window.cookies() + 8), window.sizes());
  }
  EXPECT_EQ(bus.live_shared(), 0u);
}

TEST(EntryWindowTest, SkippedSlotsTakeRoomUntilTheEntryBehindThemIsDone) {
  test::FakeBus bus(nullptr);
  EntryWindow window;
  ASSERT_EQ(window.create(bus, 3, 5), 0);
  window.skip(3);
  window.post_several(2);
  EXPECT_EQ(window.room(), 3u) << "a tail further ahead would be more than a ring before the card";
  EXPECT_EQ(window.outstanding(), 1u);
  window.post(3);
  ASSERT_TRUE(window.complete(10));
  EXPECT_EQ(window.oldest(), 8u);
  EXPECT_EQ(window.room(), 3u);
  ASSERT_TRUE(window.complete(8));
  EXPECT_EQ(window.oldest(), 11u);
  ASSERT_TRUE(window.complete(11));
  ASSERT_TRUE(window.complete(12));
  EXPECT_EQ(window.used(), 0u);
}

TEST(EntryWindowTest, AnEntryFarBehindIsSetAside) {
  test::FakeBus bus(nullptr);
  EntryWindow window;
  ASSERT_EQ(window.create(bus, 3, 0xFFFFFFFE, 1), 0);
  window.cookies()[0xFFFFFFFE & window.mask()] = 77;
  window.post(8);
  for (uint32_t i = 1; i < 8; ++i) {
    ASSERT_TRUE(window.complete(0xFFFFFFFE + i));
    EXPECT_EQ(window.has_straggler(0xFFFFFFFE + i), i > 1) << "two behind: a quarter of the ring";
  }
  EXPECT_EQ(window.room(), 0u);
  window.set_aside(5);
  EXPECT_EQ(window.room(), 7u);
  EXPECT_EQ(window.outstanding(), 1u);
  EXPECT_TRUE(window.is_straggler(0xFFFFFFFE));
  window.post(7);
  ASSERT_TRUE(window.complete(window.head() - 1));
  EXPECT_FALSE(window.has_straggler(window.head() - 1)) << "one is the limit";
  EXPECT_FALSE(window.complete(0xFFFFFFFE));
  EntryWindow::Straggler done{};
  EXPECT_FALSE(window.complete_straggler(0xFFFFFFFF, &done));
  ASSERT_TRUE(window.complete_straggler(0xFFFFFFFE, &done));
  EXPECT_EQ(done.cookie, 77u);
  EXPECT_EQ(done.size, 5u);
  EXPECT_FALSE(window.complete_straggler(0xFFFFFFFE, &done));
  EXPECT_EQ(window.room(), 1u);
}

/// Checks find_before() and next() for a run of messages that one completion may report: all are
/// outstanding, and were posted one after the other.
void expect_run(const EntryWindow& window, const std::vector<uint32_t>& posted,
                const std::set<uint32_t>& outstanding, uint32_t newest, uint32_t count) {
  const auto last = std::ranges::find(posted, newest);
  if (last == posted.end() || last - posted.begin() < static_cast<ptrdiff_t>(count)) {
    return;
  }
  const auto first = last - static_cast<ptrdiff_t>(count);
  if (std::any_of(first, last + 1, [&](uint32_t one) { return outstanding.count(one) == 0; })) {
    return;
  }
  uint32_t found = 0;
  ASSERT_TRUE(window.find_before(newest, count, &found)) << newest << ", " << count;
  EXPECT_EQ(found, *first);
  for (auto at = first; at != last; ++at) {
    EXPECT_EQ(window.next(*at), at[1]);
  }
}

// Compares with a set of indices, for any index that a card might report. Prints its seed.
TEST(EntryWindowTest, AgreesWithASet) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto start =
        static_cast<uint32_t>(random() % 2 == 0 ? 0xFFFFFFFF - random() % 64 : random());
    test::FakeBus bus(nullptr);
    EntryWindow window;
    ASSERT_EQ(window.create(bus, 4, start, seed % 9), 0);
    std::set<uint32_t> outstanding;
    std::vector<uint32_t> posted;
    uint32_t of_several = 0;
    const auto complete = [&](uint32_t index) {
      EntryWindow::Straggler straggler{};
      if (window.complete_straggler(index, &straggler)) {
        EXPECT_EQ(straggler.index, index);
        EXPECT_EQ(straggler.cookie, index + 1);
        EXPECT_EQ(straggler.size, index + 2);
        return true;
      }
      const bool known = window.complete(index);
      while (known && window.has_straggler(index)) {
        EXPECT_EQ(outstanding.count(window.oldest()), 1u);
        window.set_aside(window.oldest() + 2);
      }
      return known;
    };
    for (int step = 0; step < 400; ++step) {
      switch (random() % 4) {
        case 0:
          if (window.room() >= 1) {
            outstanding.insert(window.head());
            posted.push_back(window.head());
            window.cookies()[window.head() & window.mask()] = window.head() + 1;
            window.post(1);
          }
          break;
        case 1: {
          const auto slots = static_cast<uint32_t>(2 + random() % 3);
          const auto skipped = static_cast<uint32_t>(random() % 3);
          if (window.room() >= slots + skipped) {
            window.skip(skipped);
            outstanding.insert(window.head());
            posted.push_back(window.head());
            window.cookies()[window.head() & window.mask()] = window.head() + 1;
            window.post_several(slots);
            ++of_several;
          }
          break;
        }
        default: {
          uint32_t index = window.oldest() + static_cast<uint32_t>(random() % 24) - 4;
          if (!outstanding.empty() && random() % 2 == 0) {
            auto it = outstanding.begin();
            std::advance(it, random() % outstanding.size());
            index = *it;
          }
          const bool expected = outstanding.count(index) == 1;
          expect_run(window, posted, outstanding, index, random() % 4);
          EXPECT_EQ(complete(index), expected) << index;
          outstanding.erase(index);
        }
      }
      ASSERT_EQ(window.outstanding(), outstanding.size());
      ASSERT_LE(outstanding.size() + window.room(), 16u) << "as many as completions at most";
      ASSERT_LE(window.straggling(), seed % 9);
      if (outstanding.empty()) {
        ASSERT_EQ(window.used(), 0u);
      }
    }
    EXPECT_GT(of_several, 0u);
  }
}

}  // namespace
}  // namespace rio::pmd
