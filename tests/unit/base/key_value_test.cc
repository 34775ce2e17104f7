// Lists of options in one text.
#include "base/key_value.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rio::test {
namespace {

TEST(KeyValue, ItemsInTheirOrderWithTheirPlaces) {
  constexpr std::string_view kText = "wire=shm:x,exact,qps=,a=b=c";
  std::vector<base::KeyValue> pairs;
  std::string error;
  ASSERT_EQ(base::split_key_values(kText, &pairs, &error), 0);
  ASSERT_EQ(pairs.size(), 4u);
  EXPECT_EQ(pairs[0].key, "wire");
  EXPECT_EQ(pairs[0].value, "shm:x");
  EXPECT_EQ(pairs[0].at, 0u);
  EXPECT_EQ(pairs[1].key, "exact");
  EXPECT_EQ(pairs[1].value, std::nullopt);
  EXPECT_EQ(pairs[1].at, 11u);
  EXPECT_EQ(pairs[2].key, "qps");
  EXPECT_EQ(pairs[2].value, "");
  EXPECT_EQ(pairs[3].key, "a");
  EXPECT_EQ(pairs[3].value, "b=c");
  EXPECT_EQ(pairs[3].at, 22u);
}

TEST(KeyValue, EmptyItemsAreSkipped) {
  for (const char* text : {"", ",", ",,,"}) {
    std::vector<base::KeyValue> pairs(1);
    std::string error;
    EXPECT_EQ(base::split_key_values(text, &pairs, &error), 0) << text;
    EXPECT_TRUE(pairs.empty()) << text;
  }
  std::vector<base::KeyValue> pairs;
  std::string error;
  ASSERT_EQ(base::split_key_values(",a=1,,b=2,", &pairs, &error), 0);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].at, 1u);
  EXPECT_EQ(pairs[1].at, 6u);
}

TEST(KeyValue, AMistakeIsNamedWithItsPlace) {
  std::vector<base::KeyValue> pairs(7);
  std::string error;
  EXPECT_EQ(base::split_key_values("a=1,=2", &pairs, &error), -EINVAL);
  EXPECT_EQ(error, "\"=2\" at character 5 has no key before '='; write KEY=VALUE");
  EXPECT_EQ(base::split_key_values("qps=1,b,qps", &pairs, &error), -EINVAL);
  EXPECT_EQ(error, "qps is given twice, at character 1 and at character 9; leave one out");
  EXPECT_EQ(pairs.size(), 7u);
}

}  // namespace
}  // namespace rio::test
