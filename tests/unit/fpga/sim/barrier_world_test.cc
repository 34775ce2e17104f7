#include "fpga/sim/barrier_world.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.hpp"
#include "lib/barrier/scheme.hpp"

namespace rio::sim {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

/// Descriptors of a scheme whose ranks are nodes.
class SchemeSchedules final : public BarrierWorld::Schedules {
 public:
  SchemeSchedules(const char* text, uint32_t nodes) : nodes_(nodes) {
    std::string error;
    EXPECT_EQ(barrier::parse_scheme(text, &scheme_, &error), 0) << error;
  }
  void describe(uint32_t node, regs::BarrierDesc* out) override {
    barrier::Schedule schedule;
    ASSERT_EQ(barrier::make_schedule(scheme_, nodes_, node, &schedule), 0);
    ASSERT_EQ(barrier::write_descriptor(
                  schedule, {.epoch = epoch}, [](uint32_t rank) { return rank; }, out),
              0);
  }
  uint32_t epoch = 0;

 private:
  barrier::Scheme scheme_;
  uint32_t nodes_;
};

std::unique_ptr<BarrierWorld> make(const char* topology, const BarrierSettings& settings = {}) {
  NetworkTopology shape;
  std::string error;
  std::unique_ptr<BarrierWorld> world;
  EXPECT_EQ(NetworkTopology::create(topology, &shape, &error), 0) << error;
  EXPECT_EQ(BarrierWorld::create(std::move(shape), settings, &world, &error), 0) << error;
  return world;
}

TEST(BarrierWorld, TwoNodesTakeAStepAHopAndItsAnswer) {
  const auto world = make("torus:2");
  SchemeSchedules schedules("classic", 2);
  const BarrierOutcome outcome = world->run(schedules, {}, kSecondNs);
  EXPECT_EQ(outcome.ended, 2u);
  EXPECT_EQ(outcome.latency_ns(), 40u + 108 + 108);
  EXPECT_EQ(world->counters(0).sent, 1u);
}

TEST(BarrierWorld, ALateNodeHoldsUpAllOthers) {
  const auto world = make("torus:3x3");
  SchemeSchedules schedules("two-way", 9);
  const std::vector<uint64_t> delays_ns = {0, 0, 0, 0, 5000};
  const BarrierOutcome outcome = world->run(schedules, delays_ns, kSecondNs);
  EXPECT_EQ(outcome.ended, 9u);
  EXPECT_EQ(outcome.violations, 0u);
  EXPECT_EQ(outcome.last_arrival_ns, 5000u);
  for (uint32_t node = 0; node < 9; ++node) {
    EXPECT_GT(world->exit_ns(node), 5000u);
  }
}

TEST(BarrierWorld, RunsRepeatBitForBitUnderLoss) {
  BarrierSettings settings;
  settings.network.classes[0].loss_rate = 0.02;
  settings.response_timeout_ns = 20'000;
  std::vector<uint64_t> first_ns;
  for (int run = 0; run < 2; ++run) {
    const auto world = make("torus:4x4x4", settings);
    SchemeSchedules schedules("torus:4x4x4", 64);
    base::Random random(7);
    uint32_t resent = 0;
    std::vector<uint64_t> exits_ns;
    for (; schedules.epoch < 50; ++schedules.epoch) {
      std::vector<uint64_t> delays_ns(64);
      for (uint64_t& delay_ns : delays_ns) {
        delay_ns = random.below(10'000);
      }
      const BarrierOutcome outcome = world->run(schedules, delays_ns, kSecondNs);
      ASSERT_EQ(outcome.ended, 64u) << schedules.epoch;
      ASSERT_EQ(outcome.violations, 0u) << schedules.epoch;
      exits_ns.push_back(outcome.last_exit_ns);
    }
    for (uint32_t node = 0; node < 64; ++node) {
      resent += world->counters(node).resent;
    }
    EXPECT_GT(resent, 0u);
    EXPECT_TRUE(run == 0 || exits_ns == first_ns);
    first_ns = exits_ns;
  }
}

TEST(BarrierWorld, ADeadNodeEndsTheBarrierOfAllOthers) {
  BarrierSettings settings;
  settings.response_timeout_ns = 20'000;
  settings.resend_limit = 2;
  const auto world = make("torus:4x4", settings);
  SchemeSchedules schedules("classic", 16);
  world->network().schedule({.at_ns = 100, .kind = FaultKind::kDeviceDown, .target = 5});
  const BarrierOutcome outcome = world->run(schedules, {}, kSecondNs / 1000);
  EXPECT_EQ(outcome.failed, 15u);
  EXPECT_EQ(outcome.ended, 0u);
}

TEST(BarrierWorld, TheHostTakesItsTimeOnceOnACardAndInEachRoundInSoftware) {
  SchemeSchedules schedules("classic", 2);
  const auto card = make("torus:2", {.host_in_ns = 300, .host_out_ns = 200});
  EXPECT_EQ(card->run(schedules, {}, kSecondNs).latency_ns(), 300u + 40 + 108 + 108 + 200);
  const auto software = make("torus:2", {.host_round_ns = 1100});
  EXPECT_EQ(software->run(schedules, {}, kSecondNs).latency_ns(), 1100u + 40 + 108 + 108);
}

TEST(BarrierWorld, AHostRunsOneRoundAfterTheOtherEvenIfNothingIsMissing) {
  // All that node 4 awaits is there when it arrives, so its card could send both rounds at once.
  const std::vector<uint64_t> delays_ns = {0, 0, 0, 0, 50'000};
  SchemeSchedules schedules("dimensions:3x3", 9);
  const auto card = make("torus:3x3");
  EXPECT_EQ(card->run(schedules, delays_ns, kSecondNs).violations, 0u);
  EXPECT_EQ(card->exit_ns(4), 50'000u + 40 + 108 + 108);
  const auto software = make("torus:3x3", {.host_round_ns = 1100});
  EXPECT_EQ(software->run(schedules, delays_ns, kSecondNs).violations, 0u);
  EXPECT_EQ(software->exit_ns(4), 50'000u + 2 * 1100 + 40 + 108 + 108);
}

TEST(BarrierWorld, NotificationsThatWaitForTheHostDoNotTimeOut) {
  // Node 5 finds everything there, so its host runs five rounds in a row.
  const auto world =
      make("torus:8x4x4", {.host_round_ns = 1100, .response_timeout_ns = 5000, .resend_limit = 0});
  SchemeSchedules schedules("torus:8x4x4", 128);
  const std::vector<uint64_t> delays_ns = {0, 0, 0, 0, 0, 20'000};
  EXPECT_EQ(world->run(schedules, delays_ns, kSecondNs).ended, 128u);
}

TEST(BarrierWorld, NodesBeyondTheMembersTakeNoPart) {
  const auto world = make("torus:4x4", {.members = 9});
  SchemeSchedules schedules("two-way", 9);
  const BarrierOutcome outcome = world->run(schedules, {}, kSecondNs);
  EXPECT_EQ(world->members(), 9u);
  EXPECT_EQ(outcome.ended, 9u);
  EXPECT_EQ(outcome.violations, 0u);

  NetworkTopology shape;
  std::string error;
  std::unique_ptr<BarrierWorld> none;
  ASSERT_EQ(NetworkTopology::create("torus:4x4", &shape, &error), 0);
  EXPECT_NE(BarrierWorld::create(std::move(shape), {.members = 17}, &none, &error), 0);
  EXPECT_EQ(error, "17 members on 16 nodes; give at most as many as there are nodes");
}

TEST(BarrierWorld, AHostThatWaitsTooLongCancelsTheBarrierOfAll) {
  const auto world = make("torus:3x3", {.deadline_ns = 20'000});
  SchemeSchedules schedules("two-way", 9);
  const std::vector<uint64_t> late_ns = {0, 0, 0, 0, 50'000};
  const BarrierOutcome outcome = world->run(schedules, late_ns, kSecondNs);
  EXPECT_EQ(outcome.failed, 9u);
  EXPECT_EQ(outcome.ended, 0u);
  EXPECT_EQ(world->end_of(4), MemberEnd::kFailed);
  // Node 4's deadline would be at 70,000, amid the next barrier, which it must not cancel.
  ++schedules.epoch;
  const std::vector<uint64_t> delays_ns(9, 69'900 - world->network().now());
  EXPECT_EQ(world->run(schedules, delays_ns, kSecondNs).ended, 9u);
  EXPECT_GT(world->exit_ns(4), 70'000u);
  EXPECT_EQ(world->end_of(4), MemberEnd::kLeft);
}

/// Runs 40 barriers back to back, with pauses below 1 us.
BarrierOutcome run_forty(BarrierWorld& world, SchemeSchedules& schedules) {
  base::Random random(5);
  const auto pause_ns = [&](uint32_t, uint32_t) { return random.below(1000); };
  return world.run_back_to_back(schedules, 40, pause_ns, kSecondNs);
}

TEST(BarrierWorld, BackToBackMembersMayBeOneBarrierAhead) {
  const auto world = make("torus:4x4", {.early = 1});
  SchemeSchedules schedules("classic", 16);
  const BarrierOutcome outcome = run_forty(*world, schedules);
  EXPECT_EQ(outcome.ended, 16u);
  EXPECT_EQ(outcome.violations, 0u);
  ASSERT_EQ(world->times().size(), 40u);
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(world->times()[i].arrived, 16u);
    EXPECT_EQ(world->times()[i].left, 16u);
    EXPECT_GT(world->times()[i].last_exit_ns, world->times()[i].last_arrival_ns);
  }
  uint32_t early = 0;
  for (uint32_t node = 0; node < 16; ++node) {
    early += world->counters(node).early + world->counters(node).nacks_given;
  }
  EXPECT_GT(early, 0u);
  // The next run's epochs go on.
  schedules.epoch = 40;
  EXPECT_EQ(world->run(schedules, {}, kSecondNs).ended, 16u);
}

TEST(BarrierWorld, EndsWhenNothingCanHappenAnyMore) {
  // Node 2 answers the others' notifications and dies before it arrives: no card can notice that.
  const auto world = make("torus:3");
  SchemeSchedules schedules("two-way", 3);
  world->network().schedule({.at_ns = 1000, .kind = FaultKind::kDeviceDown, .target = 2});
  const std::vector<uint64_t> delays_ns = {0, 0, 5000};
  const BarrierOutcome outcome = world->run(schedules, delays_ns, 3'000'000 * kSecondNs);
  EXPECT_EQ(outcome.ended + outcome.failed, 0u);
  EXPECT_EQ(world->end_of(0), MemberEnd::kWaiting);
}

TEST(BarrierWorld, SmallRoomForEarlyNotificationsDelaysButNeverBreaksABarrier) {
  for (const uint32_t early : {0u, 1u, 2u}) {
    const auto world = make("torus:4x4x4", {.early = early});
    SchemeSchedules schedules("torus:4x4x4", 64);
    base::Random random(early);
    uint32_t nacks = 0;
    for (; schedules.epoch < 50; ++schedules.epoch) {
      std::vector<uint64_t> delays_ns(64);
      for (uint64_t& delay_ns : delays_ns) {
        delay_ns = random.below(10'000);
      }
      const BarrierOutcome outcome = world->run(schedules, delays_ns, kSecondNs);
      ASSERT_EQ(outcome.ended, 64u) << early << ", epoch " << schedules.epoch;
      ASSERT_EQ(outcome.violations, 0u) << early << ", epoch " << schedules.epoch;
    }
    for (uint32_t node = 0; node < 64; ++node) {
      nacks += world->counters(node).nacks_taken;
    }
    EXPECT_GT(nacks, 0u) << early;
  }
}

TEST(BarrierWorld, RanksOfANodeMeetInItsMemoryFirst) {
  // Node 0 starts at 30, when its third rank has arrived, and node 1 at 20.
  const auto world = make("torus:2", {.ranks = {{0, 3}, {3, 2}}, .memory_ns = 10});
  SchemeSchedules schedules("classic", 2);
  EXPECT_EQ(world->members(), 2u);
  EXPECT_EQ(world->ranks(), 5u);
  BarrierOutcome outcome = world->run(schedules, {}, kSecondNs);
  EXPECT_EQ(outcome.ended, 5u);
  EXPECT_EQ(world->exit_ns(0), 30u + 40 + 108 + 108);
  EXPECT_EQ(world->exit_ns(0, 2), world->exit_ns(0) + 2 * 10);
  EXPECT_EQ(world->exit_ns(1, 1), 20u + 40 + 108 + 108 + 10);
  EXPECT_EQ(outcome.last_exit_ns, world->exit_ns(0, 2));
  EXPECT_EQ(world->counters(0).sent + world->counters(1).sent, 2u);
  // A late rank finds its node's memory idle. It is the only one for which the others wait.
  ++schedules.epoch;
  const std::vector<uint64_t> delays_ns = {0, 5000};
  outcome = world->run(schedules, delays_ns, kSecondNs);
  EXPECT_EQ(outcome.latency_ns(), 10u + 40 + 108 + 108 + 2 * 10);
  EXPECT_EQ(outcome.violations, 0u);

  NetworkTopology shape;
  std::string error;
  std::unique_ptr<BarrierWorld> none;
  ASSERT_EQ(NetworkTopology::create("torus:3", &shape, &error), 0);
  EXPECT_NE(BarrierWorld::create(std::move(shape), {.ranks = {{0, 2}, {2, 2}}}, &none, &error), 0);
  EXPECT_EQ(error, "ranks of 2 nodes for 3 members; give the ranks of each");
}

TEST(BarrierWorld, ABarrierBeginsWhenTheLastRankHasLeftThePreviousOne) {
  const auto world = make("torus:2", {.ranks = {{0, 9}, {9, 9}}, .memory_ns = 1000});
  SchemeSchedules schedules("classic", 2);
  const BarrierOutcome first = world->run(schedules, {}, kSecondNs);
  ++schedules.epoch;
  EXPECT_EQ(world->run(schedules, {}, kSecondNs).last_arrival_ns, first.last_exit_ns);
}

TEST(BarrierWorld, BackToBackRanksWaitForEachOtherInEachBarrier) {
  const auto world =
      make("torus:2x2", {.ranks = {{0, 3}, {3, 1}, {4, 2}, {6, 3}}, .memory_ns = 70});
  SchemeSchedules schedules("classic", 4);
  const BarrierOutcome outcome = run_forty(*world, schedules);
  EXPECT_EQ(outcome.ended, 9u);
  EXPECT_EQ(outcome.violations, 0u);
  for (const BarrierWorld::Times& times : world->times()) {
    EXPECT_EQ(times.arrived, 9u);
    EXPECT_EQ(times.left, 9u);
  }
}

/// Schedules without their last round: consistent, but arrivals do not spread to all.
class ShortSchedules final : public BarrierWorld::Schedules {
 public:
  void describe(uint32_t node, regs::BarrierDesc* out) override {
    barrier::Schedule schedule;
    ASSERT_EQ(barrier::make_schedule(barrier::Classic{}, 16, node, &schedule), 0);
    --schedule.rounds;
    const uint64_t kept = barrier::peer_bit(schedule.rounds, 0) - 1;
    schedule.send &= kept;
    schedule.await &= kept;
    for (uint32_t way = 0; way < barrier::kWays; ++way) {
      schedule.peers[barrier::kWays * schedule.rounds + way] = barrier::kNoPeer;
    }
    ASSERT_EQ(barrier::write_descriptor(
                  schedule, {}, [](uint32_t rank) { return rank; }, out),
              0);
  }
};

TEST(BarrierWorld, MembersThatLeaveTooEarlyAreCounted) {
  const auto world = make("torus:4x4");
  ShortSchedules schedules;
  const std::vector<uint64_t> delays_ns = {0, 0, 0, 0, 0, 50'000};
  const BarrierOutcome outcome = world->run(schedules, delays_ns, kSecondNs);
  EXPECT_EQ(outcome.ended, 16u);
  EXPECT_EQ(outcome.violations, 8u);  // three rounds reach node 5 itself and seven more

  BarrierSettings settings;
  for (uint32_t node = 0; node < 16; ++node) {
    settings.ranks.push_back({.first = 3 * node, .count = 3});
  }
  const auto full = make("torus:4x4", settings);
  std::vector<uint64_t> late_ns(48);
  late_ns[16] = 50'000;  // the second rank of node 5
  EXPECT_EQ(full->run(schedules, late_ns, kSecondNs).violations, 8u * 3);
}

}  // namespace
}  // namespace rio::sim
