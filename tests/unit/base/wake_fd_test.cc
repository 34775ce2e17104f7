// Wake-ups of a thread that polls descriptors.
#include "base/wake_fd.hpp"

#include <gtest/gtest.h>
#include <poll.h>

namespace rio::test {
namespace {

[[nodiscard]] bool is_readable(const base::Fd& fd) {
  pollfd one{fd.get(), POLLIN, 0};
  return poll(&one, 1, 0) == 1;
}

TEST(WakeFd, IsReadableFromAWakeUpUntilItIsCleared) {
  const base::Fd fd = base::make_wake_fd();
  ASSERT_TRUE(fd.valid());
  EXPECT_FALSE(is_readable(fd));
  base::wake(fd.get());
  base::wake(fd.get());
  EXPECT_TRUE(is_readable(fd));
  base::clear_wake_fd(fd.get());
  EXPECT_FALSE(is_readable(fd));
  base::clear_wake_fd(fd.get());  // neither waits nor fails without a wake-up
}

TEST(WakeFd, AFullOneIsReadableAndDoesNotBlock) {
  const base::Fd fd = base::make_wake_fd();
  ASSERT_EQ(eventfd_write(fd.get(), ~uint64_t{1}), 0);  // the highest value of an eventfd
  base::wake(fd.get());
  EXPECT_TRUE(is_readable(fd));
  base::clear_wake_fd(fd.get());
  EXPECT_FALSE(is_readable(fd));
}

}  // namespace
}  // namespace rio::test
