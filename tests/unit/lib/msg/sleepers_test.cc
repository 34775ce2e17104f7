// The list of sleeping threads: which are woken, and when.
#include "lib/msg/sleepers.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

}  // namespace
}  // namespace rio::msg
