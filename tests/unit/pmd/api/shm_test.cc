// Cards in a fabric of processes: names, destIDs, messages, doorbells, who comes and goes.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "pmd/api/riopmd.hpp"
#include "tests/support/sanitizer.hpp"
#include "tests/unit/pmd/api/log_lines.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

using pmd::Status;

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
  Pipe go;
  Child child(
      [] {
        Member two("shm:x,id=9");
        two.send(7, "from the child");
        return two.receive() == "7:from the parent" && two.done() == Status::kOk ? 0 : 1;
      },
      &go);
  Member one("shm:x,id=7");
  go.tell();
  EXPECT_EQ(one.receive(), "9:from the child");
  one.send(9, "from the parent");
  EXPECT_EQ(one.done(), Status::kOk);
  EXPECT_EQ(child.exit_code(), 0);
}

TEST_F(Shm, DestIdsAreAssignedAndChecked) {
  LogLines log;
  Member five("shm:x,id=5,qps=2");
  EXPECT_EQ(five.id(), 5u);
  Member one("shm:x,qps=4");
  EXPECT_EQ(one.id(), 1u);
  Member seven("shm:x");
  EXPECT_EQ(seven.id(), 7u);
  std::unique_ptr<Endpoint> none;
  EXPECT_EQ(Endpoint::open("shm:x,id=6", {}, &none), -EBUSY);
  EXPECT_TRUE(log.had("destID 6 is in use; give another id=")) << log.last();
  EndpointConfig other;
  other.dest_id = 3;
  EXPECT_EQ(Endpoint::open("shm:x,id=9", other, &none), -EINVAL);
  EXPECT_TRUE(log.had("the card has destID 9")) << log.last();
}

TEST_F(Shm, QueuePairsOfABoardAreProcesses) {
  LogLines log;
  Member zero("shm:x,board=b,qps=3,qp=0,id=10");
  Member two("shm:x,board=b,qps=3,qp=2");
  EXPECT_EQ(zero.id(), 10u);
  EXPECT_EQ(two.id(), 12u);
  Member other("shm:x,id=1,qps=9");
  EXPECT_EQ(other.id(), 1u);
  Member behind("shm:x");
  EXPECT_EQ(behind.id(), 13u) << "11 is the board's";
  std::unique_ptr<Endpoint> none;
  EXPECT_EQ(Endpoint::open("shm:x,board=b,qps=3,qp=2", {}, &none), -EBUSY);
  EXPECT_EQ(Endpoint::open("shm:x,board=b,qps=4,qp=1", {}, &none), -EINVAL);
  EXPECT_TRUE(log.had("board b has 3 queue pairs from destID 10")) << log.last();
  EXPECT_EQ(Endpoint::open("shm:x,board=b,qps=3,qp=3", {}, &none), -EINVAL);
  zero.send(12, "same board");
  EXPECT_EQ(two.receive(), "10:same board");
}

TEST_F(Shm, AnAbsentMember) {
  Member one("shm:x");
  one.send(44, "hello?");
  EXPECT_EQ(one.done(), Status::kLinkDown);
  Member late("shm:x,id=44");
  std::string text;
  bool flying = false;
  EXPECT_TRUE(wait_until([&] {
    if (!flying) {
      one.send(44, "now?");
    }
    pmd::TxDone done{};
    flying = one.endpoint().tx().reap(&done, 1) == 0;
    return late.poll(&text);
  }));
  EXPECT_EQ(text, "1:now?");
}

TEST_F(Shm, TheFolderGoesWithTheLast) {
  const std::string folder = dir_.at("riopmd-" + std::to_string(geteuid()));
  {
    Member one("shm:x");
    Member two("shm:y");
    EXPECT_TRUE(std::filesystem::exists(folder + "/x/1"));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(Shm, FilesOfTheDeadAreRemoved) {
  Pipe ready;
  Child dead([&] {
    const Member killed("shm:x,board=b,qps=2,qp=1,id=3");
    ready.tell();
    pause();
    return 0;
  });
  ready.wait();
  dead.signal(SIGKILL);
  EXPECT_EQ(dead.exit_code(), -1);
  const std::string folder = dir_.at("riopmd-" + std::to_string(geteuid()) + "/x");
  EXPECT_TRUE(std::filesystem::exists(folder + "/4"));
  Member next("shm:x");
  EXPECT_EQ(next.id(), 1u);
  EXPECT_FALSE(std::filesystem::exists(folder + "/4"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/board-b"));
}

TEST_F(Shm, FoldersOfOthersAreRefused) {
  LogLines log;
  const std::string folder = dir_.at("riopmd-" + std::to_string(geteuid()));
  std::unique_ptr<Endpoint> none;
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  EXPECT_EQ(Endpoint::open("shm:x", {}, &none), -EPERM);
  EXPECT_TRUE(log.had("is open to other users; remove it")) << log.last();
  std::filesystem::remove(folder);
  std::filesystem::create_directory_symlink("/", folder);
  EXPECT_NE(Endpoint::open("shm:x", {}, &none), 0);
  EXPECT_TRUE(log.had("cannot be opened")) << log.last();
}

/// While it lives only so many more files can be opened.
class FewFiles {
 public:
  explicit FewFiles(uint32_t more) {
    const int next = dup(0);  // the lowest that is free
    EXPECT_EQ(close(next), 0);
    EXPECT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(next) + more;
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  }
  ~FewFiles() { EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before_), 0); }
  FewFiles(const FewFiles&) = delete;
  FewFiles& operator=(const FewFiles&) = delete;

 private:
  rlimit before_{};
};

TEST_F(Shm, TooManyOpenFilesAreNamed) {
  LogLines log;
  std::unique_ptr<Endpoint> endpoint;
  {
    const FewFiles few(2);
    EXPECT_EQ(Endpoint::open("shm:x", {}, &endpoint), -EMFILE);
  }
  EXPECT_TRUE(log.had("raise the limit of open files (ulimit -n)")) << log.last();
}

// Wherever descriptors run out, including the one for interrupts.
TEST_F(Shm, TooFewOpenFilesAreNeverToldAsAnythingElse) {
  if (kHasAddressSanitizer) {
    GTEST_SKIP() << "UndefinedBehaviorSanitizer, in the same build, opens a pipe to check objects";
  }
  for (const char* const name : {"shm:x", "emu:loop,stepping=thread"}) {
    LogLines log;
    std::unique_ptr<Endpoint> endpoint;
    EndpointConfig config;
    config.irq_rings = pmd::ring_bit(regs::Ring::kShared);
    constexpr uint32_t kMost = 64;
    uint32_t more = 0;
    int rc = -EMFILE;
    for (; rc != 0 && more < kMost; ++more) {
      const FewFiles few(more);
      rc = Endpoint::open(name, config, &endpoint);
      EXPECT_TRUE(rc == 0 || rc == -EMFILE) << name << " with " << more << ": " << rc;
      EXPECT_TRUE(rc == 0 || log.had("raise the limit of open files (ulimit -n)"))
          << name << " with " << more << ": " << log.last();
    }
    EXPECT_EQ(rc, 0) << name;
    EXPECT_GT(more, 1u) << name;
  }
}

TEST_F(Shm, WantOfFilesForPartnersIsToldOnce) {
  LogLines log;
  Member one("shm:x");
  Member two("shm:x");
  // By whichever call lacks one first: the other card may have looked just now whether this one
  // lives.
  const auto told = [&] {
    return log.had(": Too many open files; raise the limit of open files (ulimit -n)");
  };
  {
    const FewFiles none(0);
    one.send(2, "hello");
    EXPECT_TRUE(wait_until([&] {
      one.polls(1);
      return told();
    })) << log.last();
    one.polls(1000);  // it tries again and again
    EXPECT_FALSE(told()) << log.last();
  }
  std::string text;
  EXPECT_TRUE(wait_until([&] {
    pmd::TxDone done{};
    if (one.endpoint().tx().reap(&done, 1) == 1) {
      EXPECT_EQ(done.status, Status::kLinkDown) << "on a slow machine it gave up meanwhile";
      one.send(2, "hello");
    }
    return two.poll(&text);
  }));
  EXPECT_EQ(text, "1:hello");
  EXPECT_EQ(one.done(), Status::kOk);
}

/// All at once: each gets an id of its own.
TEST_F(Shm, ManyJoinAtOnce) {
  constexpr int kMembers = 12;
  Pipe go;
  Pipe here;
  std::vector<Child> children;
  for (int i = 0; i < kMembers; ++i) {
    children.emplace_back([&] {
      const Member member("shm:x");
      go.close_writer();
      here.tell(static_cast<char>(member.id()));
      go.wait();
      return 0;
    });
  }
  std::set<char> ids;
  for (int i = 0; i < kMembers; ++i) {
    ids.insert(here.wait());
  }
  EXPECT_EQ(ids.size(), size_t{kMembers});
  EXPECT_EQ(*ids.begin(), 1);
  EXPECT_EQ(*ids.rbegin(), kMembers);
  go.close_writer();
  for (Child& child : children) {
    EXPECT_EQ(child.exit_code(), 0);
  }
}

TEST_F(Shm, ADeathIsHeardOfAndTheIdIsFreeAtOnce) {
  constexpr uint32_t kLives = 5;
  Pipe go[kLives];
  std::vector<Child> children;
  for (Pipe& start : go) {
    children.emplace_back(
        [] {
          Member two("shm:x,id=2");
          two.send(1, "I live");
          (void)two.done();
          pause();
          return 0;
        },
        &start);
  }
  Member one("shm:x,id=1");
  for (uint32_t life = 1; life <= kLives; ++life) {
    const Child& child = children[life - 1];
    go[life - 1].tell();
    EXPECT_EQ(one.receive(), "2:I live");
    EXPECT_EQ(one.event(), "2 came " + std::to_string(life));
    child.signal(SIGSTOP);  // it takes nothing any more
    one.send(2, "too late");
    one.polls(1000);
    child.signal(SIGKILL);
    EXPECT_EQ(one.done(), Status::kResponseTimeout) << "in doubt: it was sent";
    EXPECT_EQ(one.event(), "2 went " + std::to_string(life));
    one.send(2, "nobody");
    EXPECT_EQ(one.done(), Status::kLinkDown) << "never sent";
  }
}

/// Far longer than all time-outs.
TEST_F(Shm, AStoppedProcessIsNotDead) {
  constexpr uint32_t kTimeoutUs = 2'000;
  Pipe go;
  Child child(
      [] {
        Member two("shm:x,id=2", kTimeoutUs);
        two.send(1, "I live");
        std::string text;
        for (int i = 0; i < 200; ++i) {
          if (two.receive() != "1:" + std::to_string(i)) {
            return 1;
          }
        }
        return two.done() == Status::kOk ? 0 : 2;
      },
      &go);
  Member one("shm:x,id=1", kTimeoutUs);
  go.tell();
  EXPECT_EQ(one.receive(), "2:I live");
  for (int i = 0; i < 200; ++i) {
    child.signal(SIGSTOP);
    one.send(2, std::to_string(i));
    if (i % 20 == 0) {  // else it is stopped anywhere
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(40);
      while (std::chrono::steady_clock::now() < until) {
        one.polls(1);
      }
    }
    child.signal(SIGCONT);
    EXPECT_EQ(one.done(), Status::kOk) << i;
  }
  EXPECT_EQ(child.exit_code(), 0);
}

/// A forked child has the sockets of its parent: they say nothing about the members that are there.
TEST_F(Shm, AMemberThatLeavesHasLeftThoughAChildHasItsSockets) {
  Member one("shm:x,id=1");
  auto two = std::make_unique<Member>("shm:x,id=2");
  two->send(1, "hello");
  EXPECT_EQ(one.receive(), "2:hello");
  EXPECT_EQ(one.event(), "2 came 1");
  Pipe stop;
  Child child = Child::with_cards([&] {
    stop.close_writer();
    return static_cast<int>(stop.wait());
  });
  two.reset();
  EXPECT_EQ(one.event(), "2 went 1");
  Member again("shm:x,id=2");
  EXPECT_EQ(again.id(), 2u);
  stop.close_writer();
  EXPECT_EQ(child.exit_code(), 0);
}

TEST_F(Shm, ASleepingMemberIsWoken) {
  constexpr uint32_t kRings = pmd::ring_bit(regs::Ring::kShared) | pmd::ring_bit(regs::Ring::kTx);
  Pipe go;
  Child child(
      [] {
        Member two("shm:x,id=2", 0, kRings);
        for (int i = 0; i < 500; ++i) {
          std::string text;
          while (!two.poll(&text)) {
            if (!two.sleep(kRings)) {
              return 1;
            }
          }
          two.send(1, text);
          pmd::TxDone done{};
          while (two.endpoint().tx().reap(&done, 1) == 0) {
            if (!two.sleep(kRings)) {
              return 2;
            }
          }
        }
        return 0;
      },
      &go);
  Member one("shm:x,id=1", 0, kRings);
  go.tell();
  EXPECT_TRUE(wait_until([&] {  // until it is there
    one.send(2, "0");
    return one.done() == Status::kOk;
  }));
  for (int i = 0; i < 500; ++i) {
    std::string text;
    while (!one.poll(&text)) {
      ASSERT_TRUE(one.sleep(kRings)) << i;
    }
    if (i < 499) {
      one.send(2, std::to_string(i));
      pmd::TxDone done{};
      while (one.endpoint().tx().reap(&done, 1) == 0) {
        ASSERT_TRUE(one.sleep(kRings)) << i;
      }
    }
  }
  EXPECT_EQ(child.exit_code(), 0);
}

}  // namespace
}  // namespace rio::test
