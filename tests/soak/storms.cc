#include "tests/soak/storms.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "tests/support/env_number.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kLimitNs = 20'000'000'000;
constexpr uint64_t kUsNs = 1000;
constexpr double kSilentMost = 3;  // response time-outs

double in_timeouts(const StormPlan& plan, uint64_t ns) {
  return static_cast<double>(ns) / static_cast<double>(plan.timeout_us * kUsNs);
}

void report(const StormPlan& plan, const StormResult& result) {
  std::printf("seed %" PRIu64 ": %s; lost %" PRIu64 ", wrong %" PRIu64 ", torn %" PRIu64
              ", failed %" PRIu64 ", sessions ended %" PRIu64 "\n",
              plan.seed, result.is_over ? "all done" : "not all done", result.lost, result.wrong,
              result.torn, result.failed, result.sessions);
  std::printf("  silent for %.2f response time-outs until %" PRIu64 " us; longest %.2f\n%s",
              in_timeouts(plan, result.silence_ns), result.silence_at_ns / kUsNs,
              in_timeouts(plan, result.longest_ns), result.log.c_str());
}

}  // namespace

void StormResult::done(uint64_t now_ns, uint64_t last_ns, uint64_t begun_ns) {
  const uint64_t since_ns = std::max(last_ns, begun_ns);
  if (now_ns - since_ns > silence_ns) {
    silence_ns = now_ns - since_ns;
    silence_at_ns = now_ns;
  }
  longest_ns = std::max(longest_ns, now_ns - begun_ns);
}

Storm::Storm(const StormPlan& plan) : plan_(plan), random_(plan.seed) {
  if (RailCuts::create_hosts(&hosts_, &result_.log) != 0) {
    ++result_.failed;
    return;
  }
  cuts_ = std::make_unique<RailCuts>(*hosts_, plan.timeout_us);
}

uint64_t Storm::draw_next_ns() {
  const uint64_t gap_ns = plan_.timeout_us * kUsNs * (below(8) == 0 ? 20 : 1);
  return hosts_->now_ns() + (below(2) == 0 ? below(gap_ns) : 0);
}

void Storm::run(const std::function<const msg::MessagePort&(uint32_t host)>& port,
                const std::function<uint32_t(uint32_t host)>& turn,
                const std::function<bool()>& is_over) {
  const auto has_paths = [&] {
    return RailCuts::has_paths(0, port(0)) && RailCuts::has_paths(1, port(1));
  };
  if (!hosts_->run(turn, has_paths, kLimitNs)) {
    result_.log += "  no paths\n";
    return;
  }
  cuts_->plan(plan_.cuts, random_);
  end_ns_ = cuts_->end_ns();
  result_.is_over = hosts_->run(
                        turn, [&] { return is_over() || result_.failed > 0; }, kLimitNs) &&
                    result_.failed == 0;
  result_.log += cuts_->log();
  for (uint32_t host = 0; host < kHosts; ++host) {
    result_.sessions += port(host).sessions_ended() + port(host).stats().cut_off;
    result_.moves += RailCuts::moves(host, port(host));
  }
}

StormResult run_storms(const char* items, const std::function<StormResult(const StormPlan&)>& run) {
  const uint64_t seeds = env_number("RIO_SOAK_SEEDS", 4);
  const uint64_t first = env_number("RIO_SOAK_FIRST", 1);
  StormResult all;
  uint64_t bad = 0;
  double silence = 0;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    StormPlan plan;
    plan.seed = seed;
    const StormResult result = run(plan);
    const double silent = in_timeouts(plan, result.silence_ns);
    all.items += result.items;
    all.by_card += result.by_card;
    all.moves += result.moves;
    bad += result.bad();
    silence = std::max(silence, silent);
    if (!result.is_over || result.bad() != 0 || silent > kSilentMost) {
      report(plan, result);
    }
    EXPECT_TRUE(result.is_over) << "seed " << seed;
    EXPECT_EQ(result.bad(), 0u) << "seed " << seed;
    EXPECT_LE(silent, kSilentMost) << "seed " << seed;
  }
  std::printf("rails: %" PRIu64 " seeds from %" PRIu64 ", %" PRIu64 " %s, %" PRIu64
              " wrong, %" PRIu64 " times work left a path, silence %.3f response time-outs\n",
              seeds, first, all.items, items, bad, all.moves, silence);
  EXPECT_GT(all.moves, 0u);
  return all;
}

}  // namespace rio::test
