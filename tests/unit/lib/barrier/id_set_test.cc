#include "lib/barrier/id_set.hpp"

#include <gtest/gtest.h>

namespace rio::barrier {
namespace {

TEST(IdSet, HoldsEachNumber) {
  IdSet set;
  EXPECT_TRUE(set.empty());
  for (uint32_t id = 0; id < kIds; ++id) {
    set.add(id);
    EXPECT_TRUE(set.has(id));
    EXPECT_EQ(set.count(), id + 1);
  }
  set.remove(64);
  EXPECT_FALSE(set.has(64));
  EXPECT_TRUE(set.has(63) && set.has(65));
  EXPECT_EQ(set.count(), kIds - 1);
}

TEST(IdSet, FirstFromGoesRound) {
  IdSet set;
  EXPECT_EQ(set.first_from(5), kNoId);
  set.add(3);
  set.add(100);
  EXPECT_EQ(set.first_from(0), 3u);
  EXPECT_EQ(set.first_from(3), 3u);
  EXPECT_EQ(set.first_from(4), 100u);
  EXPECT_EQ(set.first_from(101), 3u);
  EXPECT_EQ(set.first_from(kIds - 1), 3u);
}

TEST(IdSet, Intersection) {
  IdSet one;
  IdSet other;
  one.add(1);
  one.add(127);
  other.add(127);
  other.add(2);
  one &= other;
  EXPECT_EQ(one.count(), 1u);
  EXPECT_TRUE(one.has(127));
}

TEST(IdPool, ANumberIsTakenOnceAndRests) {
  IdPool pool;
  EXPECT_EQ(pool.free(0).count(), kIds);
  EXPECT_TRUE(pool.take(9, 0));
  EXPECT_FALSE(pool.take(9, 0));
  EXPECT_FALSE(pool.free(UINT64_MAX - 1).has(9));
  pool.give_back(9, 1100);
  EXPECT_FALSE(pool.free(1099).has(9));
  EXPECT_FALSE(pool.take(9, 1099));
  EXPECT_TRUE(pool.free(1100).has(9));
  EXPECT_TRUE(pool.take(9, 1100));
  pool.give_back(9, 1200);
  EXPECT_TRUE(pool.take(9, 1200));
}

}  // namespace
}  // namespace rio::barrier
