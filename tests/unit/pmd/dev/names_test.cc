#include "pmd/dev/names.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rio::pmd {
namespace {

template <class Code>
std::set<std::string> names(uint32_t first, uint32_t last) {
  std::set<std::string> all;
  for (uint32_t code = first; code <= last; ++code) {
    all.insert(name(static_cast<Code>(code)));
  }
  return all;
}

TEST(NamesTest, AllCodesHaveDistinctNames) {
  EXPECT_EQ(names<Status>(0, 11).size(), 12u);
  EXPECT_EQ(names<regs::RingState>(0, 3).size(), 4u);
  EXPECT_EQ(names<regs::RingError>(0, 4).size(), 5u);
  EXPECT_EQ(names<Reject>(0, 4).size(), 5u);
  EXPECT_EQ(names<regs::EventType>(1, 5).size(), 5u);
  std::set<std::string> rings;
  std::set<std::string> remedies;
  for (uint32_t i = 0; i < 16; ++i) {
    rings.insert(ring_name(i));
    remedies.insert(remedy(static_cast<regs::RingError>(i)));
  }
  EXPECT_EQ(rings.size(), 16u);
  EXPECT_EQ(remedies.size(), 6u);
}

TEST(NamesTest, UnknownCodesAreNamedAsSuch) {
  EXPECT_STREQ(name(Status(12)), "unknown status");
  EXPECT_STREQ(name(regs::RingState(7)), "unknown state");
  EXPECT_STREQ(name(regs::RingError(99)), "unknown error");
  EXPECT_STREQ(name(Reject(99)), "unknown reject");
  EXPECT_STREQ(name(regs::EventType(0)), "unknown event");
  EXPECT_STREQ(ring_name(16), "unknown ring");
}

}  // namespace
}  // namespace rio::pmd
