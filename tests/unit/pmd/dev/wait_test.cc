// Waiting for a card that the waiting thread steps.
#include "pmd/dev/wait.hpp"

#include <gtest/gtest.h>

namespace rio::pmd {
namespace {

TEST(Waiter, ChecksOnceWithoutTime) {
  Waiter waiter({}, 0);
  EXPECT_FALSE(waiter.pause());
}

// On a busy machine the time may be over before the card has had enough steps: its timers, for one,
// run every few hundred steps.
TEST(Waiter, StepsTheCardEvenIfTheTimeIsOver) {
  uint64_t turns = 0;
  const PollHook hook{[](void* ctx) noexcept { ++*static_cast<uint64_t*>(ctx); }, &turns};
  Waiter waiter(hook, 1);
  while (waiter.pause()) {
  }
  EXPECT_GE(turns, 2000u);
}

}  // namespace
}  // namespace rio::pmd
