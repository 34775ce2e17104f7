// Cards in a fabric of processes: names, destIDs, messages, doorbells, who comes and goes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "pmd/embed/riopmd.hpp"
#include "tests/unit/fpga/sim/temp_dir.hpp"
#include "tests/unit/pmd/embed/log_lines.hpp"
#include "tests/unit/pmd/embed/shm_member.hpp"

namespace rio::test {
namespace {

using pmd::Status;

/// A fabric of this test's own.
class Shm : public testing::Test {
 protected:
  Shm() { setenv("RIO_RUNTIME_DIR", dir_.at("").c_str(), 1); }
  ~Shm() override { unsetenv("RIO_RUNTIME_DIR"); }

  TempDir dir_;
};

TEST_F(Shm, TwoCardsOfOneProcess) {
  Member one("shm:x");
  Member two("shm:x");
  EXPECT_EQ(one.id(), 1u);
  EXPECT_EQ(two.id(), 2u);
  EXPECT_EQ(one.endpoint().name(), "shm:x/1");
  EXPECT_TRUE(one.endpoint().caps().is_model);
  one.send(2, "to the other one");
  EXPECT_EQ(two.receive(), "1:to the other one");
  two.send(1, "and back");
  EXPECT_EQ(one.receive(), "2:and back");
  EXPECT_EQ(one.done(), Status::kOk);
  EXPECT_EQ(two.done(), Status::kOk);
}

TEST_F(Shm, ToOneself) {
  Member one("shm:x");
  one.send(1, "to me");
  EXPECT_EQ(one.receive(), "1:to me");
  EXPECT_EQ(one.done(), Status::kOk);
}

TEST_F(Shm, TwoProcesses) {
  Member one("shm:x,id=7");
  Child child([] {
    Member two("shm:x,id=9");
    two.send(7, "from the child");
    return two.receive() == "7:from the parent" && two.done() == Status::kOk ? 0 : 1;
  });
  EXPECT_EQ(one.receive(), "9:from the child");
  one.send(9, "from the parent");
  EXPECT_EQ(one.done(), Status::kOk);
  EXPECT_EQ(child.exit_code(), 0);
}

}  // namespace
}  // namespace rio::test
