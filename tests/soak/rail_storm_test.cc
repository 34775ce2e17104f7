// Rails that are cut and mended in the middle of traffic: no message is lost, doubled, out of order
// or torn, and no application is silent for more than three response time-outs.
#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "tests/soak/rail_storm.hpp"
#include "tests/support/env_number.hpp"

namespace rio::test {
namespace {

constexpr double kSilentMost = 3;  // response time-outs

double silence_of(const StormPlan& plan, const StormResult& result) {
  return static_cast<double>(result.silence_ns) / (plan.timeout_us * 1e3);
}

void report(const StormPlan& plan, const StormResult& result) {
  std::printf("seed %" PRIu64 ": %s; lost %" PRIu64 ", wrong %" PRIu64 ", torn %" PRIu64
              ", failed %" PRIu64 ", sessions ended %" PRIu64 "\n",
              plan.seed, result.is_over ? "all arrived" : "not all arrived", result.lost,
              result.wrong, result.torn, result.failed, result.sessions);
  std::printf("  silent for %.2f response time-outs until %" PRIu64
              " us; longest way of a message %.2f\n%s",
              silence_of(plan, result), result.silence_at_ns / 1000,
              static_cast<double>(result.longest_ns) / (plan.timeout_us * 1e3), result.log.c_str());
}

/// @param bytes_most of a message.
void run_storms(uint32_t bytes_most) {
  const uint64_t seeds = env_number("RIO_SOAK_SEEDS", 4);
  const uint64_t first = env_number("RIO_SOAK_FIRST", 1);
  uint64_t messages = 0;
  uint64_t bad = 0;
  uint64_t moves = 0;
  double silence = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    StormPlan plan;
    plan.seed = seed;
    plan.bytes_most = bytes_most;
    const StormResult result = RailStorm(plan).run();
    messages += result.messages;
    moves += result.moves;
    silence = std::max(silence, silence_of(plan, result));
    const uint64_t wrong =
        result.lost + result.wrong + result.torn + result.failed + result.sessions;
    bad += wrong;
    if (!result.is_over || wrong != 0 || silence_of(plan, result) > kSilentMost) {
      report(plan, result);
    }
    EXPECT_TRUE(result.is_over) << "seed " << seed;
    EXPECT_EQ(wrong, 0u) << "seed " << seed;
    EXPECT_LE(silence_of(plan, result), kSilentMost) << "seed " << seed;
  }
  std::printf("rails: %" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " messages, %" PRIu64
              " wrong, %" PRIu64 " times work left a path, silence %.3f response time-outs\n",
              seeds, first, messages, bad, moves, silence);
  EXPECT_GT(moves, 0u);
}

TEST(RailStorm, LosesNoSmallMessage) {
  run_storms(256);
}

TEST(RailStorm, LosesNoMessageOfAnySize) {
  run_storms(100'000);
}

}  // namespace
}  // namespace rio::test
