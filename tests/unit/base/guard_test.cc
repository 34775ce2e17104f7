// The boundary at which a library's exceptions end.
#include "base/guard.hpp"

#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/log.hpp"

namespace rio::test {
namespace {

constexpr base::Boundary kBoundary = {.out_of_memory = "no memory; free some",
                                      .unexpected = "something else; report it",
                                      .unexpected_rc = -ENOTRECOVERABLE};

std::vector<std::string> lines;

class Guard : public ::testing::Test {
 protected:
  Guard() {
    lines.clear();
    base::set_log_sink(
        [](base::LogLevel /*level*/, const char* line) noexcept { lines.emplace_back(line); });
  }
  ~Guard() override { base::set_log_sink(nullptr); }
};

TEST_F(Guard, WithoutAnExceptionTheResultPasses) {
  EXPECT_EQ(base::guard(kBoundary, [] { return 7; }), 7);
  EXPECT_EQ(base::guard_cancellable(kBoundary, [] { return -EAGAIN; }), -EAGAIN);
  EXPECT_TRUE(lines.empty());
}

TEST_F(Guard, AnExceptionBecomesACodeAndALine) {
  const auto no_memory = []() -> int { throw std::bad_alloc(); };
  const auto other = []() -> int { throw std::runtime_error("x"); };
  const auto no_object = []() -> int { throw 5; };
  EXPECT_EQ(base::guard(kBoundary, no_memory), -ENOMEM);
  EXPECT_EQ(base::guard_cancellable(kBoundary, no_memory), -ENOMEM);
  EXPECT_EQ(base::guard(kBoundary, other), -ENOTRECOVERABLE);
  EXPECT_EQ(base::guard_cancellable(kBoundary, no_object), -ENOTRECOVERABLE);
  EXPECT_EQ(lines,
            (std::vector<std::string>{"no memory; free some", "no memory; free some",
                                      "something else; report it", "something else; report it"}));
}

struct Cancelled {
  std::atomic<bool> after_first = false;
  std::atomic<bool> after_second = false;
};

TEST_F(Guard, OnlyACancellableBoundaryLetsACancellationPass) {
  Cancelled seen;
  pthread_t thread;
  const auto body = [](void* ctx) -> void* {
    auto& at = *static_cast<Cancelled*>(ctx);
    static_cast<void>(pthread_cancel(pthread_self()));
    static_cast<void>(base::guard(kBoundary, [] {
      pthread_testcancel();
      return 0;
    }));
    at.after_first = true;
    static_cast<void>(base::guard_cancellable(kBoundary, [] {
      pthread_testcancel();
      return 0;
    }));
    at.after_second = true;
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, nullptr, body, &seen), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(seen.after_first);
  EXPECT_FALSE(seen.after_second);
  EXPECT_TRUE(lines.empty());
}

}  // namespace
}  // namespace rio::test
