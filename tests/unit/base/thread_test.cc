#include "base/thread.hpp"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>

#include <bitset>
#include <cerrno>
#include <csignal>
#include <functional>

#include "tests/support/denied.hpp"

namespace rio::base {
namespace {

using Signals = std::bitset<65>;

/// Signals that the calling thread has blocked.
[[nodiscard]] Signals blocked() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  Signals all;
  for (int number = 1; number <= SIGRTMAX; ++number) {
    all[number] = sigismember(&mask, number) == 1;
  }
  return all;
}

/// @return the result of `run` in a process of its own.
[[nodiscard]] int in_child(const std::function<int()>& run) {
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(run());
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

constexpr int kCannotDeny = 77;

/// @return 0 if start_thread() fails with -EAGAIN, changes no signal mask and sets no thread.
[[nodiscard]] int expect_no_thread() {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR2);
  pthread_sigmask(SIG_SETMASK, &one, nullptr);
  const Signals before = blocked();
  std::jthread thread;
  const int rc = start_thread(
      "never", [](const std::stop_token& /*stop*/) {}, &thread);
  return (rc == -EAGAIN ? 0 : 1) + (blocked() == before ? 0 : 2) + (thread.joinable() ? 4 : 0);
}

TEST(Thread, TakesNoSignalsAndLeavesThoseOfItsStarter) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGUSR1);
  sigset_t first;
  pthread_sigmask(SIG_BLOCK, &one, &first);
  const Signals before = blocked();
  Signals inside;
  {
    std::jthread thread;
    ASSERT_EQ(
        start_thread(
            "rio-test", [&](const std::stop_token& /*stop*/) { inside = blocked(); }, &thread),
        0);
    EXPECT_EQ(blocked(), before);
  }
  EXPECT_EQ(blocked(), before);
  for (int number = 1; number <= SIGRTMAX; ++number) {
    const bool ours = number < 32 || number >= SIGRTMIN;  // the others belong to the C library
    if (ours && number != SIGKILL && number != SIGSTOP) {
      EXPECT_TRUE(inside[number]) << number;
    }
  }
  pthread_sigmask(SIG_SETMASK, &first, nullptr);
}

TEST(Thread, HasItsName) {
  char name[16] = {};
  {
    std::jthread thread;
    ASSERT_EQ(start_thread(
                  "rio-fifteen-chr",
                  [](const std::stop_token& stop) {
                    while (!stop.stop_requested()) {
                      std::this_thread::yield();
                    }
                  },
                  &thread),
              0);
    EXPECT_EQ(pthread_getname_np(thread.native_handle(), name, sizeof name), 0);
  }
  EXPECT_STREQ(name, "rio-fifteen-chr");
}

TEST(Thread, BeyondTheLimitOfThreadsIsEagain) {
  const int rc = in_child([] { return test::deny_threads() ? expect_no_thread() : kCannotDeny; });
  if (rc == kCannotDeny) {
    GTEST_SKIP() << "this root may not become another user, and RLIMIT_NPROC does not bind it";
  }
  EXPECT_EQ(rc, 0);
}

TEST(Thread, AForbiddenCloneReturnsTheSystemsError) {
  EXPECT_EQ(in_child([] {
              if (!test::deny_call(SYS_clone3, EPERM) || !test::deny_call(SYS_clone, EPERM)) {
                return kCannotDeny;
              }
              std::jthread thread;
              const int rc = start_thread(
                  "never", [](const std::stop_token& /*stop*/) {}, &thread);
              return rc == -EPERM && !thread.joinable() ? 0 : 1;
            }),
            0);
}

TEST(Thread, AFailureIsReportedWithItsRemedy) {
  EXPECT_NE(why_no_thread(-EAGAIN).find("ulimit -u"), std::string::npos);
  EXPECT_NE(why_no_thread(-EAGAIN).find("pids.max"), std::string::npos);
  EXPECT_NE(why_no_thread(-EPERM).find("seccomp"), std::string::npos);
}

}  // namespace
}  // namespace rio::base
