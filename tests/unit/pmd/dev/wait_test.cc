// Waiting for a card that gets its turns from the waiting thread.
#include "pmd/dev/wait.hpp"

#include <gtest/gtest.h>

namespace rio::pmd {
namespace {

TEST(Waiter, OneLookOnlyWithoutTime) {
  Waiter waiter({}, 0);
  EXPECT_FALSE(waiter.pause());
}

// On a machine that has other things to do the time may be up before the card has had its turn:
// its timers, for one, are looked at every few hundred turns.
TEST(Waiter, TheCardHasItsTurnsWhateverTheClockSays) {
  uint64_t turns = 0;
  const PollHook hook{[](void* ctx) noexcept { ++*static_cast<uint64_t*>(ctx); }, &turns};
  Waiter waiter(hook, 1);
  while (waiter.pause()) {
  }
  EXPECT_GE(turns, 2000u);
}

}  // namespace
}  // namespace rio::pmd
