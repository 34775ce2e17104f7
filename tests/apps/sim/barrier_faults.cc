// Barriers under every fault, drawn by seeds: lost packets, nodes that die, small memories, late
// arrivals, hosts that cancel; barriers one after the other, and back to back.
//   barrier_faults RUNS [SEED [RANKS]]    prints one JSON object; nodes have 1 to RANKS ranks
// Exit code: 0 all runs were made, whatever they counted; 1 a run could not be made; 2 wrong
// command line.
#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <string>

#include "apps/sim/barrier_run.hpp"
#include "base/number.hpp"
#include "base/random.hpp"

namespace {

using rio::base::Random;
using rio::simapp::BarrierPlan;
using rio::simapp::BarrierResult;
using rio::simapp::SkewKind;

struct Shape {
  const char* topology;
  const char* schedule;
};
constexpr std::array<Shape, 10> kShapes{{{"torus:2", "classic"},
                                         {"torus:3x3", "two-way"},
                                         {"torus:4x4", "torus"},
                                         {"torus:4x4", "classic"},
                                         {"torus:5x3x2", "dimensions"},
                                         {"torus:8x4x4", "torus"},
                                         {"torus:6x3", "two-way"},
                                         {"mesh:5x4", "mesh"},
                                         {"mesh:9", "tree"},
                                         {"fat-tree:4x2", "tree:2"}}};
constexpr std::array<double, 4> kLoss{0.0, 0.001, 0.02, 0.1};
constexpr std::array<SkewKind, 4> kSkews{SkewKind::kNone, SkewKind::kUniform,
                                         SkewKind::kExponential, SkewKind::kOneLate};
constexpr std::array<uint32_t, 4> kEarly{0, 1, 2, 64};

template <class Array>
auto pick(const Array& values, Random& random) {
  return values[random.below(static_cast<uint32_t>(values.size()))];
}

BarrierPlan draw(Random& random) {
  BarrierPlan plan;
  const Shape shape = pick(kShapes, random);
  plan.topology = shape.topology;
  plan.schedule = shape.schedule;
  plan.engine =
      random.below(4) == 0 ? rio::simapp::EngineKind::kSoftware : rio::simapp::EngineKind::kCard;
  plan.skew = {pick(kSkews, random), 1 + random.below(20'000)};
  plan.loss = pick(kLoss, random);
  plan.early = pick(kEarly, random);
  plan.timeout_ns = 5'000 + random.below(20'000);
  plan.resend_limit = random.below(6);
  plan.dead = random.below(3) == 0 ? 1 + random.below(2) : 0;
  plan.dead_until_ns = 1 + random.below(100'000);
  plan.deadline_ns = 200'000 + random.below(300'000);
  plan.back_to_back = random.below(2) == 0;
  if (plan.loss == 0.0 && plan.dead == 0) {
    plan.deadline_ns = 0;  // without it nothing may fail
  }
  plan.barriers = 12;  // more than the eight epochs that a notification can tell apart
  plan.seed = random.next();
  return plan;
}

}  // namespace

int main(int argc, char** argv) {
  uint32_t runs = 0;
  uint64_t seed = 1;
  uint32_t ranks_max = 1;
  if (argc < 2 || argc > 4 || !rio::base::read_number(argv[1], 1, 1u << 30, &runs) ||
      (argc > 2 && !rio::base::read_number(argv[2], &seed)) ||
      (argc > 3 && !rio::base::read_number(argv[3], 1, 64, &ranks_max))) {
    std::fprintf(stderr, "usage: %s RUNS [SEED [RANKS]]\n", argv[0]);
    return 2;
  }
  Random random(seed);
  uint64_t barriers = 0;
  uint64_t left = 0;
  uint64_t failed = 0;
  uint64_t waiting = 0;
  uint64_t violations = 0;
  uint64_t unexplained = 0;
  for (uint32_t run = 0; run < runs; ++run) {
    BarrierResult result;
    std::string error;
    BarrierPlan plan = draw(random);
    plan.ranks_per_node = ranks_max == 1 ? 1 : 1 + random.below(ranks_max);
    if (rio::simapp::run_barriers(plan, {}, &result, &error) != 0) {
      std::fprintf(stderr, "error: run %u: %s\n", run, error.c_str());
      return 1;
    }
    barriers += result.barriers;
    left += result.left;
    failed += result.failed;
    waiting += result.waiting;
    violations += result.violations;
    unexplained += plan.has_faults() ? 0 : result.failed + result.waiting;
  }
  std::printf("{\"seed\": %" PRIu64 ", \"runs\": %u, \"barriers\": %" PRIu64 ", \"left\": %" PRIu64
              ", \"failed\": %" PRIu64 ", \"waiting\": %" PRIu64 ", \"unexplained\": %" PRIu64
              ", \"violations\": %" PRIu64 "}\n",
              seed, runs, barriers, left, failed, waiting, unexplained, violations);
  return 0;
}
