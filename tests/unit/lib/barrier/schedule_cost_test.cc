#include "lib/barrier/schedule_cost.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string>
#include <variant>

namespace rio::barrier {
namespace {

Scheme scheme_of(const std::string& text) {
  Scheme scheme;
  std::string error;
  EXPECT_EQ(parse_scheme(text, &scheme, &error), 0) << error;
  return scheme;
}

Cost cost_of(const std::string& text, const std::string& network) {
  const Scheme on = scheme_of(network);
  CostModel model;
  model.wraps = std::holds_alternative<Torus>(on);
  model.grid = model.wraps ? std::get<Torus>(on).grid : std::get<Mesh>(on).grid;
  const Scheme scheme = scheme_of(text);
  Cost cost;
  const ScheduleOf schedule_of = [&](uint32_t rank, Schedule* out) {
    return make_schedule(scheme, model.grid.nodes(), rank, out);
  };
  EXPECT_EQ(estimate_cost(model, schedule_of, &cost), 0) << text;
  std::printf("%-24s on %-17s %2u rounds %4" PRIu64 " hops %8" PRIu64 " messages %6" PRIu64
              " ns, over diameter * 100 ns: %.3f\n",
              text.c_str(), network.c_str(), cost.rounds, cost.hops, cost.messages, cost.ns,
              static_cast<double>(cost.ns) / (100.0 * static_cast<double>(cost.diameter)));
  return cost;
}

TEST(ScheduleCost, OneHundredAndTwentyEightNodes) {
  EXPECT_EQ(cost_of("classic", "torus:8x4x4").diameter, 8u);
  (void)cost_of("two-way", "torus:8x4x4");
  (void)cost_of("tree", "torus:8x4x4");
  (void)cost_of("tree:2", "torus:8x4x4");
  const Cost dimensions = cost_of("dimensions:8x4x4", "torus:8x4x4");
  EXPECT_EQ(dimensions.hops, 8u);
  EXPECT_EQ(dimensions.rounds, 6u);
  EXPECT_EQ(dimensions.ns, 1104u);
  const Cost torus = cost_of("torus:8x4x4", "torus:8x4x4");
  EXPECT_EQ(torus.hops, 8u);
  EXPECT_EQ(torus.rounds, 5u);
  EXPECT_EQ(torus.ns, 1064u);
  EXPECT_EQ(torus.messages, 128u * 10);
}

TEST(ScheduleCost, AMillionNodes) {
  const Cost dimensions = cost_of("dimensions:100x100x100", "torus:100x100x100");
  EXPECT_EQ(dimensions.hops, 177u);
  EXPECT_EQ(dimensions.ns, 19'716u);
  const Cost torus = cost_of("torus:100x100x100", "torus:100x100x100");
  EXPECT_EQ(torus.diameter, 150u);
  EXPECT_EQ(torus.hops, 150u);
  EXPECT_EQ(torus.ns, 16'800u);
}

TEST(ScheduleCost, ATorusIsAsFarAsItsDiameter) {
  for (const char* const text : {"torus:2", "torus:4x4x4", "torus:5x6x7", "torus:10x28x3",
                                 "torus:16x16x16", "torus:1x82x82", "torus:2x2x2x2"}) {
    const Cost cost = cost_of(text, text);
    EXPECT_EQ(cost.hops, cost.diameter) << text;
  }
}

TEST(ScheduleCost, AMeshIsAtMostOneFartherInEachEvenDimension) {
  for (const char* const text : {"mesh:2", "mesh:3", "mesh:7x9", "mesh:8x4", "mesh:4x4x4",
                                 "mesh:100", "mesh:101x5", "mesh:16x16x16"}) {
    const Grid grid = std::get<Mesh>(scheme_of(text)).grid;
    uint64_t even = 0;
    for (uint32_t d = 0; d < grid.dimensions; ++d) {
      even += grid.lengths[d] % 2 == 0 ? 1 : 0;
    }
    const Cost cost = cost_of(text, text);
    EXPECT_GE(cost.hops, cost.diameter) << text;
    EXPECT_LE(cost.hops, cost.diameter + even) << text;
  }
  (void)cost_of("classic", "mesh:16x16x16");
  (void)cost_of("two-way", "mesh:16x16x16");
  (void)cost_of("dimensions:16x16x16", "mesh:16x16x16");
}

TEST(ScheduleCost, APeerOutsideOfTheGridIsRefused) {
  CostModel model;
  model.grid = {.dimensions = 1};
  model.grid.lengths[0] = 4;
  Cost cost{.rounds = 77};
  const ScheduleOf strays = [](uint32_t rank, Schedule* out) {
    *out = Schedule{};
    out->rounds = 1;
    out->add(0, rank + 4, true, true);
    return 0;
  };
  EXPECT_EQ(estimate_cost(model, strays, &cost), -EINVAL);
  const ScheduleOf fails = [](uint32_t /*rank*/, Schedule* /*out*/) { return -E2BIG; };
  EXPECT_EQ(estimate_cost(model, fails, &cost), -E2BIG);
  EXPECT_EQ(cost.rounds, 77u) << "set only on success";
}

}  // namespace
}  // namespace rio::barrier
