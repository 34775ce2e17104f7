// Several threads on one port: turns at its lock, and sleep.
#include "lib/msg/waiting.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace rio::msg {
namespace {

constexpr uint32_t kThreads = 12;  // more than the CPUs of most test machines

template <class Body>
void with_threads(uint32_t count, Body&& body) {
  std::vector<std::jthread> threads;
  for (uint32_t i = 0; i < count; ++i) {
    threads.emplace_back(body);
  }
}

// A thread that sleeps until its turn and is never woken would hang the test.
TEST(PortLock, EachHasItsTurn) {
  constexpr uint32_t kTurns = 5000;
  constexpr uint32_t kHolds = 200;  // long enough for others to sleep
  PortLock lock;
  uint64_t turns = 0;
  uint32_t inside = 0;
  uint32_t most = 0;
  with_threads(kThreads, [&] {
    for (uint32_t i = 0; i < kTurns; ++i) {
      lock.lock();
      most = std::max(most, ++inside);
      ++turns;
      if (i % kHolds == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
      --inside;
      lock.unlock();
    }
  });
  EXPECT_EQ(turns, uint64_t{kThreads} * kTurns);
  EXPECT_EQ(most, 1u);
}

class PortWaiting : public testing::Test {
 protected:
  PortWaiting() {
    setenv("RIO_RUNTIME_DIR", folder_.at("").c_str(), 1);
    PortConfig config;
    config.card = "shm:waiting";
    config.profile = "none";
    config.threads = Threads::kPerContext;
    config.sleeps = true;
    EXPECT_EQ(MessagePort::open(config, &port_), 0);
  }

  test::TempDir folder_;
  std::unique_ptr<MessagePort> port_;
};

// All threads are woken once without news. If they then woke each other, each would sleep tens of
// thousands of times in the test.
TEST_F(PortWaiting, ThreadsThatAreWokenInVainSleepAgain) {
  constexpr uint32_t kWaitMs = 300;
  constexpr uint64_t kMost = 500;
  std::jthread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Guard guard(*port_);
    port_->sleepers().wake();
  });
  EXPECT_FALSE(port_->sleeps());
  with_threads(kThreads, [this] {
    EXPECT_EQ(wait(
                  *port_, kWaitMs, [this] { port_->progress(); }, [] { return false; }),
              0);
  });
  EXPECT_TRUE(port_->sleeps());
  EXPECT_GT(port_->stats().woken, 0u);
  EXPECT_LT(port_->stats().woken, kMost);
}

// The first thread that sees the event wakes all, as for a queue that receives an entry.
TEST_F(PortWaiting, AllThatSleepAreWoken) {
  constexpr uint32_t kPatienceMs = 60'000;
  bool ready = false;
  std::jthread waker([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const Guard guard(*port_);
    ready = true;
    port_->sleepers().wake();
  });
  with_threads(kThreads, [&] {
    EXPECT_EQ(wait(
                  *port_, kPatienceMs, [this] { port_->progress(); }, [&] { return ready; }),
              1);
  });
}

}  // namespace
}  // namespace rio::msg
