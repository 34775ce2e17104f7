#include "lib/tag/key.hpp"

#include <gtest/gtest.h>

namespace rio::tag {
namespace {

TEST(Pattern, IgnoredBitsAreNotCompared) {
  const Pattern pattern{.bits = 0xAB00, .ignore = 0xFF, .source = 3};
  EXPECT_TRUE(pattern.matches(3, 0xAB00));
  EXPECT_TRUE(pattern.matches(3, 0xAB7F));
  EXPECT_FALSE(pattern.matches(3, 0xAC00));
  EXPECT_FALSE(pattern.matches(4, 0xAB00));
}

TEST(Pattern, IgnoredBitsOfThePatternItselfDoNotMatter) {
  const Pattern pattern{.bits = 0xAB7F, .ignore = 0xFF, .source = 3};
  EXPECT_TRUE(pattern.matches(3, 0xAB00));
}

TEST(Pattern, TheHighestBitCounts) {
  const Pattern pattern{.bits = 1ull << 63, .ignore = 0, .source = kAnySource};
  EXPECT_TRUE(pattern.matches(0, 1ull << 63));
  EXPECT_TRUE(pattern.matches(0xFFFFFFFE, 1ull << 63));
  EXPECT_FALSE(pattern.matches(0, 0));
}

TEST(Pattern, EverythingMatchesTheWidest) {
  const Pattern pattern{.bits = 5, .ignore = ~0ull, .source = kAnySource};
  EXPECT_TRUE(pattern.matches(9, 0));
  EXPECT_TRUE(pattern.matches(0, ~0ull));
}

TEST(HashSeed, IsRandom) {
  HashSeed a;
  HashSeed b;
  ASSERT_EQ(HashSeed::draw(&a), 0);
  ASSERT_EQ(HashSeed::draw(&b), 0);
  EXPECT_NE(a.for_bits, b.for_bits);
  EXPECT_NE(a.for_source, b.for_source);
  EXPECT_EQ(a.for_both % 2, 1u);
}

}  // namespace
}  // namespace rio::tag
