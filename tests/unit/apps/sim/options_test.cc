#include "apps/sim/barrier_options.hpp"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

namespace rio::simapp {
namespace {

/// Parses the options of `rio-sim barrier`. @return what was wrong, or "".
std::string parse(const std::string& line, BarrierPlan* plan) {
  CLI::App app;
  BarrierWords words;
  OutputOptions output;
  add_barrier_options(app, plan, &words, &output);
  std::string error;
  try {
    app.parse(line);
  } catch (const CLI::ParseError& problem) {
    return problem.what();
  }
  return take_words(words, plan, &error) == 0 ? "" : error;
}

TEST(BarrierOptions, AreTaken) {
  BarrierPlan plan;
  ASSERT_EQ(
      parse("--topology mesh:4x4 --schedule tree:2 --ranks 9 --barriers 3 --engine software "
            "--host-overhead 900 --hop 50 --serialisation 4 --card 20 --host-in 1 --host-out 2 "
            "--skew one-late:70 --loss 0.25 --dead 1 --dead-node 3 --dead-node 4 "
            "--dead-at 10-20 --damq 2 --timeout 5000 --resends 1 --deadline 6 --seed 8 "
            "--within 77 --ranks-per-node 3 --memory 60",
            &plan),
      "");
  EXPECT_EQ(plan.topology, "mesh:4x4");
  EXPECT_EQ(plan.schedule, "tree:2");
  EXPECT_EQ(plan.engine, EngineKind::kSoftware);
  EXPECT_EQ(plan.ranks, 9u);
  EXPECT_EQ(plan.barriers, 3u);
  EXPECT_EQ(plan.hop_ns + plan.serialisation_ns + plan.card_ns, 74u);
  EXPECT_EQ(plan.host_overhead_ns, 900u);
  EXPECT_EQ(plan.host_in_ns, 1u);
  EXPECT_EQ(plan.host_out_ns, 2u);
  EXPECT_EQ(plan.skew, (Skew{SkewKind::kOneLate, 70}));
  EXPECT_EQ(plan.loss, 0.25);
  EXPECT_EQ(plan.dead, 1u);
  EXPECT_EQ(plan.dead_nodes, (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(plan.dead_from_ns, 10u);
  EXPECT_EQ(plan.dead_until_ns, 20u);
  EXPECT_EQ(plan.early, 2u);
  EXPECT_EQ(plan.timeout_ns, 5000u);
  EXPECT_EQ(plan.resend_limit, 1u);
  EXPECT_EQ(plan.deadline_ns, 6u);
  EXPECT_EQ(plan.seed, 8u);
  EXPECT_EQ(plan.within_ns, 77u);
  EXPECT_EQ(plan.ranks_per_node, 3u);
  EXPECT_EQ(plan.memory_ns, 60u);
  EXPECT_TRUE(plan.has_faults());
}

TEST(BarrierOptions, WithoutAnyNothingFails) {
  BarrierPlan plan;
  EXPECT_EQ(parse("", &plan), "");
  EXPECT_FALSE(plan.has_faults());
  EXPECT_EQ(plan.engine, EngineKind::kCard);
}

TEST(BarrierOptions, BadOnesAreNamed) {
  for (const char* line :
       {"--loss nan", "--loss -0.1", "--loss 1.5", "--hop -1", "--hop 1e3", "--timeout 0",
        "--resends 256", "--damq -1", "--engine host", "--skew late", "--dead-at 5-2",
        "--dead-at x", "--within 0", "--barriers 0", "--ranks 99999999999", "--ranks-per-node 0",
        "--ranks-per-node 1025", "--memory 60", "--memory x"}) {
    BarrierPlan plan;
    const std::string error = parse(line, &plan);
    const std::string option(line, std::string_view(line).find(' '));
    EXPECT_NE(error.find(option.substr(2)), std::string::npos) << line << ": " << error;
  }
}

}  // namespace
}  // namespace rio::simapp
