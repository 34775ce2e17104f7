#include "base/clock.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace rio::base {
namespace {

uint64_t virtual_ns() {
  return 42;
}

TEST(Clock, IsTheSteadyClock) {
  const auto steady_ns = [] {
    return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                 std::chrono::nanoseconds(1));
  };
  const uint64_t before = steady_ns();
  const uint64_t now = now_ns();
  EXPECT_LE(before, now);
  EXPECT_LE(now, steady_ns());
}

TEST(Clock, IsTheOneThatTheProgramHasSet) {
  set_clock(&virtual_ns);
  EXPECT_EQ(now_ns(), 42u);
  set_clock(&monotonic_ns);
  EXPECT_NE(now_ns(), 42u);
}

}  // namespace
}  // namespace rio::base
