// The lock of a card: one thread at a time, whichever thread it leans toward.
#include "fpga/model/card_lock.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace rio::test {
namespace {

using model::CardHold;
using model::CardLock;

/// Guarded by the lock: a and b differ if two threads are inside at once.
struct Guarded {
  uint64_t a = 0;
  uint64_t b = 0;

  void touch() {
    EXPECT_EQ(a, b);
    ++a;
    ++b;
  }
};

constexpr char kTags[16] = {};

TEST(CardLock, NoThreadGetsInWhileAnotherIsInside) {
  CardLock lock;
  // Before the lock leans toward this thread, and after.
  for (int i = 0; i < 3000; ++i) {
    const CardLock::Held mine = lock.try_lock(&kTags[0]);
    ASSERT_NE(mine, nullptr) << i;
    ASSERT_EQ(lock.try_lock(&kTags[0]), nullptr) << i;
    CardLock::unlock(mine);
  }
  const CardLock::Held other = lock.try_lock(&kTags[1]);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(lock.try_lock(&kTags[0]), nullptr);
  CardLock::unlock(other);
  EXPECT_NE(lock.try_lock(&kTags[0]), nullptr);
}

TEST(CardLock, ATryDoesNotWait) {
  CardLock lock;
  CardLock::Held mine = nullptr;
  for (int i = 0; i < 3000; ++i) {
    mine = lock.try_lock(&kTags[0]);
    ASSERT_NE(mine, nullptr);
    if (i + 1 < 3000) {
      CardLock::unlock(mine);
    }
  }
  // The preferred thread is inside: other threads are refused until it has left.
  EXPECT_EQ(lock.try_lock(&kTags[1]), nullptr);
  EXPECT_EQ(lock.try_lock(&kTags[1]), nullptr);
  EXPECT_EQ(lock.try_lock(&kTags[0]), nullptr);
  CardLock::unlock(mine);
  const CardLock::Held other = lock.try_lock(&kTags[1]);
  ASSERT_NE(other, nullptr);
  CardLock::unlock(other);
}

TEST(CardLock, MoreThreadsThanSeats) {
  CardLock lock;
  for (int round = 0; round < 2; ++round) {
    for (const char& tag : kTags) {
      for (int i = 0; i < 2000; ++i) {
        const CardLock::Held held = lock.try_lock(&tag);
        ASSERT_NE(held, nullptr) << i;
        CardLock::unlock(held);
      }
    }
  }
}

TEST(CardLock, OneAtATimeWhileThePreferenceMoves) {
  constexpr uint64_t kEach = 20'000;
  CardLock lock;
  Guarded guarded;
  std::array<std::atomic<uint64_t>, 3> got{};
  std::vector<std::thread> threads;
  // Each thread has phases in which it takes the lock so often that the lock leans toward it.
  for (size_t t = 0; t < got.size(); ++t) {
    threads.emplace_back([&, t] {
      while (got[t] < kEach) {
        for (int i = 0; i < 1500; ++i) {
          if (const CardLock::Held held = lock.try_lock(&kTags[t])) {
            guarded.touch();
            ++got[t];
            CardLock::unlock(held);
          }
        }
        std::this_thread::yield();
      }
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 200; ++i) {
      const CardHold hold(lock);
      guarded.touch();
    }
  });
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(guarded.a, got[0] + got[1] + got[2] + 200);
  EXPECT_EQ(guarded.b, guarded.a);
}

TEST(CardLock, ThePreferredThreadIsOutWhenTheLockIsTaken) {
  constexpr int kHolds = 3000;
  CardLock lock;
  volatile uint32_t steps = 0;
  std::atomic<uint32_t> entries{0};
  std::atomic<bool> stop{false};
  std::thread preferred([&] {
    while (!stop) {
      if (const CardLock::Held held = lock.try_lock(&kTags[0])) {
        for (int i = 0; i < 20; ++i) {
          steps = steps + 1;
        }
        CardLock::unlock(held);
        entries.fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
  uint32_t moved = 0;
  for (int i = 0; i < kHolds; ++i) {
    // Waits until the lock leans toward that thread again.
    for (const uint32_t before = entries; entries - before < 1500;) {
      std::this_thread::yield();
    }
    const CardHold hold(lock);
    const uint32_t before = steps;
    for (int k = 0; k < 50; ++k) {
      moved += steps != before ? 1 : 0;
    }
  }
  stop = true;
  preferred.join();
  EXPECT_EQ(moved, 0u) << "the preferred thread was inside, too";
}

}  // namespace
}  // namespace rio::test
