// The folder in which members of a fabric find each other: many members that join and leave, and
// unusable folders.
#include "fpga/wire/shm/directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>
#include <vector>

#include "tests/support/denied.hpp"
#include "tests/support/temp_dir.hpp"

namespace rio::test {
namespace {

using wire::shm::Directory;

class ShmDirectory : public testing::Test {
 protected:
  ShmDirectory() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~ShmDirectory() override { unsetenv("RIO_RUNTIME_DIR"); }

  [[nodiscard]] std::string user_folder() const {
    return dir_.at("riopmd-" + std::to_string(geteuid()));
  }
  /// Joins, and leaves. @return the result of join().
  static int join(uint32_t id, std::string* error) {
    std::unique_ptr<Directory> directory;
    return Directory::join({.fabric = "x", .id = id}, &directory, error);
  }
  void expect_refused(int rc, const std::string& text) {
    std::string error;
    EXPECT_EQ(join(1, &error), rc);
    EXPECT_NE(error.find(text), std::string::npos) << error;
  }

  TempDir dir_;
};

[[nodiscard]] pid_t start(const std::function<int()>& run) {
  const pid_t pid = fork();
  if (pid == 0) {
    _exit(run());
  }
  return pid;
}

[[nodiscard]] int exit_code(pid_t pid) {
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// The last member to leave removes the folder that another one has just opened.
TEST_F(ShmDirectory, ARemovedFolderIsMadeAgain) {
  constexpr int kRounds = 200;
  pid_t both[2] = {};
  for (uint32_t id = 1; id <= 2; ++id) {
    both[id - 1] = start([id] {
      for (int round = 0; round < kRounds; ++round) {
        std::string error;
        if (const int rc = join(id, &error); rc != 0) {
          std::fprintf(stderr, "round %d of %u: %s\n", round, id, error.c_str());
          return 1;
        }
      }
      return 0;
    });
  }
  EXPECT_EQ(exit_code(both[0]), 0);
  EXPECT_EQ(exit_code(both[1]), 0);
  EXPECT_NE(access(user_folder().c_str(), F_OK), 0) << "the last member leaves nothing behind";
}

// A lock belongs to the open file, which a child forked meanwhile has, too.
TEST_F(ShmDirectory, AForkedChildDoesNotKeepTheLock) {
  constexpr int kChildren = 40;
  std::unique_ptr<Directory> stays;
  std::string error;
  ASSERT_EQ(Directory::join({.fabric = "x", .id = 1}, &stays, &error), 0) << error;
  std::atomic<bool> stop = false;
  std::atomic<int> refused = 0;
  std::thread comes_and_goes([&] {
    while (!stop && refused == 0) {
      std::string why;
      refused += join(2, &why) == 0 ? 0 : 1;
    }
  });
  std::vector<pid_t> children;
  for (int i = 0; i < kChildren; ++i) {
    children.push_back(start([]() -> int {
      for (;;) {
        pause();
      }
    }));
  }
  stop = true;
  comes_and_goes.join();
  EXPECT_EQ(refused, 0);
  EXPECT_EQ(join(3, &error), 0) << error;
  for (const pid_t child : children) {
    kill(child, SIGKILL);
    EXPECT_EQ(exit_code(child), -1);
  }
}

TEST_F(ShmDirectory, AFolderOfAnotherUserIsReportedAsSuch) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can make one";
  }
  ASSERT_EQ(mkdir(user_folder().c_str(), 0700), 0);
  ASSERT_EQ(chown(user_folder().c_str(), 65534, 65534), 0);
  expect_refused(-EPERM, "belongs to user 65534, this process is of user 0");
}

TEST_F(ShmDirectory, AClosedFolderOfAnotherUserIsReportedAsSuch) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "only root can make one";
  }
  ASSERT_EQ(chmod(dir_.at("").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(dir_.at("riopmd-65534").c_str(), 0700), 0);
  EXPECT_EQ(exit_code(start([] {
              std::string error;
              return leave_root() && join(1, &error) == -EPERM &&
                             error.find("belongs to user 0, this process is of user 65534") !=
                                 std::string::npos
                         ? 0
                         : 1;
            })),
            0);
}

TEST_F(ShmDirectory, AFileInItsPlaceIsReportedAsSuch) {
  std::ofstream(user_folder()) << "no folder";
  expect_refused(-ENOTDIR, "is not a folder; remove it");
}

TEST_F(ShmDirectory, AnOpenFolderIsReportedAsSuch) {
  ASSERT_EQ(mkdir(user_folder().c_str(), 0755), 0);
  ASSERT_EQ(chmod(user_folder().c_str(), 0755), 0);
  expect_refused(-EPERM, "is open to other users; remove it");
}

TEST_F(ShmDirectory, AnUnusableBaseIsRefusedAtOnce) {
  for (const char* const base : {"/proc", "/sys", "/nowhere"}) {
    setenv("RIO_RUNTIME_DIR", base, 1);
    std::string error;
    EXPECT_LT(join(1, &error), 0);
    EXPECT_NE(error.find(base), std::string::npos) << error;
    EXPECT_NE(error.find("set RIO_RUNTIME_DIR to a folder of your own"), std::string::npos)
        << error;
    EXPECT_EQ(error.find("again and again"), std::string::npos) << error;
  }
}

// Checked before sockets of living members could be taken for dead ones.
TEST_F(ShmDirectory, AMissingProcIsReportedAndHarmsNoMember) {
  std::unique_ptr<Directory> living;
  std::string error;
  ASSERT_EQ(Directory::join({.fabric = "x", .id = 7}, &living, &error), 0) << error;
  constexpr int kCannot = 77;
  const int rc = exit_code(start([] {
    if (!hide_proc()) {
      return kCannot;
    }
    std::string why;
    return join(1, &why) == -ENOENT && why.find("/proc is not mounted") != std::string::npos ? 0
                                                                                             : 1;
  }));
  if (rc == kCannot) {
    GTEST_SKIP() << "no mount namespaces here";
  }
  EXPECT_EQ(rc, 0);
  EXPECT_EQ(access((user_folder() + "/x/7").c_str(), F_OK), 0);
}

// A lack of this process says nothing about which members exist.
TEST_F(ShmDirectory, AProcessThatCannotConnectMakesNoGuessAboutMembers) {
  std::string error;
  const pid_t killed = start([]() -> int {
    std::unique_ptr<Directory> dead;
    std::string why;
    static_cast<void>(Directory::join({.fabric = "x", .id = 3}, &dead, &why));
    _exit(0);
  });
  ASSERT_EQ(exit_code(killed), 0);
  EXPECT_EQ(exit_code(start([] {
              std::string why;
              return deny_call(SYS_connect, EACCES) && join(3, &why) == -EACCES &&
                             why.find("connect: Permission denied") != std::string::npos
                         ? 0
                         : 1;
            })),
            0);
  EXPECT_EQ(join(3, &error), 0) << error;
}

}  // namespace
}  // namespace rio::test
