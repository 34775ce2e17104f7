// Rails that are cut and mended while peers' memory is read, written and counted up: each access
// completes once and with success, what is written is there, and no addition is lost or doubled.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "tests/soak/rma_storm.hpp"
#include "tests/support/env_number.hpp"

namespace rio::test {
namespace {

double in_timeouts(const RmaPlan& plan, uint64_t ns) {
  return static_cast<double>(ns) / (plan.timeout_us * 1e3);
}

void report(const RmaPlan& plan, const RmaResult& result) {
  std::printf("seed %" PRIu64 ": %s; lost %" PRIu64 ", doubled %" PRIu64 ", torn %" PRIu64
              ", failed %" PRIu64 ", sessions ended %" PRIu64 "\n",
              plan.seed, result.is_over ? "all done" : "not all done", result.lost, result.doubled,
              result.torn, result.failed, result.sessions);
  std::printf("  silent for %.2f response time-outs until %" PRIu64 " us; longest access %.2f\n%s",
              in_timeouts(plan, result.silence_ns), result.silence_at_ns / 1000,
              in_timeouts(plan, result.longest_ns), result.log.c_str());
}

TEST(RmaStorm, LosesAndRepeatsNoAccess) {
  const uint64_t seeds = env_number("RIO_SOAK_SEEDS", 4);
  const uint64_t first = env_number("RIO_SOAK_FIRST", 1);
  uint64_t accesses = 0;
  uint64_t by_card = 0;
  uint64_t bad = 0;
  uint64_t moves = 0;
  double silence = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    RmaPlan plan;
    plan.seed = seed;
    const RmaResult result = RmaStorm(plan).run();
    accesses += result.accesses;
    by_card += result.by_card;
    moves += result.moves;
    silence = std::max(silence, in_timeouts(plan, result.silence_ns));
    const uint64_t wrong =
        result.lost + result.doubled + result.torn + result.failed + result.sessions;
    bad += wrong;
    if (!result.is_over || wrong != 0 || in_timeouts(plan, result.silence_ns) > 3) {
      report(plan, result);
    }
    EXPECT_TRUE(result.is_over) << "seed " << seed;
    EXPECT_EQ(wrong, 0u) << "seed " << seed;
  }
  std::printf("rails: %" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " accesses, %" PRIu64
              " wrong, %" PRIu64
              " times work left a path, silence %.3f response time-outs; %" PRIu64 " by cards\n",
              seeds, first, accesses, bad, moves, silence, by_card);
  EXPECT_GT(moves, 0u);
  EXPECT_GT(by_card, accesses / 8);
}

}  // namespace
}  // namespace rio::test
