#include "base/formatted.hpp"

#include <gtest/gtest.h>

#include <cerrno>

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

TEST(Formatted, TellsAnError) {
  std::string error = "old";
  EXPECT_EQ(fail(&error, "port %d of %s", 3, "0001"), -EINVAL);
  EXPECT_EQ(error, "port 3 of 0001");
}

}  // namespace
}  // namespace rio::base
