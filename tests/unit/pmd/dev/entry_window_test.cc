#include "pmd/dev/entry_window.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <set>

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

// Compares with a set of indices, for any index that a card might report. Prints its seed.
TEST(EntryWindowTest, AgreesWithASet) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const auto start =
        static_cast<uint32_t>(random() % 2 == 0 ? 0xFFFFFFFF - random() % 64 : random());
    test::FakeBus bus(nullptr);
    EntryWindow window;
    ASSERT_EQ(window.create(bus, 4, start), 0);
    std::set<uint32_t> outstanding;
    uint32_t of_several = 0;
    for (int step = 0; step < 400; ++step) {
      switch (random() % 4) {
        case 0:
          if (window.room() >= 1) {
            outstanding.insert(window.head());
            window.post(1);
          }
          break;
        case 1: {
          const auto slots = static_cast<uint32_t>(2 + random() % 3);
          const auto skipped = static_cast<uint32_t>(random() % 3);
          if (window.room() >= slots + skipped) {
            window.skip(skipped);
            outstanding.insert(window.head());
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
          EXPECT_EQ(window.complete(index), outstanding.erase(index) == 1) << index;
        }
      }
      ASSERT_EQ(window.outstanding(), outstanding.size());
      ASSERT_LE(window.used(), 16u);
      if (outstanding.empty()) {
        ASSERT_EQ(window.used(), 0u);
      }
    }
    EXPECT_GT(of_several, 0u);
  }
}

}  // namespace
}  // namespace rio::pmd
