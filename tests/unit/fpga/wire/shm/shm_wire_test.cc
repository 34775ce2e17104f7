// The wire between processes: joining, leaving, and the fate of sent frames.
#include "fpga/wire/shm/shm_wire.hpp"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "fpga/wire/shm/process_puller.hpp"
#include "tests/support/denied.hpp"
#include "tests/unit/fpga/wire/shm/wire_fixture.hpp"

namespace rio::test {
namespace {

using namespace wire::shm;

TEST_F(Wire, ConnectsWhenAFrameIsSent) {
  const auto one = join(1);
  const auto two = join(2, 3);
  model::Outbound* to = one->route(3);
  ASSERT_NE(to, nullptr);
  EXPECT_FALSE(to->requests->fits(32)) << "it waits for the connection";
  for (uint32_t id = 2; id <= 4; ++id) {
    const model::PartnerChange came = change(*one);
    EXPECT_TRUE(came.here);
    EXPECT_EQ(came.dest_id, id);
    EXPECT_EQ(came.times, 1u);
  }
  EXPECT_TRUE(to->requests->fits(4096));
  EXPECT_EQ(one->route(2)->requests, to->requests) << "one card";
  EXPECT_EQ(change(*two).dest_id, 1u);
  ASSERT_EQ(two->inbound().size(), 1u);
  EXPECT_EQ(two->inbound()[0].first_source, 1u);
  EXPECT_EQ(two->inbound()[0].more_sources, 0u);
  ASSERT_TRUE(send(*to, 5));
  const model::InFrame* frame = nullptr;
  ASSERT_TRUE(wait_until([&] { return (frame = two->inbound()[0].requests->peek()) != nullptr; }));
  EXPECT_EQ(frame->address, 5u);
}

/// Number of halves mapped in this process.
uint32_t halves() {
  std::ifstream maps("/proc/self/maps");
  uint32_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("riopmd-wire") != std::string::npos ? 1 : 0;
  }
  return count;
}

// Memory does not grow with the square of the members: those that never talk share nothing.
TEST_F(Wire, AWishForADestIdGetsTheNextFreeOne) {
  const auto wish = [](uint32_t id, uint32_t ids, std::unique_ptr<ShmWire>* out) {
    std::string error;
    const int rc =
        ShmWire::join({.fabric = "f", .id = id, .id_step = 0x4000, .ids = ids}, out, &error);
    return rc == 0 ? static_cast<int>((*out)->first_id()) : rc;
  };
  std::unique_ptr<ShmWire> wires[6];
  EXPECT_EQ(wish(0x8000, 2, &wires[0]), 0x8000);
  EXPECT_EQ(wish(0x8000, 2, &wires[1]), 0xC000);
  const auto in_the_way = join(0x4001);
  EXPECT_EQ(wish(0x8000, 1, &wires[2]), 0x4000) << "the first step, after the last one";
  EXPECT_EQ(wish(0x8000, 1, &wires[3]), -EBUSY) << "no step is free";
  wires[0].reset();
  EXPECT_EQ(wish(0xC000, 2, &wires[4]), 0x8000) << "two in a row: not at 0x4000";
  wires[4].reset();
  EXPECT_EQ(wish(0xC000, 1, &wires[5]), 0x8000);
}

TEST_F(Wire, OnlyPairsThatTalkShareMemory) {
  constexpr uint32_t kMembers = 12;
  std::vector<std::unique_ptr<ShmWire>> members;
  for (uint32_t id = 1; id <= kMembers; ++id) {
    members.push_back(join(id));
  }
  EXPECT_EQ(halves(), 0u);
  for (uint32_t pairs = 1; pairs < kMembers; ++pairs) {
    ASSERT_NE(members[0]->route(pairs + 1), nullptr);
    EXPECT_TRUE(change(*members[0]).here);
    EXPECT_TRUE(change(*members[pairs]).here);
    EXPECT_EQ(halves(), 4 * pairs) << "each side maps two";
  }
  members.erase(members.begin());
  for (const auto& member : members) {
    EXPECT_FALSE(change(*member).here);
  }
  EXPECT_EQ(halves(), 0u);
}

TEST_F(Wire, BothMayCallAtOnce) {
  for (int round = 0; round < 50; ++round) {
    const auto one = join(1);
    const auto two = join(2);
    ASSERT_NE(one->route(2), nullptr);
    ASSERT_NE(two->route(1), nullptr);
    EXPECT_TRUE(change(*one).here) << round;
    EXPECT_TRUE(change(*two).here) << round;
    EXPECT_EQ(one->inbound().size(), 1u);
    EXPECT_EQ(two->inbound().size(), 1u);
  }
}

TEST_F(Wire, ARestartedPartnerIsAnotherOne) {
  const auto one = join(1);
  model::Outbound* to = one->route(2);
  EXPECT_EQ(to, one->route(2));
  for (uint32_t life = 1; life <= 20; ++life) {
    auto two = join(2);
    model::PartnerChange came{};
    while (!came.here) {  // otherwise there was no partner yet
      ASSERT_TRUE(wait_until([&] {
        to = one->route(2);
        return to != nullptr;
      }));
      came = change(*one);
    }
    EXPECT_EQ(came.times, life);
    ASSERT_TRUE(send(*to, life));
    EXPECT_TRUE(change(*two).here);
    const model::InFrame* frame = two->inbound()[0].requests->peek();
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->address, life);
    two.reset();
    const model::PartnerChange went = change(*one);
    EXPECT_FALSE(went.here);
    EXPECT_EQ(went.times, life);
    EXPECT_TRUE(to->gone);
    EXPECT_TRUE(one->inbound().empty());
  }
}

TEST_F(Wire, FramesOfADeadPartnerAreTaken) {
  const auto one = join(1);
  ASSERT_NO_FATAL_FAILURE(member_2_sends_and_dies(*one, 3));
  ASSERT_TRUE(has_no_member_2(*one));
  model::PartnerChange news{};
  ASSERT_EQ(one->inbound().size(), 1u);
  for (uint64_t number = 1; number <= 3; ++number) {
    EXPECT_FALSE(one->next_change(&news));
    model::FrameReader& reader = *one->inbound()[0].requests;
    const model::InFrame* const frame = reader.peek();
    ASSERT_NE(frame, nullptr) << number;
    EXPECT_EQ(frame->address, number);
    reader.pop(frame);
    one->pump(0);
  }
  ASSERT_TRUE(one->next_change(&news));
  EXPECT_FALSE(news.here);
  EXPECT_TRUE(one->inbound().empty());
}

// The card has popped the frame, and holds it back for what it comes with.
TEST_F(Wire, AHeldFrameOfADeadPartnerIsTaken) {
  const auto one = join(1);
  ASSERT_NO_FATAL_FAILURE(member_2_sends_and_dies(*one, 1));
  ASSERT_TRUE(has_no_member_2(*one));
  ASSERT_EQ(one->inbound().size(), 1u);
  model::FrameReader& reader = *one->inbound()[0].requests;
  const model::InFrame* const frame = reader.peek();
  ASSERT_NE(frame, nullptr);
  ASSERT_TRUE(reader.hold(*frame));
  reader.pop(frame);
  ASSERT_EQ(reader.peek(), nullptr);
  model::PartnerChange news{};
  one->pump(0);
  ASSERT_FALSE(one->next_change(&news));
  ASSERT_EQ(one->inbound().size(), 1u) << "its memory is still read";
  reader.end_held(1);
  one->pump(0);
  ASSERT_TRUE(one->next_change(&news));
  EXPECT_FALSE(news.here);
}

// A partner that connects later has to ring, too.
TEST_F(Wire, ASleepingMemberSleepsForNewPartnersToo) {
  const auto one = join(1);
  one->set_asleep(true);
  Evil evil(2, 1);
  EXPECT_TRUE(change(*one).here);
  const wire::Heads& heads = *evil.link().joint.theirs.heads();
  EXPECT_EQ(heads.requests.asleep.load(), 1);
  EXPECT_EQ(heads.responses.asleep.load(), 1);
  one->set_asleep(false);
  EXPECT_EQ(heads.requests.asleep.load(), 0);
  EXPECT_EQ(heads.responses.asleep.load(), 0);
}

// A card that cannot take the frames still hears of the end.
TEST_F(Wire, ADeadPartnerIsNotAwaitedForEver) {
  const auto one = join(1);
  ASSERT_NO_FATAL_FAILURE(member_2_sends_and_dies(*one, 1));
  EXPECT_FALSE(change(*one).here);
  EXPECT_TRUE(one->inbound().empty());
}

// Also if the child only exits, and the wire is in static memory.
TEST_F(Wire, AForkedChildLeavesItsParentInTheFabric) {
  std::unique_ptr<ShmWire> one = join(1);
  std::unique_ptr<ShmWire> two = join(2);
  ASSERT_NE(one->route(2), nullptr);
  EXPECT_TRUE(change(*one).here);
  EXPECT_TRUE(change(*two).here);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    one.reset();
    two.reset();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  // Others find it, on the old way and on a new one.
  const std::unique_ptr<ShmWire> three = join(3);
  ASSERT_NE(three->route(1), nullptr);
  EXPECT_TRUE(change(*three).here);
  EXPECT_TRUE(change(*one).here);  // of 3; there was no change of 2
  model::PartnerChange other{};
  two->pump(0);
  EXPECT_FALSE(two->next_change(&other));
}

// A child's changes to inherited rings stay in its own memory.
TEST_F(Wire, AForkedChildTakesNothingFromItsParent) {
  const std::unique_ptr<ShmWire> one = join(1);
  const std::unique_ptr<ShmWire> two = join(2);
  model::Outbound* const to = one->route(2);
  ASSERT_NE(to, nullptr);
  EXPECT_TRUE(change(*one).here);
  EXPECT_TRUE(change(*two).here);
  ASSERT_TRUE(send(*to, 1));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    model::FrameReader& reader = *two->inbound()[0].requests;
    const bool empty = reader.peek() == nullptr;
    reader.release();
    _exit(empty && send(*to, 2) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(send(*to, 3));
  model::FrameReader& reader = *two->inbound()[0].requests;
  for (const uint64_t address : {1, 3}) {
    const model::InFrame* const frame = reader.peek();
    ASSERT_NE(frame, nullptr);
    EXPECT_EQ(frame->address, address);
    reader.pop(frame);
  }
  EXPECT_EQ(reader.peek(), nullptr);
}

// No process will join the fabric of a killed process by its name again.
TEST_F(Wire, AJoiningMemberRemovesFabricsOfDeadOnes) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::unique_ptr<Directory> seat;
    std::string error;
    const int rc = Directory::join({.fabric = "dead", .id = 1}, &seat, &error);
    raise(rc == 0 ? SIGKILL : SIGABRT);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  std::unique_ptr<Directory> living;
  std::string error;
  ASSERT_EQ(Directory::join({.fabric = "living", .id = 1}, &living, &error), 0) << error;
  const auto there = [&](const char* name) {
    return access((dir_.at("riopmd-") + std::to_string(geteuid()) + "/" + name).c_str(), F_OK) == 0;
  };
  EXPECT_FALSE(there("dead"));
  const auto one = join(1);
  EXPECT_TRUE(there("living"));
}

// A process without descriptors must not report a missing partner.
TEST_F(Wire, LackOfDescriptorsIsReportedAsSuch) {
  const auto one = join(1);
  const auto two = join(2);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {3, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_NE(one->route(2), nullptr);
  std::string text;
  const bool told = wait_until([&] { return one->next_trouble(&text); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(told && text.find("raise the limit of open files (ulimit -n)") != std::string::npos)
      << text;
  ASSERT_TRUE(wait_until([&] {
    static_cast<void>(one->route(2));
    one->pump(0);
    model::PartnerChange found{};
    return one->next_change(&found) && found.here;
  }));
}

// A partner that gives up its privileges can no longer be read: it is told to send through the
// ring.
TEST_F(Wire, APartnerIsToldThatItCannotBeReadAnyMore) {
  const uint64_t number = 7;
  ASSERT_EQ(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr uid_t kOtherUser = 65534;
    if (geteuid() == 0 && setresuid(kOtherUser, kOtherUser, kOtherUser) != 0) {
      _exit(2);
    }
    std::atomic<uint32_t> allowed{1};
    ProcessPuller puller(getppid(), &allowed);
    uint64_t read = 0;
    const model::PullPiece piece{reinterpret_cast<uint8_t*>(&read),
                                 reinterpret_cast<uintptr_t>(&number), sizeof read};
    _exit(puller.pull({&piece, 1}) == 0 && allowed.load() == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  EXPECT_EQ(status, 0);
}

// The advice is about the cause: a partner that was killed, even one whose parent has not waited
// for it, needs none.
TEST_F(Wire, APartnerThatIsGoneIsNotSaidToBeElsewhere) {
  const uint64_t number = 7;
  const auto at = reinterpret_cast<uintptr_t>(&number);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    pause();
    _exit(0);
  }
  std::atomic<uint32_t> allowed{1};
  ProcessPuller there(child, &allowed);
  EXPECT_TRUE(there.works(at, number));
  ProcessPuller changed(child, &allowed);
  EXPECT_FALSE(changed.works(at, number + 1));
  EXPECT_NE(changed.why_not().find("process " + std::to_string(child) + " has replaced it"),
            std::string::npos)
      << changed.why_not();
  ASSERT_EQ(kill(child, SIGKILL), 0);
  siginfo_t ended{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  ProcessPuller zombie(child, &allowed);
  EXPECT_FALSE(zombie.works(at, number));
  EXPECT_EQ(zombie.why_not(), "");
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  ProcessPuller gone(child, &allowed);
  EXPECT_FALSE(gone.works(at, number));
  EXPECT_EQ(gone.why_not(), "");
  EXPECT_EQ(allowed.load(), 1u) << "it says nothing about the next partner";
}

// A socket names a process that this pid namespace does not have by the number 0.
TEST_F(Wire, APartnerInAnotherPidNamespaceIsSaidToBeThere) {
  const uint64_t number = 7;
  std::atomic<uint32_t> allowed{1};
  ProcessPuller puller(0, &allowed);
  EXPECT_FALSE(puller.works(reinterpret_cast<uintptr_t>(&number), number));
  EXPECT_NE(puller.why_not().find("in another pid namespace; give the processes one"),
            std::string::npos)
      << puller.why_not();
}

// Also if a filter that is installed later claims that the system call does not exist.
TEST_F(Wire, APartnerIsToldForAnyCauseThatItCannotBeRead) {
  for (const int error : {EPERM, EACCES, ENOSYS}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const uint64_t number = 7;
      std::atomic<uint32_t> allowed{1};
      ProcessPuller puller(getpid(), &allowed);
      uint64_t read = 0;
      const model::PullPiece piece{reinterpret_cast<uint8_t*>(&read),
                                   reinterpret_cast<uintptr_t>(&number), sizeof read};
      const bool denied = puller.works(piece.from, number) &&
                          deny_call(SYS_process_vm_readv, error) && puller.pull({&piece, 1}) == 0;
      const bool told = puller.why_not().find(std::strerror(error)) != std::string::npos;
      _exit(denied && told && allowed.load() == 0 ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << std::strerror(error);
  }
}

}  // namespace
}  // namespace rio::test
