// The list of sleeping threads: which are woken, and when.
#include "lib/msg/sleepers.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace rio::msg {
namespace {

class SleepersTest : public testing::Test {
 protected:
  SleepersTest() : one_(eventfd(0, EFD_NONBLOCK)), other_(eventfd(0, EFD_NONBLOCK)) {}
  ~SleepersTest() override {
    ::close(one_);
    ::close(other_);
  }
  [[nodiscard]] static bool is_woken(int fd) {
    pollfd look = {fd, POLLIN, 0};
    return ::poll(&look, 1, 0) == 1;
  }

  Sleepers sleepers_;
  int one_;
  int other_;
};

TEST_F(SleepersTest, AllAreWokenOnce) {
  sleepers_.enlist(one_, 5);
  sleepers_.enlist(other_, 5);
  EXPECT_TRUE(sleepers_.any());
  sleepers_.wake();
  EXPECT_TRUE(is_woken(one_) && is_woken(other_));
  EXPECT_FALSE(sleepers_.any());
}

TEST_F(SleepersTest, NoneIsWokenWithoutNews) {
  sleepers_.enlist(one_, 5);
  sleepers_.wake_if_new(5);
  EXPECT_FALSE(is_woken(one_));
  sleepers_.wake_if_new(6);
  EXPECT_TRUE(is_woken(one_));
}

TEST_F(SleepersTest, AThreadThatHasReadNewsWakesTheOthersBeforeItSleeps) {
  sleepers_.enlist(one_, 5);
  sleepers_.enlist(other_, 6);
  EXPECT_TRUE(is_woken(one_));
  EXPECT_FALSE(is_woken(other_));
  EXPECT_TRUE(sleepers_.any()) << "the thread itself sleeps";
}

TEST_F(SleepersTest, AThreadIsListedOnceAndAnOldWakeUpIsForgotten) {
  sleepers_.enlist(one_, 5);
  sleepers_.wake();
  sleepers_.enlist(one_, 5);
  EXPECT_FALSE(is_woken(one_));
  sleepers_.enlist(one_, 5);
  sleepers_.strike(one_);
  EXPECT_FALSE(sleepers_.any());
}

// Forks, with the child taking the lock. @return whether it could; SIGALRM ends a child that waits.
bool child_takes(PortLock& lock) {
  const pid_t child = fork();
  if (child == 0) {
    constexpr unsigned kSeconds = 20;
    alarm(kSeconds);
    lock.lock();
    lock.unlock();
    _exit(0);
  }
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

class PortLockAtFork : public testing::Test {
 protected:
  // fork() calls it before it asks for the lock.
  const base::InChild forks_{
      [](void* /*ctx*/) {}, this,
      [](void* ctx) { static_cast<PortLockAtFork*>(ctx)->has_begun_ = true; }};
  std::atomic<bool> has_begun_{false};
  PortLock lock_;
};

TEST_F(PortLockAtFork, AChildFindsItFree) {
  std::atomic<bool> holds{false};
  std::jthread holder([&] {
    lock_.lock();
    holds = true;
    while (!has_begun_) {
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(
        std::chrono::milliseconds(50));  // a fork that does not wait is over
    lock_.unlock();
  });
  while (!holds) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(child_takes(lock_));
  holder.join();
  lock_.lock();  // the parent's is given back, too
  lock_.unlock();
}

TEST_F(PortLockAtFork, AChildFindsItFreeWhileOthersAlwaysWaitForIt) {
  std::atomic<bool> ends{false};
  {
    std::jthread threads[2];
    for (std::jthread& thread : threads) {
      thread = std::jthread([&] {
        while (!ends) {
          lock_.lock();
          lock_.unlock();
        }
      });
    }
    for (int forks = 0; forks < 5; ++forks) {
      EXPECT_TRUE(child_takes(lock_));
    }
    ends = true;
  }
  EXPECT_TRUE(child_takes(lock_));
}

TEST_F(PortLockAtFork, AThreadThatHoldsItItselfForksAndStillHoldsIt) {
  lock_.lock();
  const pid_t child = fork();
  if (child == 0) {
    lock_.unlock();
    lock_.lock();
    lock_.unlock();
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  lock_.unlock();
  EXPECT_TRUE(child_takes(lock_));
}

}  // namespace
}  // namespace rio::msg
