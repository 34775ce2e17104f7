// Known latencies on an idle network, and barriers under faults.
#include "apps/sim/barrier_run.hpp"

#include <gtest/gtest.h>

#include "apps/sim/barrier_report.hpp"

namespace rio::simapp {
namespace {

BarrierResult run(const BarrierPlan& plan) {
  BarrierResult result;
  std::string error;
  EXPECT_EQ(run_barriers(plan, {}, &result, &error), 0) << error;
  return result;
}

std::string error_of(const BarrierPlan& plan) {
  BarrierResult result;
  std::string error;
  EXPECT_NE(run_barriers(plan, {}, &result, &error), 0);
  EXPECT_EQ(result.barriers, 0u);
  return error;
}

BarrierPlan plan_of(const char* topology, const char* schedule) {
  BarrierPlan plan;
  plan.topology = topology;
  plan.schedule = schedule;
  return plan;
}

TEST(BarrierRun, KnownLatenciesOnAnIdleNetwork) {
  static constexpr struct {
    const char* topology;
    const char* schedule;
    uint64_t ns;
  } kKnown[] = {
      {"torus:2", "classic", 40 + 2 * 108},
      {"torus:2", "two-way", 40 + 2 * 108},
      {"torus:3x3", "torus", 2 * (40 + 108) + 108},
      {"torus:4x4", "torus", 3 * 40 + 4 * 108 + 108},  // the middle round goes two hops
      {"torus:8x4x4", "torus", 1172},
      {"torus:8x4x4", "dimensions", 1212},
      {"torus:8x4x4", "classic", 2132},
      {"torus:8x4x4", "two-way", 3024},
  };
  for (const auto& known : kKnown) {
    const BarrierResult result = run(plan_of(known.topology, known.schedule));
    EXPECT_EQ(result.latency_ns.at(0.5), known.ns) << known.topology << ' ' << known.schedule;
    EXPECT_EQ(result.violations + result.failed + result.waiting, 0u);
  }
}

TEST(BarrierRun, SoftwareAddsTheHostToEachRound) {
  BarrierPlan plan = plan_of("torus:8x4x4", "classic");
  plan.engine = EngineKind::kSoftware;
  plan.host_overhead_ns = 1100;
  EXPECT_EQ(run(plan).latency_ns.at(0.5), 2132u + 7 * 1100);
}

TEST(BarrierRun, TheBestScheduleFitsTheTopologyAndTheRanks) {
  EXPECT_EQ(run(plan_of("torus:4x4", "")).schedule, "torus:4x4");
  EXPECT_EQ(run(plan_of("mesh:4x4", "")).schedule, "mesh:4x4");
  EXPECT_EQ(run(plan_of("fat-tree:4x2", "")).schedule, "classic");
  BarrierPlan plan = plan_of("torus:4x4", "");
  plan.ranks = 5;
  const BarrierResult result = run(plan);
  EXPECT_EQ(result.schedule, "classic");
  EXPECT_EQ(result.left, 5u);
  EXPECT_EQ(result.last_exits_ns.size(), 5u);
}

TEST(BarrierRun, RepeatsBitForBit) {
  BarrierPlan plan = plan_of("torus:4x4x4", "torus");
  plan.skew = {SkewKind::kExponential, 3000};
  plan.loss = 0.01;
  plan.timeout_ns = 20'000;
  plan.barriers = 20;
  const BarrierResult first = run(plan);
  const BarrierResult second = run(plan);
  EXPECT_EQ(first.events, second.events);
  EXPECT_EQ(first.last_exits_ns, second.last_exits_ns);
  plan.seed = 2;
  EXPECT_NE(run(plan).last_exits_ns, first.last_exits_ns);
  plan.skew = {};
  const BarrierResult other_losses = run(plan);
  plan.seed = 3;
  EXPECT_NE(run(plan).events, other_losses.events);
}

TEST(BarrierRun, LossAndSmallMemoryDelayButBreakNothing) {
  for (const uint32_t early : {0u, 1u, 2u}) {
    for (const double loss : {0.0, 0.02}) {
      BarrierPlan plan = plan_of("torus:4x4x2", "torus");
      plan.skew = {SkewKind::kUniform, 5000};
      plan.early = early;
      plan.loss = loss;
      plan.timeout_ns = 20'000;
      plan.barriers = 50;
      const BarrierResult result = run(plan);
      EXPECT_EQ(result.violations, 0u);
      EXPECT_EQ(result.left, 50u * 32);
      EXPECT_GT(result.engines.nacks_taken, 0u);
      EXPECT_EQ(result.engines.resent != 0, loss > 0.0);
      EXPECT_FALSE(result.is_bad(plan));
    }
  }
}

TEST(BarrierRun, BackToBackTheNextBarrierBeginsAtTheExitOfEachNode) {
  BarrierPlan plan = plan_of("torus:4x4x2", "torus");
  plan.back_to_back = true;
  plan.barriers = 30;
  plan.skew = {SkewKind::kUniform, 700};
  const BarrierResult result = run(plan);
  EXPECT_EQ(result.barriers, 30u);
  EXPECT_EQ(result.left, 30u * 32);
  EXPECT_EQ(result.latency_ns.count(), 30u);
  EXPECT_EQ(result.exits_ns.count(), 32u);
  EXPECT_EQ(result.violations + result.failed + result.waiting, 0u);
  plan.barriers = 1u << 30;
  EXPECT_NE(error_of(plan).find("too many; give fewer"), std::string::npos);
}

TEST(BarrierRun, ADeadNodeFailsAllOthersAndEndsTheRun) {
  BarrierPlan plan = plan_of("torus:4x4", "torus");
  plan.dead_nodes = {5};
  plan.timeout_ns = 20'000;
  plan.resend_limit = 2;
  plan.barriers = 3;
  const BarrierResult result = run(plan);
  EXPECT_EQ(result.barriers, 1u);
  EXPECT_EQ(result.failed, 15u);
  EXPECT_EQ(result.dead, 1u);
  EXPECT_EQ(result.left + result.waiting + result.violations, 0u);
  EXPECT_EQ(result.latency_ns.count(), 0u);
  EXPECT_FALSE(result.is_bad(plan));
  EXPECT_TRUE(result.is_bad(plan_of("torus:4x4", "torus"))) << "without a fault that explains it";
  EXPECT_GT(result.engines.resent, 0u);
  plan.resend_limit = 0;
  EXPECT_EQ(run(plan).engines.resent, 0u);
}

TEST(BarrierRun, RanksOfANodeMeetInMemoryFirst) {
  BarrierPlan plan = plan_of("torus:8x4x4", "");
  plan.ranks_per_node = 16;
  const BarrierResult result = run(plan);
  EXPECT_EQ(result.schedule, "torus:8x4x4");
  EXPECT_EQ(result.ranks, 2048u);
  EXPECT_EQ(result.left, 2048u);
  EXPECT_EQ(result.latency_ns.at(0.5), 1172u + 16 * 100 + 15 * 100);
  EXPECT_EQ(result.exits_ns.at(0.0), 1172u + 16 * 100) << "the leaders leave first";
  EXPECT_EQ(result.engines.sent, 1280u) << "as many as with one rank a node";
  ASSERT_EQ(result.last_exits_ns.size(), 2048u);
  EXPECT_EQ(result.last_exits_ns[16 * 5 + 3], 1172u + 16 * 100 + 3 * 100);
  plan.memory_ns = 0;
  EXPECT_EQ(run(plan).latency_ns.at(0.5), 1172u);
  plan.engine = EngineKind::kSoftware;
  EXPECT_EQ(run(plan).latency_ns.at(0.5), 1172u + 5 * 1100);
}

TEST(BarrierRun, TheLastNodeMayHaveFewerRanks) {
  BarrierPlan plan = plan_of("torus:4x4", "");
  plan.ranks_per_node = 4;
  plan.ranks = 9;  // nodes 0 to 2, and node 2 has one of them
  plan.skew = {SkewKind::kOneLate, 5000};
  plan.barriers = 20;
  for (const bool back_to_back : {false, true}) {
    plan.back_to_back = back_to_back;
    const BarrierResult result = run(plan);
    EXPECT_EQ(result.schedule, "classic");
    EXPECT_EQ(result.rounds, 2u);
    EXPECT_EQ(result.left, 20u * 9);
    EXPECT_EQ(result.violations + result.failed + result.waiting, 0u);
    EXPECT_EQ(result.last_exits_ns.size(), 9u);
    EXPECT_EQ(run(plan).last_exits_ns, result.last_exits_ns);
  }
}

TEST(BarrierRun, WithANodeItsRanksDie) {
  BarrierPlan plan = plan_of("torus:4x4", "torus");
  plan.ranks_per_node = 3;
  plan.dead_nodes = {5};
  plan.timeout_ns = 20'000;
  plan.resend_limit = 2;
  const BarrierResult result = run(plan);
  EXPECT_EQ(result.failed, 15u * 3);
  EXPECT_EQ(result.dead, 3u);
  EXPECT_EQ(result.left + result.waiting + result.violations, 0u);
}

TEST(BarrierRun, NodesDieWhenToldTo) {
  BarrierPlan plan = plan_of("torus:4x4", "torus");
  plan.dead = 2;
  plan.dead_from_ns = plan.dead_until_ns = 5'000'000;
  EXPECT_EQ(run(plan).left, 16u) << "after the barrier";
  plan.dead_from_ns = plan.dead_until_ns = 0;
  plan.timeout_ns = 20'000;
  const BarrierResult result = run(plan);
  EXPECT_EQ(result.dead, 2u);
  EXPECT_EQ(result.failed, 14u);
  plan.dead_nodes = {plan.dead};
  plan.dead = 0;
  plan.dead_until_ns = 1'000'000'000;
  EXPECT_EQ(run(plan).left, 16u) << "some time within a second";
}

TEST(BarrierRun, PlansThatCannotBeRunAreRefused) {
  BarrierPlan plan = plan_of("torus:4x4", "torus");
  plan.ranks = 17;
  EXPECT_EQ(error_of(plan), "17 ranks on 16 nodes; a barrier has 2 ranks or more, one a node");
  plan = plan_of("torus:4x4", "");
  plan.ranks = 1;
  EXPECT_NE(error_of(plan).find("2 ranks or more"), std::string::npos);
  for (const uint32_t ranks : {4u, 65u}) {
    plan.ranks_per_node = 4;
    plan.ranks = ranks;
    EXPECT_EQ(
        error_of(plan),
        std::to_string(ranks) + " ranks on 16 nodes, 4 a node; 2 nodes or more must hold them all");
  }
  plan.ranks_per_node = 1u << 24;
  EXPECT_NE(error_of(plan).find("at most 16777216 in all"), std::string::npos);
  plan.ranks_per_node = 0;
  EXPECT_NE(error_of(plan).find("give 1 to each"), std::string::npos);
  plan = plan_of("torus:4x4", "");
  plan.dead_nodes = {16};
  EXPECT_NE(error_of(plan).find("nodes 0 to 15"), std::string::npos);
  plan = plan_of("torus:4x4", "");
  plan.dead_from_ns = 1;
  EXPECT_NE(error_of(plan).find("earlier time first"), std::string::npos);
  EXPECT_NE(error_of(plan_of("fat-tree:4x2", "torus")).find("no grid"), std::string::npos);
  EXPECT_NE(error_of(plan_of("torus:4x4", "torus:3x3")).find("torus:3x3"), std::string::npos);
  EXPECT_NE(error_of(plan_of("ring:4", "")).find("ring:4"), std::string::npos);
}

TEST(Distribution, Shares) {
  Distribution times;
  EXPECT_EQ(times.at(0.5), 0u);
  for (uint64_t value = 1; value <= 100; ++value) {
    times.add(value);
  }
  EXPECT_EQ(times.at(0.0), 1u);
  EXPECT_EQ(times.at(0.5), 50u);
  EXPECT_EQ(times.at(0.99), 99u);
  EXPECT_EQ(times.at(1.0), 100u);
}

TEST(BarrierReport, Commas) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1'000), "1,000");
  EXPECT_EQ(with_commas(1'234'567), "1,234,567");
}

}  // namespace
}  // namespace rio::simapp
