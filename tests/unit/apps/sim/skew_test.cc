#include "apps/sim/skew.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace rio::simapp {
namespace {

TEST(Skew, TextsAreReadAndWritten) {
  for (const char* text : {"none", "uniform:0", "uniform:2000", "exponential:7", "one-late:5000"}) {
    Skew skew;
    std::string error;
    ASSERT_EQ(Skew::parse(text, &skew, &error), 0) << error;
    EXPECT_EQ(skew.text(), text);
  }
}

TEST(Skew, BadTextsNameTheRemedy) {
  for (const char* text : {"", "uniform", "uniform:", "uniform:-1", "uniform:1x", "none:1",
                           "late:5", "exponential:3600000000001", "uniform:99999999999999999999"}) {
    Skew skew{SkewKind::kOneLate, 7};
    std::string error;
    EXPECT_EQ(Skew::parse(text, &skew, &error), -EINVAL) << text;
    EXPECT_NE(error.find("give"), std::string::npos) << error;
    EXPECT_EQ(skew, (Skew{SkewKind::kOneLate, 7})) << text;
  }
}

TEST(Skew, UniformFillsItsRange) {
  base::Random random(3);
  const std::vector<uint64_t> delays = Skew{SkewKind::kUniform, 9}.delays_ns(1000, random);
  EXPECT_EQ(std::ranges::min(delays), 0u);
  EXPECT_EQ(std::ranges::max(delays), 9u);
}

TEST(Skew, ExponentialHasItsMean) {
  base::Random random(3);
  const std::vector<uint64_t> delays = Skew{SkewKind::kExponential, 1000}.delays_ns(20'000, random);
  const uint64_t sum = std::accumulate(delays.begin(), delays.end(), uint64_t{0});
  EXPECT_NEAR(static_cast<double>(sum) / 20'000, 1000, 30);
  EXPECT_GT(std::ranges::max(delays), 5000u);
  EXPECT_LE(std::ranges::max(delays), 40'000u);
}

TEST(Skew, OneIsLate) {
  base::Random random(3);
  const std::vector<uint64_t> delays = Skew{SkewKind::kOneLate, 50}.delays_ns(9, random);
  EXPECT_EQ(std::ranges::count(delays, 50u), 1);
  EXPECT_EQ(std::ranges::count(delays, 0u), 8);
  EXPECT_TRUE(Skew{}.delays_ns(9, random).empty());
}

}  // namespace
}  // namespace rio::simapp
