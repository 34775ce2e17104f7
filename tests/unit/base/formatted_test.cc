#include "base/formatted.hpp"

#include <gtest/gtest.h>

namespace rio::base {
namespace {

TEST(Formatted, PrintsLikePrintf) {
  EXPECT_EQ(formatted("%04x:%s %.1f%%", 0x10EE, "x", 1.25), "10ee:x 1.2%");
  EXPECT_EQ(formatted("%s", ""), "");
}

TEST(Formatted, TextOfAnyLength) {
  const std::string text(10000, 'a');
  EXPECT_EQ(formatted("<%s>", text.c_str()), "<" + text + ">");
}

}  // namespace
}  // namespace rio::base
