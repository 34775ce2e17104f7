// From times of each size to the border.
#include <gtest/gtest.h>

#include "apps/tune/measure.hpp"

namespace rio::tune {
namespace {

TEST(Border, IsTheLastSizeThatIsQuickerCopied) {
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
