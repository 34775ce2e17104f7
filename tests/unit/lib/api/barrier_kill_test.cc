// Processes that meet in barriers, one of which is killed at any instant: all others are told, with
// its rank, and none passes a barrier at which a member has not arrived.
//
// RIO_BARRIER_KILLS: number of kills, RIO_SEED: seed of the victims and instants.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "tests/support/env_number.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/temp_dir.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"
#include "tests/unit/pmd/api/shm_member.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kMembers = 4;
constexpr uint32_t kContext = 3;
using Arrivals = std::array<std::atomic<uint32_t>, kMembers>;

/// Meets in barriers until a member has gone. @param kill number of this run: in half of them
/// members sleep, in half they use the card. @param arrivals of all members. @return 0: it was told
/// of the victim.
int run(const std::string& card, uint32_t rank, uint32_t victim, uint32_t kill,
        Arrivals& arrivals) {
  api::Port port = open_port(card + ",id=" + std::to_string(rank + 1), 0, false, kill % 2 == 1);
  api::Barrier barrier;
  api::BarrierGroup group;
  std::vector<rio_msg_address> members;
  for (uint32_t other = 0; other < kMembers; ++other) {
    members.push_back(rio_msg_address_of(other + 1, kContext));
  }
  rio_barrier_options options = api::barrier_options();
  options.schedule = rank % 2 == 0 ? nullptr : "two-way";
  options.way = kill % 4 < 2 ? RIO_BARRIER_CARD : RIO_BARRIER_SOFTWARE;
  if (api::Barrier::open(port, kContext, &barrier) != 0 ||
      api::BarrierGroup::create(barrier, members, rank, options, &group) != 0) {
    return 10;
  }
  int rc = group.wait_ready(kLongMs);
  for (uint32_t count = 1; rc == 1; ++count) {
    arrivals[rank].store(count);
    rc = group.run(kLongMs);
    for (const auto& other : arrivals) {
      if (rc == 1 && other.load() < count) {
        return 11;
      }
    }
  }
  if (rc != -ECONNRESET || group.failure().rank != victim) {
    std::fprintf(stderr, "%u: %s, rank %d, not %u\n", rank, rio_strerror(rc),
                 static_cast<int>(group.failure().rank), victim);
    return rc == 0 ? 12 : 13;
  }
  return 0;
}

TEST(BarrierKill, TheOthersAreToldWhoItWas) {
  const auto kills = static_cast<uint32_t>(env_number("RIO_BARRIER_KILLS", 10));
  const uint32_t seed = first_seed();
  std::mt19937 random(seed);
  void* const memory =
      mmap(nullptr, sizeof(Arrivals), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (uint32_t kill = 0; kill < kills; ++kill) {
    const TempDir dir;
    setenv("RIO_RUNTIME_DIR", dir.at("").c_str(), 1);
    Arrivals& arrivals = *new (memory) Arrivals{};
    const auto victim = static_cast<uint32_t>(random() % kMembers);
    const auto instant = static_cast<uint32_t>(random() % 300);  // barriers of the victim
    std::vector<Child> members;
    for (uint32_t rank = 0; rank < kMembers; ++rank) {
      members.emplace_back([&, rank] { return run("shm:kill", rank, victim, kill, arrivals); });
    }
    EXPECT_TRUE(wait_until([&] { return arrivals[victim].load() > instant; }));
    members[victim].signal(SIGKILL);
    EXPECT_EQ(members[victim].exit_code(), -1);
    for (uint32_t rank = 0; rank < kMembers; ++rank) {
      if (rank != victim) {
        EXPECT_EQ(members[rank].exit_code(), 0) << "rank " << rank << ", seed " << seed;
      }
    }
    unsetenv("RIO_RUNTIME_DIR");
  }
  EXPECT_EQ(munmap(memory, sizeof(Arrivals)), 0);
}

}  // namespace
}  // namespace rio::test
