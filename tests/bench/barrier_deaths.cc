// Kills a member of a group at a random instant, again and again, and looks at the others:
//   barrier_deaths RUNS SEED any|card|software|memory
// Each member is a process with an emulated card. All pass barriers without a pause until one is
// killed; the others have to be told, with its rank, and none may pass a barrier at which a member
// has not arrived. Prints one JSON object.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/number.hpp"
#include "base/random.hpp"
#include "lib/barrier/group.hpp"

namespace {

using namespace rio;
using Time = std::chrono::steady_clock;

constexpr uint32_t kMembers = 4;
constexpr uint16_t kContext = 0;
constexpr uint32_t kBarriersMax = 100'000'000;
constexpr auto kWithin = std::chrono::seconds(30);
constexpr uint32_t kFlushMs = 1000;
constexpr uint32_t kDelayMaxUs = 20'000;  // of the kill, after the first barrier

/// Results of one member, in memory that all share.
struct Member {
  std::atomic<uint64_t> arrived;
  std::atomic<uint64_t> passed;
  std::atomic<uint64_t> early;  ///< barriers passed at which a member had not arrived
  std::atomic<uint32_t> told;   ///< 1 and the rank of the member that failed, once it was told
  std::atomic<uint32_t> on_card;
  std::atomic<uint32_t> in_memory;
};
using Members = std::array<Member, kMembers>;

struct Totals {
  uint64_t hangs = 0;
  uint64_t untold = 0;
  uint64_t wrong_rank = 0;
  uint64_t early = 0;
  uint64_t passed = 0;
  uint64_t on_card = 0;
  uint64_t in_memory = 0;
  double slowest_ms = 0;
};

[[noreturn]] void give_up(const char* what, int error) {
  std::fprintf(stderr, "barrier_deaths: error: %s: %s\n", what, std::strerror(-error));
  _exit(1);
}

/// A member's process, until it is killed or told.
[[noreturn]] void live(Members& members, uint32_t rank, const std::string& fabric,
                       barrier::Way way) {
  msg::PortConfig config;
  config.card = "shm:" + fabric + ",id=" + std::to_string(rank + 1);
  std::unique_ptr<msg::MessagePort> port;
  std::unique_ptr<barrier::BarrierContext> context;
  std::unique_ptr<barrier::Group> group;
  std::vector<msg::Address> addresses;
  for (uint32_t i = 0; i < kMembers; ++i) {
    addresses.push_back(msg::address(i + 1, kContext));
  }
  barrier::GroupOptions options;
  options.way = way;
  int rc = msg::MessagePort::open(config, &port);
  rc = rc != 0 ? rc : barrier::BarrierContext::create(*port, kContext, &context);
  rc = rc != 0 ? rc : context->create_group(addresses, rank, options, &group);
  rc = rc != 0 ? rc : group->wait_ready(10'000);
  if (rc != 1) {
    give_up("group", rc == 0 ? -ETIMEDOUT : rc);
  }
  Member& own = members[rank];
  own.on_card = group->way() == barrier::Way::kCard ? 1 : 0;
  own.in_memory = group->way() == barrier::Way::kMemory ? 1 : 0;
  for (uint64_t number = 1; number < kBarriersMax; ++number) {
    own.arrived = number;
    rc = group->arrive();
    while (rc == 0 && (rc = group->test()) == 0) {
      context->progress();
    }
    if (rc != 1) {
      break;
    }
    for (const Member& each : members) {
      own.early += each.arrived < number ? 1 : 0;
    }
    own.passed = number;
  }
  own.told = 1 + group->failure().rank;
  static_cast<void>(context->flush(kFlushMs));  // so that the others learn of the failure
  _exit(0);
}

[[nodiscard]] bool all_passed(const Members& members) {
  for (const Member& each : members) {
    if (each.passed == 0) {
      return false;
    }
  }
  return true;
}

/// One kill.
void run(Members& members, base::Random& random, const std::string& fabric, barrier::Way way,
         Totals* totals) {
  new (&members) Members{};
  std::array<pid_t, kMembers> pids{};
  for (uint32_t rank = 0; rank < kMembers; ++rank) {
    pids[rank] = fork();
    if (pids[rank] == 0) {
      live(members, rank, fabric, way);
    }
  }
  const auto until = Time::now() + kWithin;
  while (!all_passed(members) && Time::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random.below(kDelayMaxUs)));
  const uint32_t victim = random.below(kMembers);
  kill(pids[victim], SIGKILL);
  const auto killed = Time::now();
  uint32_t left = kMembers;
  while (left > 0 && Time::now() < killed + kWithin) {
    left -= waitpid(-1, nullptr, WNOHANG) > 0 ? 1 : 0;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  const std::chrono::duration<double, std::milli> took = Time::now() - killed;
  totals->slowest_ms = std::max(totals->slowest_ms, took.count());
  totals->hangs += left;
  for (uint32_t rank = 0; rank < kMembers; ++rank) {
    const Member& member = members[rank];
    totals->early += member.early;
    totals->passed += member.passed;
    totals->on_card += member.on_card;
    totals->in_memory += member.in_memory;
    if (rank != victim) {
      totals->untold += member.told == 0 ? 1 : 0;
      totals->wrong_rank += member.told != 0 && member.told != 1 + victim ? 1 : 0;
    }
  }
  for (; left > 0; --left) {
    for (const pid_t pid : pids) {
      kill(pid, SIGKILL);
    }
    waitpid(-1, nullptr, 0);
  }
}

bool read_way(std::string_view text, barrier::Way* way) {
  constexpr std::pair<std::string_view, barrier::Way> kWays[] = {
      {"any", barrier::Way::kAny},
      {"card", barrier::Way::kCard},
      {"software", barrier::Way::kSoftware},
      {"memory", barrier::Way::kMemory}};
  for (const auto& [name, each] : kWays) {
    if (text == name) {
      *way = each;
      return true;
    }
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t runs = 0;
  uint32_t seed = 0;
  barrier::Way way{};
  if (argc != 4 || !base::read_number(argv[1], 1, 1'000'000, &runs) ||
      !base::read_number(argv[2], 0, UINT32_MAX, &seed) || !read_way(argv[3], &way)) {
    std::fprintf(stderr, "usage: barrier_deaths RUNS SEED any|card|software|memory\n");
    return 2;
  }
  void* const memory =
      mmap(nullptr, sizeof(Members), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    give_up("mmap", -errno);
  }
  auto& members = *new (memory) Members{};
  base::Random random(seed);
  Totals totals;
  for (uint32_t i = 0; i < runs; ++i) {
    run(members, random, "deaths-" + std::to_string(getpid()) + "-" + std::to_string(i), way,
        &totals);
  }
  std::printf(
      "{\"runs\": %u, \"members\": %u, \"on_card\": %llu, \"in_memory\": %llu, "
      "\"barriers\": %llu, \"hangs\": %llu, \"untold\": %llu, \"wrong_rank\": %llu, "
      "\"early\": %llu, \"slowest_ms\": %.1f}\n",
      runs, kMembers, static_cast<unsigned long long>(totals.on_card),
      static_cast<unsigned long long>(totals.in_memory),
      static_cast<unsigned long long>(totals.passed), static_cast<unsigned long long>(totals.hangs),
      static_cast<unsigned long long>(totals.untold),
      static_cast<unsigned long long>(totals.wrong_rank),
      static_cast<unsigned long long>(totals.early), totals.slowest_ms);
  return totals.hangs + totals.untold + totals.early == 0 ? 0 : 1;
}
