// Stripes over rails of unequal speed, in virtual time: what part of the sum of all rails a
// transfer reaches.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

#include "lib/rail/stripe_plan.hpp"

namespace rio::rail {
namespace {

constexpr uint32_t kWindow = 128;
constexpr uint64_t kNever = UINT64_MAX;

struct Outcome {
  uint64_t end_ns = 0;
  uint32_t stripes = 0;     // taken
  uint32_t remembered = 0;  // most stripes that the plan remembered
  std::vector<uint32_t> brought;
};

/// A rail that sends one message after another.
struct Rail {
  uint64_t ns_per_message = 0;
  std::deque<uint64_t> granted_ns;  // for each message: when the sender may send it
  uint64_t done_ns = kNever;        // of the message under way

  void begin(uint64_t now) {
    if (done_ns == kNever && !granted_ns.empty()) {
      done_ns = std::max(now, granted_ns.front()) + ns_per_message;
      granted_ns.pop_front();
    }
  }
};

/// @param latency_ns from the receiver's grant to the sender's first message of it.
Outcome run(StripePlan& plan, const std::vector<uint64_t>& ns_per_message, uint64_t latency_ns) {
  std::vector<Rail> rails(ns_per_message.size());
  Outcome result;
  result.brought.resize(rails.size());
  uint64_t now = 0;
  const auto take = [&](uint32_t i) {
    for (Stripe s = plan.take(i, kWindow); s.count != 0; s = plan.take(i, kWindow)) {
      rails[i].granted_ns.insert(rails[i].granted_ns.end(), s.count, now + latency_ns);
      ++result.stripes;
    }
    result.remembered = std::max(result.remembered, plan.stripes());
  };
  for (uint32_t i = 0; i < rails.size(); ++i) {
    rails[i].ns_per_message = ns_per_message[i];
    take(i);
    rails[i].begin(now);
  }
  while (!plan.done()) {
    const auto next =
        std::min_element(rails.begin(), rails.end(),
                         [](const Rail& a, const Rail& b) { return a.done_ns < b.done_ns; });
    if (next->done_ns == kNever) {
      ADD_FAILURE() << "no rail has a message";
      return result;
    }
    now = next->done_ns;
    next->done_ns = kNever;
    const auto i = static_cast<uint32_t>(next - rails.begin());
    plan.arrived(i, 1);
    ++result.brought[i];
    take(i);
    next->begin(now);
  }
  result.end_ns = now;
  return result;
}

/// Part of the sum of the rails' rates that a transfer reached.
double part_of_sum(const Outcome& run, uint32_t messages,
                   const std::vector<uint64_t>& ns_per_message) {
  double sum = 0;
  for (const uint64_t ns : ns_per_message) {
    sum += 1.0 / static_cast<double>(ns);
  }
  return messages / sum / static_cast<double>(run.end_ns);
}

/// Rates that are right for rails of these times.
StripePlan::Rates rates_of(const std::vector<uint64_t>& ns_per_message) {
  StripePlan::Rates rates{};
  for (size_t i = 0; i < ns_per_message.size(); ++i) {
    rates[i] = static_cast<uint32_t>(1'000'000'000 / ns_per_message[i]);
  }
  return rates;
}

StripePlan::Rates equal_rates(size_t rails) {
  StripePlan::Rates rates{};
  std::fill_n(rates.begin(), rails, 1u);
  return rates;
}

// Messages of 4 KiB over links of 400 and 100 Mbit/s; a grant takes as long as a message.
const std::vector<uint64_t> kFourToOne{82'000, 328'000};
constexpr uint64_t kLatency = 82'000;

TEST(StripeRate, RailsOfFourToOneReachTheirSum) {
  for (const StripePlan::Rates& rates : {equal_rates(2), rates_of(kFourToOne)}) {
    StripePlan plan(256, kWindow, rates);
    const Outcome result = run(plan, kFourToOne, kLatency);
    EXPECT_GE(part_of_sum(result, 256, kFourToOne), 0.95);
    EXPECT_EQ(std::accumulate(result.brought.begin(), result.brought.end(), 0u), 256u);
    EXPECT_LE(result.stripes, 32u);
  }
}

TEST(StripeRate, EqualStripesReachTwiceTheSlowestRail) {
  StripePlan plan(256, kWindow, RailSet{0b11});
  const Outcome result = run(plan, kFourToOne, kLatency);
  EXPECT_EQ(result.brought, (std::vector<uint32_t>{128, 128}));
  EXPECT_NEAR(part_of_sum(result, 256, kFourToOne), 2.0 / 5, 0.01);
}

TEST(StripeRate, AWrongExpectationIsSoonOutweighed) {
  StripePlan::Rates wrong{};
  wrong[0] = 1;
  wrong[1] = 4;
  StripePlan plan(1024, kWindow, wrong);
  EXPECT_GE(part_of_sum(run(plan, kFourToOne, kLatency), 1024, kFourToOne), 0.95);
}

TEST(StripeRate, EqualRailsReachTheirSum) {
  for (const size_t rails : {1u, 2u, 4u, 8u}) {
    const std::vector<uint64_t> times(rails, 164'000);  // 200 Mbit/s
    StripePlan plan(256, kWindow, equal_rates(rails));
    const Outcome result = run(plan, times, kLatency);
    EXPECT_GE(part_of_sum(result, 256, times), 0.95) << rails << " rails";
  }
}

TEST(StripeRate, LongTransfersReachTheSumOfAnyRails) {
  const std::vector<uint64_t> times{41'000, 1'312'000, 82'000,  164'000,
                                    82'000, 41'000,    656'000, 328'000};
  for (const uint32_t messages : {1024u, 16384u}) {
    StripePlan plan(messages, kWindow, equal_rates(times.size()));
    const Outcome result = run(plan, times, kLatency);
    EXPECT_GE(part_of_sum(result, messages, times), messages > 1024 ? 0.98 : 0.9);
    EXPECT_LE(result.remembered, StripePlan::kStripes / 2);
  }
}

}  // namespace
}  // namespace rio::rail
