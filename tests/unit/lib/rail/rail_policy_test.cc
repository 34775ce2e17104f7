#include "lib/rail/rail_policy.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rio::rail {
namespace {

TEST(RailPolicy, EachNameIsReadBack) {
  for (const RailPolicy policy : {RailPolicy::kStatic, RailPolicy::kUnidirectional,
                                  RailPolicy::kDynamic, RailPolicy::kWeighted}) {
    RailPolicy read = policy == RailPolicy::kStatic ? RailPolicy::kDynamic : RailPolicy::kStatic;
    std::string error;
    EXPECT_EQ(parse_rail_policy(to_string(policy), &read, &error), 0);
    EXPECT_EQ(read, policy);
    EXPECT_EQ(error, "");
  }
  EXPECT_EQ(to_string(RailPolicy::kStatic), "static");
  EXPECT_EQ(to_string(RailPolicy::kUnidirectional), "unidirectional");
  EXPECT_EQ(to_string(RailPolicy::kDynamic), "dynamic");
  EXPECT_EQ(to_string(RailPolicy::kWeighted), "weighted");
}

TEST(RailPolicy, AnotherNameIsRefusedWithTheNamesThatThereAre) {
  for (const char* text : {"", "Static", "weighted ", "round-robin", "dyn"}) {
    RailPolicy read = RailPolicy::kDynamic;
    std::string error;
    EXPECT_EQ(parse_rail_policy(text, &read, &error), -EINVAL);
    EXPECT_EQ(read, RailPolicy::kDynamic);
    EXPECT_EQ(error, "rails: '" + std::string(text) +
                         "' is no policy; use weighted, dynamic, static or unidirectional");
  }
}

}  // namespace
}  // namespace rio::rail
