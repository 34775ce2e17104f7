// The test controls time by the tick rate: with very many ticks a second no time passes, and with
// one tick a second much time passes.
#include "pmd/net/storm.hpp"

#include <gtest/gtest.h>

namespace rio::pmd {
namespace {

constexpr uint64_t kStandsStill = uint64_t{1} << 62;

uint32_t admitted(StormControl& storm, uint32_t frames) {
  uint32_t passed = 0;
  for (uint32_t i = 0; i < frames; ++i) {
    passed += storm.admit() ? 1 : 0;
  }
  return passed;
}

TEST(StormControl, AdmitsASixteenthOfASecondAtOnce) {
  StormControl storm;
  storm.start(1600, kStandsStill / 1600);
  EXPECT_EQ(admitted(storm, 10'000), 100u);
  EXPECT_EQ(admitted(storm, 10'000), 0u);
  storm.start(1600, kStandsStill / 1600);
  EXPECT_EQ(admitted(storm, 10'000), 100u) << "starting a port resets it";
}

TEST(StormControl, AdmitsAtLeastOne) {
  StormControl storm;
  storm.start(1, kStandsStill);
  EXPECT_EQ(admitted(storm, 10), 1u);
}

TEST(StormControl, AdmitsMoreAsTimePasses) {
  StormControl storm;
  storm.start(1600, 1);
  EXPECT_EQ(admitted(storm, 10'000), 10'000u);
}

TEST(StormControl, AdmitsEverythingWithoutALimit) {
  StormControl storm;
  storm.start(0, kStandsStill);
  EXPECT_EQ(admitted(storm, 10'000), 10'000u);
}

}  // namespace
}  // namespace rio::pmd
