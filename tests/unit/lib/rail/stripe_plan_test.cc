#include "lib/rail/stripe_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "base/random.hpp"
#include "tests/support/seed.hpp"

namespace rio::rail {
namespace {

constexpr uint32_t kWindow = StripePlan::kSentAhead;
constexpr uint32_t kAll = UINT32_MAX;

TEST(StripePlan, EqualRegionsStayWithTheirRails) {
  StripePlan plan(100, 20, RailSet{0b1011});
  EXPECT_EQ(plan.take(0, kAll), (Stripe{0, 20}));
  EXPECT_EQ(plan.take(1, kAll), (Stripe{33, 20}));
  EXPECT_EQ(plan.take(3, kAll), (Stripe{66, 20}));
  EXPECT_EQ(plan.take(2, kAll).count, 0u);
  EXPECT_EQ(plan.take(0, kAll).count, 0u);
  plan.arrived(0, 9);
  EXPECT_EQ(plan.take(0, kAll).count, 0u);
  plan.arrived(0, 1);
  EXPECT_EQ(plan.take(0, 4), (Stripe{20, 4}));
  plan.arrived(0, 14);
  EXPECT_EQ(plan.take(0, kAll), (Stripe{24, 9}));
  plan.arrived(0, 9);
  EXPECT_EQ(plan.take(0, kAll).count, 0u);  // the rest is of others
  EXPECT_EQ(plan.out(0), 0u);
  EXPECT_TRUE(plan.has_left());
}

TEST(StripePlan, TheRegionOfAFailedRailGoesToTheOthers) {
  StripePlan plan(90, 30, RailSet{0b111});
  ASSERT_EQ(plan.take(0, kAll), (Stripe{0, 30}));
  plan.arrived(0, 30);
  EXPECT_EQ(plan.take(0, kAll).count, 0u);
  plan.give_back(1, 0);  // it has taken nothing
  std::vector<bool> taken(90);
  for (Stripe s = plan.take(0, kAll); s.count != 0; s = plan.take(0, kAll)) {
    std::fill_n(taken.begin() + s.first, s.count, true);
    plan.arrived(0, s.count);
  }
  EXPECT_EQ(std::count(taken.begin(), taken.begin() + 30, true), 0);
  EXPECT_EQ(std::count(taken.begin() + 30, taken.begin() + 60, true), 30);
  EXPECT_EQ(std::count(taken.begin() + 60, taken.end(), true), 0);
}

TEST(StripePlan, RegionsByRateAreTakenOver) {
  StripePlan::Rates rates{};
  rates[2] = 3;
  rates[5] = 1;
  StripePlan plan(400, kWindow, rates);
  EXPECT_EQ(plan.take(5, 1), (Stripe{300, 1}));
  EXPECT_EQ(plan.take(2, 1), (Stripe{0, 1}));
  const Stripe other = plan.take(7, 1);  // expected to take no part
  EXPECT_GT(other.first, 150u);
  EXPECT_LT(other.first, 300u);
  for (const uint32_t rail : {2u, 5u}) {
    plan.arrived(rail, 1);
  }
  uint32_t sum = 3;
  for (Stripe s = plan.take(2, kAll); s.count != 0; s = plan.take(2, kAll)) {
    plan.arrived(2, s.count);
    sum += s.count;
  }
  EXPECT_EQ(sum, 400u);
  EXPECT_FALSE(plan.has_left());
  EXPECT_FALSE(plan.done());
  plan.arrived(7, 1);
  EXPECT_TRUE(plan.done());
}

TEST(StripePlan, StripesThatCameBackGoFirstTheLowestOfThemFirst) {
  StripePlan plan(200, 50, RailSet{0b11});
  ASSERT_EQ(plan.take(1, 10), (Stripe{100, 10}));
  ASSERT_EQ(plan.take(0, 20), (Stripe{0, 20}));
  plan.give_back(1, 0);
  plan.give_back(0, 0);
  EXPECT_EQ(plan.take(1, 5), (Stripe{0, 5}));
  EXPECT_EQ(plan.take(1, 50), (Stripe{5, 15}));
  EXPECT_EQ(plan.take(1, 50), (Stripe{100, 10}));
  EXPECT_EQ(plan.out(1), 30u);
}

TEST(StripePlan, AFailedAttemptKeepsItsLeadingMessages) {
  StripePlan plan(100, 50, RailSet{0b11});
  ASSERT_EQ(plan.take(0, 20), (Stripe{0, 20}));
  plan.arrived(0, 8);
  EXPECT_EQ(plan.arrived_of_all(), 8u);
  plan.give_back(0, 5);
  EXPECT_EQ(plan.arrived_of_all(), 5u);
  EXPECT_EQ(plan.out(0), 0u);
  EXPECT_EQ(plan.take(1, kAll), (Stripe{5, 15}));
  plan.arrived(1, 2);
  plan.give_back(1, kAll);  // the sender cannot know of more than have arrived
  EXPECT_EQ(plan.arrived_of_all(), 7u);
  EXPECT_EQ(plan.take(0, kAll), (Stripe{7, 13}));
}

TEST(StripePlan, StripesThatTouchAreOneWhenTheyComeBack) {
  StripePlan plan(100, 50, RailSet{0b01});
  ASSERT_EQ(plan.take(0, 30), (Stripe{0, 30}));
  plan.give_back(0, 0);
  ASSERT_EQ(plan.take(2, 10), (Stripe{0, 10}));
  ASSERT_EQ(plan.take(3, 10), (Stripe{10, 10}));
  plan.give_back(3, 0);
  plan.give_back(2, 0);
  EXPECT_EQ(plan.stripes(), 1u);
  EXPECT_EQ(plan.take(4, kAll), (Stripe{0, 30}));
}

TEST(StripePlan, MessagesFarBehindTheLastArrivalAreKeptWithoutTheSendersWord) {
  StripePlan plan(1000, kWindow, RailSet{0b01});
  uint32_t taken = 0;
  while (taken < 500) {
    taken += plan.take(0, kAll).count;
    plan.arrived(0, std::min(40u, plan.out(0) - 1));
  }
  const uint32_t arrived = plan.arrived_of_all();
  ASSERT_GT(arrived, kWindow);
  plan.give_back(0, 0);
  EXPECT_EQ(plan.arrived_of_all(), arrived - kWindow);
  EXPECT_EQ(plan.take(0, 1), (Stripe{arrived - kWindow, 1}));
}

TEST(StripePlan, AllAreKeptIfAllHaveArrived) {
  StripePlan plan(100, 50, RailSet{0b01});
  ASSERT_EQ(plan.take(0, 20).count, 20u);
  plan.arrived(0, 20);
  EXPECT_EQ(plan.stripes(), 0u);
  plan.give_back(0, 0);
  EXPECT_EQ(plan.arrived_of_all(), 20u);
}

TEST(StripePlan, WaitsAtTheBoundAndGoesOn) {
  StripePlan plan(400, kWindow, RailSet{0b11});
  ASSERT_EQ(plan.take(0, 126), (Stripe{0, 126}));
  plan.give_back(0, 0);
  // Rail 0 holds every second message, and rail 1 brings the others.
  ASSERT_EQ(plan.take(0, 2), (Stripe{0, 2}));
  for (uint32_t i = 0; i < StripePlan::kStripes - 2; ++i) {
    ASSERT_EQ(plan.take(1, 1).count, 1u);
    plan.arrived(1, 1);
    ASSERT_EQ(plan.take(0, 1).count, 1u);
  }
  ASSERT_EQ(plan.take(1, 2), (Stripe{200, 2}));
  plan.give_back(1, 0);
  EXPECT_EQ(plan.stripes(), StripePlan::kStripes);
  EXPECT_EQ(plan.take(2, 1).count, 0u);  // it would be one more
  EXPECT_TRUE(plan.has_left());
  EXPECT_EQ(plan.take(2, 2), (Stripe{200, 2}));
  EXPECT_EQ(plan.take(1, 1).count, 0u);
  plan.give_back(2, 0);
  plan.give_back(0, 0);
  EXPECT_EQ(plan.stripes(), StripePlan::kStripes);
  EXPECT_EQ(plan.take(2, 1), (Stripe{0, 1}));  // no other rail has one
  EXPECT_EQ(plan.stripes(), StripePlan::kStripes + 1);
  plan.arrived(2, 1);
  while (!plan.done()) {
    const uint32_t n = plan.take(2, 1).count;
    ASSERT_EQ(n, 1u);
    plan.arrived(2, n);
  }
}

/// The plan kept message by message.
struct Plain {
  explicit Plain(uint32_t messages) : owner(messages, kFree) {}

  static constexpr int kFree = -1;
  static constexpr int kArrived = -2;

  struct Attempt {
    std::vector<uint32_t> messages;  // in the order of sending
    uint32_t arrived = 0;
    uint32_t certain = 0;
  };

  void take(int rail, Stripe stripe) {
    for (uint32_t m = stripe.first; m < stripe.end(); ++m) {
      ASSERT_LT(m, owner.size());
      ASSERT_EQ(owner[m], kFree) << m;
      owner[m] = rail;
      attempts[static_cast<size_t>(rail)].messages.push_back(m);
    }
  }
  void arrive(size_t rail, uint32_t n) {
    Attempt& a = attempts[rail];
    a.arrived += n;
    const auto size = static_cast<uint32_t>(a.messages.size());
    const uint32_t sure = a.arrived == size ? size : a.arrived > kWindow ? a.arrived - kWindow : 0;
    a.certain = std::max(a.certain, sure);
  }
  void give_back(size_t rail, uint32_t kept) {
    Attempt& a = attempts[rail];
    const uint32_t stays = std::max(std::min(kept, a.arrived), a.certain);
    for (uint32_t i = 0; i < a.messages.size(); ++i) {
      owner[a.messages[i]] = i < stays ? kArrived : kFree;
    }
    a = {};
  }
  [[nodiscard]] uint32_t arrived() const {
    auto n = static_cast<uint32_t>(std::count(owner.begin(), owner.end(), kArrived));
    for (const Attempt& a : attempts) {
      n += a.arrived;
    }
    return n;
  }
  [[nodiscard]] bool has_free() const {
    return std::find(owner.begin(), owner.end(), kFree) != owner.end();
  }

  std::vector<int> owner;
  std::array<Attempt, kRails> attempts;
};

TEST(StripePlan, AgreesWithAPlainListUnderRandomFailures) {
  base::Random random(test::first_seed());
  for (int round = 0; round < 150; ++round) {
    const uint32_t messages = 1 + random.below(round % 2 == 0 ? 3000 : 60);
    const uint32_t window = 1 + random.below(kWindow);
    const bool is_equal = random.below(2) == 0;
    StripePlan::Rates rates{};
    for (uint32_t& rate : rates) {
      rate = random.below(3);
    }
    rates[random.below(kRails)] = 1;
    StripePlan plan = is_equal ? StripePlan(messages, window, RailSet{1 + random.below(255)})
                               : StripePlan(messages, window, rates);
    Plain plain(messages);
    int steps = 0;
    for (; !plan.done(); ++steps) {
      ASSERT_LT(steps, 200'000);
      const uint32_t rail = random.below(kRails);
      const uint32_t most = random.below(8) == 0 ? random.below(3) : kWindow;
      const bool idle = plan.out(rail) == 0;
      const Stripe stripe = plan.take(rail, most);
      ASSERT_LE(plan.out(rail), window);
      ASSERT_LE(stripe.count, most);
      if (idle && most != 0 && !is_equal && plain.has_free() &&
          plan.stripes() < StripePlan::kStripes) {
        ASSERT_NE(stripe.count, 0u);
      }
      plain.take(static_cast<int>(rail), stripe);
      const uint32_t n = random.below(plan.out(rail) + 1);
      plan.arrived(rail, n);
      plain.arrive(rail, n);
      if (random.below(16) == 0 && steps < 2000) {
        const uint32_t kept = random.below(300);
        plan.give_back(rail, kept);
        plain.give_back(rail, kept);
      }
      if (steps == 2000 || plan.stripes() >= StripePlan::kStripes) {
        for (uint32_t i = 0; i < kRails; ++i) {  // all fail; equal regions may be taken over
          plan.give_back(i, 0);
          plain.give_back(i, 0);
        }
      }
      ASSERT_EQ(plan.arrived_of_all(), plain.arrived());
      ASSERT_EQ(plan.has_left(), plain.has_free());
      ASSERT_LE(plan.stripes(), StripePlan::kStripes + 1);
    }
    EXPECT_FALSE(plain.has_free());
    EXPECT_EQ(plain.arrived(), messages);
  }
}

}  // namespace
}  // namespace rio::rail
