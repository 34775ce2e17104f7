#include "lib/barrier/node_place.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rio::barrier {
namespace {

TEST(NodePlace, BlocksWithAShortLastNode) {
  NodePlace place;
  ASSERT_EQ(place_in_blocks(10, 4, 0, &place), 0);
  EXPECT_EQ(place,
            (NodePlace{.node = 0, .nodes = 3, .leader = 0, .local_rank = 0, .local_ranks = 4}));
  EXPECT_TRUE(place.is_leader());
  ASSERT_EQ(place_in_blocks(10, 4, 6, &place), 0);
  EXPECT_EQ(place,
            (NodePlace{.node = 1, .nodes = 3, .leader = 4, .local_rank = 2, .local_ranks = 4}));
  EXPECT_FALSE(place.is_leader());
  ASSERT_EQ(place_in_blocks(10, 4, 9, &place), 0);
  EXPECT_EQ(place,
            (NodePlace{.node = 2, .nodes = 3, .leader = 8, .local_rank = 1, .local_ranks = 2}));
}

TEST(NodePlace, OneNodeAndOneRankANode) {
  NodePlace place;
  ASSERT_EQ(place_in_blocks(3, 64, 2, &place), 0);
  EXPECT_EQ(place,
            (NodePlace{.node = 0, .nodes = 1, .leader = 0, .local_rank = 2, .local_ranks = 3}));
  ASSERT_EQ(place_in_blocks(1'000'000, 1, 999'999, &place), 0);
  EXPECT_EQ(place, (NodePlace{.node = 999'999,
                              .nodes = 1'000'000,
                              .leader = 999'999,
                              .local_rank = 0,
                              .local_ranks = 1}));
  ASSERT_EQ(place_in_blocks(UINT32_MAX, UINT32_MAX, 5, &place), 0);
  EXPECT_EQ(place.nodes, 1u);
  EXPECT_EQ(place.local_ranks, UINT32_MAX);
}

TEST(NodePlace, BlocksRefuseWhatIsOutside) {
  NodePlace place{.node = 77};
  EXPECT_EQ(place_in_blocks(10, 4, 10, &place), -EINVAL);
  EXPECT_EQ(place_in_blocks(10, 0, 1, &place), -EINVAL);
  EXPECT_EQ(place_in_blocks(0, 1, 0, &place), -EINVAL);
  EXPECT_EQ(place.node, 77u) << "set only on success";
}

}  // namespace
}  // namespace rio::barrier
