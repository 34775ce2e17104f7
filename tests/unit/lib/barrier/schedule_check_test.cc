#include "lib/barrier/schedule_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "tests/support/sanitizer.hpp"
#include "tests/support/seed.hpp"

namespace rio::barrier {
namespace {

constexpr uint32_t kMillion = 1'000'000;
/// The largest group of the tests at any size: a sanitizer makes them tens of times slower.
constexpr uint32_t kMost =
    test::kHasAddressSanitizer || test::kHasThreadSanitizer ? 50'000 : kMillion;

Grid grid(const std::vector<uint32_t>& lengths) {
  Grid made{.dimensions = static_cast<uint32_t>(lengths.size())};
  std::copy(lengths.begin(), lengths.end(), made.lengths.begin());
  return made;
}

void expect_good(const Scheme& scheme, uint32_t ranks) {
  std::string problem;
  EXPECT_EQ(check_scheme(scheme, ranks, &problem), 0)
      << to_string(scheme) << ", " << ranks << " ranks: " << problem;
}

/// A line of all ranks, and if they can be divided, a grid of two and of three dimensions.
std::vector<Grid> grids_of(uint32_t ranks, base::Random* random) {
  std::vector<Grid> grids = {grid({ranks})};
  std::vector<uint32_t> divisors;
  for (uint32_t divisor = 2; divisor < ranks && divisor <= 1000; ++divisor) {
    if (ranks % divisor == 0) {
      divisors.push_back(divisor);
    }
  }
  if (divisors.empty()) {
    return grids;
  }
  const uint32_t first = divisors[random->below(static_cast<uint32_t>(divisors.size()))];
  grids.push_back(grid({first, ranks / first}));
  const uint32_t second = divisors[random->below(static_cast<uint32_t>(divisors.size()))];
  if (ranks / first % second == 0) {
    grids.push_back(grid({second, ranks / first / second, 1, first}));
  }
  return grids;
}

TEST(ScheduleCheck, EverySchemeAtAllSizesUpToThreeHundred) {
  base::Random random(test::first_seed());
  for (uint32_t ranks = 1; ranks <= 300; ++ranks) {
    expect_good(Classic{}, ranks);
    expect_good(TwoWay{}, ranks);
    expect_good(Tree{2}, ranks);
    expect_good(Tree{3}, ranks);
    for (const Grid& of : grids_of(ranks, &random)) {
      expect_good(Dimensions{of}, ranks);
      expect_good(Torus{of}, ranks);
      expect_good(Mesh{of}, ranks);
    }
  }
}

TEST(ScheduleCheck, RandomSizesUpToAMillion) {
  base::Random random(test::first_seed());
  for (uint32_t i = 0; i < 100; ++i) {
    // Ten of any size, two for each kind of scheme; as many others of each order of magnitude.
    const uint32_t ranks =
        i % 11 == 0 ? 1 + random.below(kMost)
                    : static_cast<uint32_t>(std::pow(kMost, random.below(kMillion) * 1e-6));
    switch (i % 5) {
      case 0:
        expect_good(TwoWay{}, ranks);
        expect_good(Torus{grids_of(ranks, &random).back()}, ranks);
        break;
      case 1:
        expect_good(Classic{}, ranks);
        break;
      case 2:
        expect_good(Dimensions{grids_of(ranks, &random).back()}, ranks);
        break;
      case 3:
        expect_good(Mesh{grids_of(ranks, &random).back()}, ranks);
        break;
      default:
        expect_good(Tree{2}, 1 + ranks % 2047);
        expect_good(Tree{3}, 1 + ranks % 59'049);
        break;
    }
  }
}

TEST(ScheduleCheck, TheLargestSizes) {
  expect_good(TwoWay{}, kMost);
  expect_good(Tree{2}, 2047);
  expect_good(Tree{3}, std::min(59'049u, kMost));
  if (kMost == kMillion) {
    expect_good(Classic{}, 1u << 20);
    expect_good(Torus{grid({100, 100, 100})}, kMillion);
    expect_good(Mesh{grid({100, 100, 100})}, kMillion);
  }
}

TEST(ScheduleCheck, TwiceAPowerOfThree) {
  for (uint32_t ranks = 2; ranks <= kMost; ranks *= 3) {
    expect_good(TwoWay{}, ranks);
    expect_good(Dimensions{grid({ranks})}, ranks);
    expect_good(Torus{grid({ranks})}, ranks);
    expect_good(Mesh{grid({ranks})}, ranks);
  }
}

TEST(ScheduleCheck, ListsOfDimensions) {
  const std::vector<std::vector<uint32_t>> lists = {{1},
                                                    {1, 1, 1},
                                                    {2, 1},
                                                    {1, 2, 1, 2},
                                                    {4, 4},
                                                    {4, 1, 4},
                                                    {4, 4, 4},
                                                    {4, 4, 4, 4},
                                                    {4, 10},
                                                    {10, 4, 28},
                                                    {28, 2, 4},
                                                    {4, 3, 10, 5},
                                                    {2, 2, 2, 2},
                                                    {6, 18},
                                                    {54, 4, 2},
                                                    {9, 27},
                                                    {8, 4, 4},
                                                    {5, 7, 11},
                                                    {82, 4},
                                                    {3, 1, 4, 1, 5},
                                                    {10, 10, 10},
                                                    {16, 16},
                                                    {1, 1, 4},
                                                    {82, 28, 1, 10},
                                                    std::vector<uint32_t>(9, 2),
                                                    std::vector<uint32_t>(20, 1)};
  for (const std::vector<uint32_t>& list : lists) {
    const Grid of = grid(list);
    expect_good(Dimensions{of}, of.nodes());
    expect_good(Torus{of}, of.nodes());
    expect_good(Mesh{of}, of.nodes());
  }
}

TEST(ScheduleCheck, AMisfitIsRefused) {
  std::string problem;
  EXPECT_EQ(check_scheme(Classic{}, (1u << 20) + 1, &problem), -E2BIG);
  EXPECT_EQ(check_scheme(Torus{grid({3, 3})}, 8, &problem), -EINVAL);
  EXPECT_NE(problem.find("has 9 nodes"), std::string::npos) << problem;
}

/// One scheme and its broken variants.
struct Bench {
  Scheme scheme;
  uint32_t ranks;
  Lattice lattice;  ///< no dimensions: not for check_translates()
};

std::vector<Bench> benches() {
  return {
      {Classic{}, 13, {grid({13}), false}},
      {Classic{}, 16, {grid({16}), false}},
      {TwoWay{}, 27, {grid({27}), false}},
      {TwoWay{}, 18, {grid({18}), false}},
      {Dimensions{grid({6, 3})}, 18, {grid({6, 3}), false}},
      {Torus{grid({4, 4})}, 16, {grid({4, 4}), false}},
      {Torus{grid({8, 4, 4})}, 128, {grid({8, 4, 4}), false}},
      {Mesh{grid({5, 4})}, 20, {grid({5, 4}), true}},
      {Tree{2}, 21, {}},
      {Tree{3}, 25, {}},
  };
}

/// Whether the checks by sets of ranks accept the schedules.
bool is_accepted(const std::vector<Schedule>& schedules) {
  std::string problem;
  return check_consistent(schedules, &problem) == 0 && check_spread(schedules, &problem) == 0;
}

/// Whether the check for schemes of this kind accepts the schedules.
bool is_accepted_by_structure(const Bench& bench, const std::vector<Schedule>& schedules) {
  std::string problem;
  if (bench.lattice.grid.dimensions != 0) {
    const ScheduleOf schedule_of = [&](uint32_t rank, Schedule* out) {
      *out = schedules[rank];
      return 0;
    };
    return check_translates(bench.lattice, schedule_of, &problem) == 0;
  }
  const uint32_t root = root_of(std::get<Tree>(bench.scheme), bench.ranks);
  return check_consistent(schedules, &problem) == 0 && check_hub(schedules, root, &problem) == 0;
}

std::vector<Schedule> schedules_of(const Bench& bench) {
  std::vector<Schedule> schedules;
  const ScheduleOf schedule_of = [&](uint32_t rank, Schedule* out) {
    return make_schedule(bench.scheme, bench.ranks, rank, out);
  };
  EXPECT_EQ(make_all(bench.ranks, schedule_of, &schedules), 0);
  return schedules;
}

TEST(ScheduleCheck, EachBitThatIsMissingIsFound) {
  for (const Bench& bench : benches()) {
    std::vector<Schedule> schedules = schedules_of(bench);
    ASSERT_TRUE(is_accepted(schedules));
    ASSERT_TRUE(is_accepted_by_structure(bench, schedules));
    for (uint32_t rank = 0; rank < bench.ranks; ++rank) {
      const Schedule good = schedules[rank];
      for (uint32_t bit = 0; bit < kWays * good.rounds; ++bit) {
        for (uint64_t* const mask : {&schedules[rank].send, &schedules[rank].await}) {
          if ((*mask >> bit & 1) != 0) {
            *mask &= ~(uint64_t{1} << bit);
            EXPECT_FALSE(is_accepted(schedules)) << to_string(bench.scheme) << " " << rank;
            EXPECT_FALSE(is_accepted_by_structure(bench, schedules)) << to_string(bench.scheme);
            schedules[rank] = good;
          }
        }
      }
    }
  }
}

TEST(ScheduleCheck, EachChangedPeerIsFound) {
  base::Random random(test::first_seed());
  for (const Bench& bench : benches()) {
    std::vector<Schedule> schedules = schedules_of(bench);
    for (uint32_t rank = 0; rank < bench.ranks; ++rank) {
      for (uint32_t i = 0; i < schedules[rank].peers.size(); ++i) {
        uint32_t& peer = schedules[rank].peers[i];
        const uint32_t good = peer;
        peer = random.below(bench.ranks + 2);
        if (peer != good) {
          EXPECT_FALSE(is_accepted(schedules)) << to_string(bench.scheme) << " " << rank;
          EXPECT_FALSE(is_accepted_by_structure(bench, schedules)) << to_string(bench.scheme);
        }
        peer = good;
      }
    }
  }
}

/// Take a notification out at both ends: the schedules stay consistent, but some arrival does not
/// spread to all.
bool take_out(std::vector<Schedule>* schedules, uint32_t rank, uint32_t round, uint32_t way) {
  Schedule& receiver = (*schedules)[rank];
  if (!receiver.awaits(round, way)) {
    return false;
  }
  const uint32_t sender_rank = receiver.peer(round, way);
  Schedule& sender = (*schedules)[sender_rank];
  const uint32_t back = sender.peer(round, 0) == rank && sender.sends(round, 0) ? 0 : 1;
  receiver.await &= ~peer_bit(round, way);
  sender.send &= ~peer_bit(round, back);
  for (auto& [schedule, at] : {std::pair{&receiver, way}, std::pair{&sender, back}}) {
    if (((schedule->send | schedule->await) & peer_bit(round, at)) == 0) {
      schedule->peers[kWays * round + at] = kNoPeer;
    }
  }
  return true;
}

TEST(ScheduleCheck, ANotificationThatIsMissingAtBothEndsIsFound) {
  // In groups of a power, each notification is needed. In a round with two peers, the other one
  // keeps the round from being empty.
  for (const Bench& bench :
       std::vector<Bench>{{TwoWay{}, 27, {grid({27}), false}},
                          {TwoWay{}, 9, {grid({9}), false}},
                          {Dimensions{grid({9, 3})}, 27, {grid({9, 3}), false}},
                          {Mesh{grid({9, 3})}, 27, {grid({9, 3}), true}},
                          {Classic{}, 16, {grid({16}), false}}}) {
    uint32_t taken = 0;
    for (uint32_t rank = 0; rank < bench.ranks; ++rank) {
      for (uint32_t place = 0; place < kWays * kRoundsMax; ++place) {
        std::vector<Schedule> schedules = schedules_of(bench);
        if (take_out(&schedules, rank, place / kWays, place % kWays)) {
          ++taken;
          std::string problem;
          EXPECT_EQ(check_spread(schedules, &problem), -EINVAL) << to_string(bench.scheme);
          EXPECT_FALSE(is_accepted_by_structure(bench, schedules)) << to_string(bench.scheme);
          EXPECT_EQ(check_hub(schedules, 0, &problem), -EINVAL) << to_string(bench.scheme);
        }
      }
    }
    EXPECT_GE(taken, bench.ranks * 2);
  }
}

TEST(ScheduleCheck, TranslatesOfAScheduleThatMissesARankAreRefused) {
  // Strides 1, 3, 7 reach 11 ranks on each side: a group of 24 has one more.
  const auto strides = [](uint32_t ranks) -> ScheduleOf {
    return [=](uint32_t rank, Schedule* out) {
      *out = Schedule{};
      out->rounds = 3;
      uint32_t round = 0;
      for (const uint32_t stride : {1u, 3u, 7u}) {
        out->add(round, (rank + stride) % ranks, true, true);
        out->add(round++, (rank + ranks - stride) % ranks, true, true);
      }
      return 0;
    };
  };
  std::string problem;
  EXPECT_EQ(check_translates({grid({23}), false}, strides(23), &problem), 0) << problem;
  EXPECT_EQ(check_translates({grid({24}), false}, strides(24), &problem), -EINVAL);
  EXPECT_EQ(problem, "rank 0 leaves without knowing that rank 12 arrived");
  std::vector<Schedule> schedules;
  ASSERT_EQ(make_all(24, strides(24), &schedules), 0);
  EXPECT_EQ(check_consistent(schedules, &problem), 0);
  EXPECT_EQ(check_spread(schedules, &problem), -EINVAL);
  EXPECT_EQ(problem, "rank 0 leaves without knowing that rank 12 arrived");
}

TEST(ScheduleCheck, TranslatesThatNoMemberAwaitsAreRefused) {
  const ScheduleOf one_way = [](uint32_t rank, Schedule* out) {
    *out = Schedule{};
    out->rounds = 1;
    out->add(0, (rank + 1) % 3, true, true);
    return 0;
  };
  std::string problem;
  EXPECT_EQ(check_translates({grid({3}), false}, one_way, &problem), -EINVAL);
  EXPECT_NE(problem.find("no counterpart"), std::string::npos) << problem;
}

TEST(ScheduleCheck, OneBrokenScheduleOfAMillionIsFound) {
  const uint32_t ranks = kMost;
  const auto broken = [=](uint32_t place) -> ScheduleOf {
    return [=](uint32_t rank, Schedule* out) {
      const int failure = make_schedule(TwoWay{}, ranks, rank, out);
      if (rank == ranks / 7 * 5) {
        out->peers[place] = (out->peers[place] + 1) % ranks;
      }
      return failure;
    };
  };
  std::string problem;
  EXPECT_EQ(check_translates({grid({ranks}), false}, broken(5), &problem), -EINVAL);
  EXPECT_NE(problem.find("round 2: the peer is "), std::string::npos) << problem;
}

TEST(ScheduleCheck, ErrorsOfAMakerArePassedOn) {
  const ScheduleOf fails = [](uint32_t rank, Schedule* out) {
    return rank == 2 ? -E2BIG : make_schedule(TwoWay{}, 3, rank, out);
  };
  std::vector<Schedule> schedules;
  EXPECT_EQ(make_all(3, fails, &schedules), -E2BIG);
  EXPECT_TRUE(schedules.empty());
  std::string problem;
  EXPECT_EQ(check_translates({grid({3}), false}, fails, &problem), -EINVAL);
  EXPECT_EQ(problem, "rank 2 has no schedule");
  EXPECT_EQ(check_translates({}, fails, &problem), -EINVAL);
}

TEST(ScheduleCheck, AHubMustHearAndBeHeard) {
  // A chain: rank 2 hears of all, and no member hears from it.
  std::vector<Schedule> schedules(3);
  schedules[0].rounds = 1;
  schedules[0].add(0, 1, true, false);
  schedules[1].rounds = 2;
  schedules[1].add(0, 0, false, true);
  schedules[1].add(1, 2, true, false);
  schedules[2].rounds = 2;
  schedules[2].add(0, 0, false, true);
  schedules[0].add(0, 2, true, false);
  schedules[2].add(1, 1, false, true);
  std::string problem;
  ASSERT_EQ(check_consistent(schedules, &problem), 0) << problem;
  EXPECT_EQ(check_hub(schedules, 2, &problem), -EINVAL);
  EXPECT_EQ(problem,
            "rank 0 leaves without hearing from rank 2, which knows of every arrival from round 2 "
            "on");
  EXPECT_EQ(check_hub(schedules, 0, &problem), -EINVAL);
  EXPECT_EQ(problem, "rank 0 leaves without knowing of every arrival");
}

}  // namespace
}  // namespace rio::barrier
