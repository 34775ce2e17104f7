// Hashes and seeded randomness: wire formats and recorded faults depend on each bit.
#include "base/hash.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace rio::test {
namespace {

// Test vectors of the FNV specification (RFC 9923).
TEST(Hash, Fnv1a) {
  EXPECT_EQ(base::fnv1a<uint32_t>(""), 0x811c9dc5u);
  EXPECT_EQ(base::fnv1a<uint32_t>("a"), 0xe40c292cu);
  EXPECT_EQ(base::fnv1a<uint32_t>("foobar"), 0xbf9cf968u);
  EXPECT_EQ(base::fnv1a<uint64_t>(""), 0xcbf29ce484222325u);
  EXPECT_EQ(base::fnv1a<uint64_t>("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(base::fnv1a<uint64_t>("foobar"), 0x85944171f73967e8u);
}

// The first numbers of splitmix64 for two seeds, as its authors' program prints them.
TEST(Random, NumbersOfASeed) {
  base::Random zero(0);
  EXPECT_EQ(zero.next(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(zero.next(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(zero.next(), 0x06c45d188009454fu);
  base::Random other(1234567);
  EXPECT_EQ(other.next(), 6457827717110365317u);
  EXPECT_EQ(other.next(), 3203168211198807973u);
  EXPECT_EQ(base::mix64(base::kRandomStep), 0xe220a8397b1dcdafu);
}

TEST(Random, BelowAndChance) {
  base::Random random(1);
  bool seen[3] = {};
  for (int i = 0; i < 100; ++i) {
    const uint32_t value = random.below(3);
    ASSERT_LT(value, 3u);
    seen[value] = true;
    EXPECT_EQ(random.below(1), 0u);
    EXPECT_FALSE(random.chance(0));
    EXPECT_TRUE(random.chance(1));
  }
  EXPECT_TRUE(seen[0] && seen[1] && seen[2]);
}

}  // namespace
}  // namespace rio::test
