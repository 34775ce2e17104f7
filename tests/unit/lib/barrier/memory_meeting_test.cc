#include "lib/barrier/memory_meeting.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/own_folder.hpp"
#include "tests/support/temp_dir.hpp"

namespace rio::test {
namespace {

using barrier::MemoryMeeting;

class MemoryMeetingTest : public testing::Test {
 protected:
  MemoryMeetingTest() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~MemoryMeetingTest() override { unsetenv("RIO_RUNTIME_DIR"); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return dir_.at("") + "/" + base::user_folder_name() + "/" + name;
  }
  [[nodiscard]] bool is_there(const std::string& name) const {
    struct stat info {};
    return stat(path(name).c_str(), &info) == 0;
  }
  /// Makes the members of one meeting.
  static std::vector<std::unique_ptr<MemoryMeeting>> make(uint32_t members) {
    std::vector<std::unique_ptr<MemoryMeeting>> out(members);
    EXPECT_EQ(MemoryMeeting::create("meeting", members, 0, out.data()), 0);
    for (uint32_t i = 1; i < members; ++i) {
      EXPECT_EQ(MemoryMeeting::open("meeting", members, i, &out[i]), 0);
    }
    return out;
  }

  /// Another process opens the memory as rank 1, arrives, and is killed on its way.
  /// @param steps how many instructions it carries out first, from shortly before arrive().
  /// @return whether it was killed before the call had ended.
  static bool kill_in_arrive(uint32_t members, uint32_t steps) {
    const pid_t child = fork();
    if (child == 0) {
      std::unique_ptr<MemoryMeeting> own;
      if (MemoryMeeting::open("meeting", members, 1, &own) != 0 ||
          ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) {
        _exit(1);
      }
      raise(SIGSTOP);
      own->arrive();
      raise(SIGSTOP);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSTOPPED(status)) << "the child has no memory, or ptrace() is not allowed";
    uint32_t left = steps;
    do {
      ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr);
      waitpid(child, &status, 0);
    } while (WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && --left != 0);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return left == 0;
  }

 private:
  TempDir dir_;
};

/// A few members look at each other, and more count.
constexpr uint32_t kFew = 3;
constexpr uint32_t kMany = 6;

TEST_F(MemoryMeetingTest, NonePassesBeforeTheLastHasArrived) {
  for (const uint32_t count : {kFew, kMany}) {
    const auto members = make(count);
    for (uint32_t epoch = 1; epoch <= 2 * count; ++epoch) {
      for (const auto& each : members) {
        EXPECT_TRUE(each->has_passed());
      }
      for (uint32_t i = 0; i < count; ++i) {
        const uint32_t at = (epoch + i) % count;  // each is the last one at some time
        members[at]->arrive();
        EXPECT_EQ(members[at]->epoch(), epoch);
        EXPECT_EQ(members[at]->has_passed(), i + 1 == count);
      }
    }
  }
}

TEST_F(MemoryMeetingTest, EachMemberSeesWhatAllHaveShown) {
  for (const uint32_t count : {kFew, kMany}) {
    const auto members = make(count);
    const auto bytes_of = [](uint32_t rank, uint32_t epoch) {
      const size_t bytes[] = {barrier::kShownMost, 16, 17, 1};
      return std::vector<uint8_t>(bytes[epoch % 4], static_cast<uint8_t>(16 * epoch + rank));
    };
    for (uint32_t epoch = 1; epoch <= 5; ++epoch) {
      for (uint32_t rank = 0; rank < count; ++rank) {
        if (members[rank]->epoch() != epoch) {
          members[rank]->arrive(bytes_of(rank, epoch));
        }
      }
      members[1]->arrive(bytes_of(1, epoch + 1));  // it is ahead of all others
      for (uint32_t from = 0; from < count; ++from) {
        const std::vector<uint8_t> expected = bytes_of(from, epoch);
        const std::span<const uint8_t> found = members[0]->shown(from);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.begin(), found.end()));
      }
    }
  }
}

TEST_F(MemoryMeetingTest, AMemberMayBeAtTheNextBarrierBeforeAnotherHasLookedAtThisOne) {
  const auto members = make(2);
  members[0]->arrive();
  members[1]->arrive();
  ASSERT_TRUE(members[1]->has_passed());
  members[1]->arrive();
  EXPECT_TRUE(members[0]->has_passed());
  EXPECT_FALSE(members[1]->has_passed());
  members[0]->arrive();
  EXPECT_TRUE(members[0]->has_passed());
  EXPECT_TRUE(members[1]->has_passed());
}

TEST_F(MemoryMeetingTest, WritesBeforeABarrierAreVisibleBehindIt) {
  constexpr uint32_t kBarriers = 300;
  for (const uint32_t count : {kFew, kMany}) {
    const auto members = make(count);
    std::vector<uint32_t> steps(count);  // written without atomics: the barrier orders them
    std::vector<std::thread> threads;
    for (uint32_t own = 0; own < count; ++own) {
      threads.emplace_back([&, own] {
        const auto meet = [&](uint32_t step) {
          members[own]->arrive({reinterpret_cast<const uint8_t*>(&step), sizeof(step)});
          while (!members[own]->has_passed()) {
            std::this_thread::yield();
          }
        };
        for (uint32_t step = 1; step <= kBarriers; ++step) {
          steps[own] = step;
          meet(step);
          for (uint32_t from = 0; from < count; ++from) {
            EXPECT_EQ(steps[from], step);
            EXPECT_EQ(std::memcmp(members[own]->shown(from).data(), &step, sizeof(step)), 0);
          }
          meet(0);
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }
}

TEST_F(MemoryMeetingTest, AMemberThatIsKilledAtAnyInstructionOfItsArrivalStopsNone) {
  uint32_t passed = 0;
  uint32_t failed = 0;
  for (const uint32_t count : {2u, kMany}) {
    bool is_within = true;
    for (uint32_t steps = 1; is_within; ++steps) {
      for (const bool is_last : {false, true}) {
        std::vector<std::unique_ptr<MemoryMeeting>> others(count);
        ASSERT_EQ(MemoryMeeting::create("meeting", count, 0, others.data()), 0);
        MemoryMeeting& own = *others[0];
        for (uint32_t rank = 2; rank < count; ++rank) {
          ASSERT_EQ(MemoryMeeting::open("meeting", count, rank, &others[rank]), 0);
          others[rank]->arrive();
        }
        if (is_last) {
          own.arrive();
        }
        is_within = kill_in_arrive(count, steps);
        if (!is_last) {
          own.arrive();
        }
        own.look_for_lost();
        ASSERT_NE(own.has_passed(), own.has_failed()) << steps << (is_last ? ", the last" : "");
        ++(own.has_passed() ? passed : failed);
        if (own.has_passed()) {
          own.arrive();
          own.look_for_lost();
        }
        EXPECT_FALSE(own.has_passed());
        EXPECT_EQ(own.failure().error, -ECONNRESET);
        EXPECT_EQ(own.failure().rank, 1u);
      }
    }
  }
  EXPECT_GT(passed, 0u);
  EXPECT_GT(failed, 0u);
}

TEST_F(MemoryMeetingTest, AMemberLivesOfWhichTheKernelSaysNothing) {
  const auto members = make(2);
  members[0]->arrive();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  members[0]->look_for_lost();  // there is no descriptor to read it with
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(members[0]->has_failed());
  members[0]->look_for_lost();
  EXPECT_FALSE(members[0]->has_failed());
  members[1]->arrive();
  EXPECT_TRUE(members[0]->has_passed());
}

TEST_F(MemoryMeetingTest, AMemberLivesWhoseFirstThreadHasEnded) {
  std::unique_ptr<MemoryMeeting> own;
  ASSERT_EQ(MemoryMeeting::create("meeting", 2, 0, &own), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::unique_ptr<MemoryMeeting> other;
    if (MemoryMeeting::open("meeting", 2, 1, &other) != 0) {
      _exit(1);
    }
    std::thread(pause).detach();
    syscall(SYS_exit, 0);  // of this thread alone
  }
  own->arrive();
  const std::string stat_path = "/proc/" + std::to_string(child) + "/stat";
  const auto looks_dead = [&] {
    std::string text;
    std::getline(std::ifstream(stat_path), text);
    return text.find(") Z ") != std::string::npos;
  };
  while (!looks_dead()) {
    usleep(1000);
  }
  own->look_for_lost();
  EXPECT_FALSE(own->has_failed());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  own->look_for_lost();
  EXPECT_EQ(own->failure().error, -ECONNRESET);
}

TEST_F(MemoryMeetingTest, EachMemberRemovesTheNameOfItsFile) {
  auto members = make(2);
  EXPECT_TRUE(is_there("meeting"));
  members[1]->hide();  // the one that has made it may have been killed
  EXPECT_FALSE(is_there("meeting"));
  members[0]->arrive();
  members[1]->arrive();
  EXPECT_TRUE(members[0]->has_passed());
  members = make(2);
  members.clear();
  EXPECT_FALSE(is_there("meeting"));
}

TEST_F(MemoryMeetingTest, FilesThatAreNoneOfItAreRefused) {
  const auto members = make(2);
  std::unique_ptr<MemoryMeeting> out;
  EXPECT_EQ(MemoryMeeting::create("meeting", 2, 0, &out), -EEXIST);
  EXPECT_EQ(MemoryMeeting::open("meeting", 100, 1, &out), -EINVAL);
  EXPECT_EQ(MemoryMeeting::open("nothing", 2, 1, &out), -ENOENT);
  std::ofstream(path("short")) << "words";
  EXPECT_EQ(MemoryMeeting::open("short", 2, 1, &out), -EINVAL);
  std::ofstream(path("zeros")) << std::string(4096, '\0');
  EXPECT_EQ(MemoryMeeting::open("zeros", 2, 1, &out), -EINVAL);
  EXPECT_EQ(out, nullptr);
}

TEST_F(MemoryMeetingTest, TheMarkIsThatOfTheFolder) {
  const uint64_t mark = barrier::node_mark();
  EXPECT_NE(mark, 0u);
  EXPECT_EQ(barrier::node_mark(), mark);
  const TempDir other;
  setenv("RIO_RUNTIME_DIR", other.at("").c_str(), 1);
  EXPECT_NE(barrier::node_mark(), mark);
  setenv("RIO_RUNTIME_DIR", "/nonexistent", 1);
  EXPECT_EQ(barrier::node_mark(), 0u);
}

}  // namespace
}  // namespace rio::test
