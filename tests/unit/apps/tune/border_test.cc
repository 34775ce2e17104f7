// The border between copied and moved messages, computed from the times of each size.
#include <gtest/gtest.h>

#include "apps/tune/measure.hpp"

namespace rio::tune {
namespace {

TEST(Border, IsTheLastSizeThatIsFasterCopied) {
  EXPECT_EQ(border({{1024, 1, 9}, {2048, 2, 9}, {4096, 8, 9}, {8192, 20, 9}}), 4096u);
}

TEST(Border, OneOddSizeDoesNotMoveIt) {
  EXPECT_EQ(border({{1024, 1, 9}, {2048, 9.5, 9}, {4096, 4, 9}, {8192, 20, 9}}), 4096u);
  EXPECT_EQ(border({{1024, 1, 9}, {2048, 12, 9}, {4096, 8.9, 9}, {8192, 20, 9}}), 1024u);
}

TEST(Border, AtTheEnds) {
  EXPECT_EQ(border({{1024, 1, 9}, {1u << 20, 2, 9}}), 1u << 20);
  EXPECT_EQ(border({{1024, 9, 1}, {1u << 20, 9, 2}}), 512u);
}

/// Points whose rounds have these borders, of the sizes 1024 to 8192.
std::vector<Point> of_borders(const std::vector<uint64_t>& borders) {
  std::vector<Point> points;
  for (uint32_t size = 1024; size <= 8192; size *= 2) {
    Point point{size, 0, 0};
    for (const uint64_t border : borders) {
      point.copied_rounds.push_back(size <= border ? 1 : 9);
      point.moved_rounds.push_back(size <= border ? 9 : 1);
    }
    points.push_back(point);
  }
  return points;
}

TEST(Spread, IgnoresTheExtremeRounds) {
  const Spread five = spread(of_borders({8192, 2048, 4096, 512, 2048}));
  EXPECT_EQ(five.low, 2048u);
  EXPECT_EQ(five.high, 4096u);
  EXPECT_FALSE(five.is_vague());
  const Spread three = spread(of_borders({8192, 2048, 4096}));
  EXPECT_EQ(three.low, 2048u);
  EXPECT_EQ(three.high, 8192u);
  EXPECT_FALSE(three.is_vague());
}

TEST(Spread, RoundsThatDoNotAgreeAreVague) {
  EXPECT_TRUE(spread(of_borders({8192, 1024, 8192, 1024, 2048})).is_vague());
  EXPECT_TRUE(spread(of_borders({512, 4096, 2048})).is_vague());
  EXPECT_FALSE(spread(of_borders({4096})).is_vague());
}

TEST(Border, SizesAscendWithinTheProfile) {
  const std::vector<uint32_t> all = sizes();
  for (size_t i = 1; i < all.size(); ++i) {
    EXPECT_LT(all[i - 1], all[i]);
  }
  EXPECT_LE(all.back(), msg::Profile::kEagerMax);
  EXPECT_GE(all.front() / 2, msg::Profile::kEagerMin);
}

}  // namespace
}  // namespace rio::tune
