#include "base/fork.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace rio::base {
namespace {

/// @return the result of `run` in a child.
[[nodiscard]] int in_child(const std::function<int()>& run) {
  const pid_t child = fork();
  if (child == 0) {
    _exit(run());
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void count(void* ctx) {
  ++*static_cast<int*>(ctx);
}

TEST(InChild, RunsInEachChildAndNotInTheParent) {
  int first = 0;
  int second = 0;
  const InChild one(&count, &first);
  const InChild two(&count, &second);
  EXPECT_EQ(in_child([&] { return first * 10 + second; }), 11);
  EXPECT_EQ(in_child([&] { return in_child([&] { return first * 10 + second; }); }), 22);
  EXPECT_EQ(first + second, 0);
}

/// An object's lock is asked for before the one that mapping memory takes, whichever is older: a
/// thread may map memory while it holds that of the object.
TEST(InChild, MayMapMemoryBeforeTheFork) {
  constexpr unsigned kSeconds = 20;  // limit: if fork() hangs, SIGALRM ends the test
  alarm(kSeconds);
  const auto maps = [](void* /*ctx*/) {
    void* const at = map_shared(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                                -1, ChildFinds::kZeros);
    ASSERT_NE(at, MAP_FAILED);
    unmap_shared(at);
  };
  maps(nullptr);
  const InChild mapper([](void* /*ctx*/) {}, nullptr, maps);
  EXPECT_EQ(in_child([] { return 7; }), 7);
  alarm(0);
}

TEST(InChild, RunsNoMoreOnceTheObjectIsGone) {
  int counts[3] = {};
  auto first = std::make_unique<InChild>(&count, &counts[0]);
  auto middle = std::make_unique<InChild>(&count, &counts[1]);
  auto last = std::make_unique<InChild>(&count, &counts[2]);
  const auto counted = [&] { return counts[0] * 4 + counts[1] * 2 + counts[2]; };
  EXPECT_EQ(in_child(counted), 7);
  middle.reset();
  EXPECT_EQ(in_child(counted), 5);
  last.reset();
  EXPECT_EQ(in_child(counted), 4);
  first.reset();
  EXPECT_EQ(in_child(counted), 0);
}

TEST(InChild, AChildMayEndWhatItHasInherited) {
  int times = 0;
  auto one = std::make_unique<InChild>(&count, &times);
  EXPECT_EQ(in_child([&] {
              one.reset();
              return in_child([&] { return times; });  // 1: the call for the child itself
            }),
            1);
}

/// A lock that a thread of its own holds most of the time.
struct Busy {
  std::mutex lock;
  std::atomic<bool> stop{false};
  std::thread thread{[this] {
    while (!stop) {
      const std::lock_guard held(lock);
      usleep(1000);
    }
  }};
};

TEST(InChild, LocksOfOtherThreadsAreFreeInTheChildAndInTheParent) {
  Busy busy;
  const auto take = [](void* ctx) { static_cast<Busy*>(ctx)->lock.lock(); };
  const auto release = [](void* ctx) { static_cast<Busy*>(ctx)->lock.unlock(); };
  const InChild in_child_of_busy(release, &busy, take, release);
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(in_child([&] { return busy.lock.try_lock() ? 0 : 1; }), 0);
  }
  busy.stop = true;
  busy.thread.join();
  EXPECT_TRUE(busy.lock.try_lock());
  busy.lock.unlock();
}

/// A pipe whose reader sees when the last process with the write end has closed it.
class Writer {
 public:
  Writer() { EXPECT_EQ(pipe2(fds, O_CLOEXEC), 0); }
  ~Writer() {
    close(fds[0]);
    close(fds[1]);
  }
  int fds[2] = {-1, -1};
};

TEST(ReleaseInChild, ClosesTheObjectAndKeepsTheNumber) {
  Writer of_parent;
  Writer until;
  const InChild release([](void* ctx) { release_in_child(static_cast<Writer*>(ctx)->fds[1]); },
                        &of_parent);
  const pid_t child = fork();
  if (child == 0) {
    pollfd nothing{of_parent.fds[1], POLLIN, 0};
    char what = 0;
    close(until.fds[1]);
    const bool taken = fcntl(of_parent.fds[1], F_GETFD) == FD_CLOEXEC;
    const bool silent = poll(&nothing, 1, 0) == 0;
    static_cast<void>(read(until.fds[0], &what, 1) != 0);
    _exit(taken && silent ? 0 : 1);
  }
  close(of_parent.fds[1]);  // the parent's last write end, while the child lives on
  char what = 0;
  EXPECT_EQ(read(of_parent.fds[0], &what, 1), 0);
  of_parent.fds[1] = -1;
  close(until.fds[1]);
  until.fds[1] = -1;
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(ReleaseInChild, WorksWithoutAFreeNumber) {
  Writer writer;
  EXPECT_EQ(in_child([&] {
              const rlimit none{static_cast<rlim_t>(writer.fds[1]) + 1, 4096};
              if (setrlimit(RLIMIT_NOFILE, &none) != 0) {
                return 1;
              }
              while (dup(0) >= 0) {
              }
              release_in_child(writer.fds[1]);
              return fcntl(writer.fds[1], F_GETFD) == FD_CLOEXEC ? 0 : 2;
            }),
            0);
}

TEST(ReleaseInChild, RegisteredDescriptorsAreReleased) {
  Writer writer;
  // An eventfd does not take one byte.
  const auto is_released = [&] { return write(writer.fds[1], "x", 1) < 0 ? 1 : 0; };
  release_fd_in_child(writer.fds[1]);
  EXPECT_EQ(in_child(is_released), 1);
  forget_fd_in_child(writer.fds[1]);
  EXPECT_EQ(in_child(is_released), 0);
}

/// The pages of a range that a child has, one bit each.
unsigned pages_in_child(uint8_t* va, size_t pages) {
  return static_cast<unsigned>(in_child([&] {
    unsigned bits = 0;
    for (size_t i = 0; i < pages; ++i) {
      unsigned char resident = 0;
      bits |= mincore(va + i * 4096, 4096, &resident) == 0 ? 1u << i : 0;
    }
    return static_cast<int>(bits);
  }));
}

TEST(NotInherited, CountsWholePagesAndOverlaps) {
  constexpr size_t kPages = 6;
  void* const memory =
      mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  auto* const va = static_cast<uint8_t*>(memory);
  std::memset(va, 1, kPages * 4096);
  EXPECT_EQ(pages_in_child(va, kPages), 0b111111u);
  {
    const NotInherited part(va + 100, 4096);  // no whole page
    EXPECT_EQ(pages_in_child(va, kPages), 0b111111u);
    auto first = std::make_unique<NotInherited>(va + 4000, 3 * 4096);  // pages 1, 2
    EXPECT_EQ(pages_in_child(va, kPages), 0b111001u);
    auto second = std::make_unique<NotInherited>(va + 2 * 4096, 3 * 4096);  // 2, 3, 4
    auto inner = std::make_unique<NotInherited>(va + 3 * 4096, 4096);
    EXPECT_EQ(pages_in_child(va, kPages), 0b100001u);
    first.reset();
    EXPECT_EQ(pages_in_child(va, kPages), 0b100011u) << "page 2 is still the second's";
    second.reset();
    EXPECT_EQ(pages_in_child(va, kPages), 0b110111u);
    inner.reset();
    EXPECT_EQ(pages_in_child(va, kPages), 0b111111u);
  }
  munmap(memory, kPages * 4096);
}

}  // namespace
}  // namespace rio::base
