#include "lib/barrier/scheme.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

namespace rio::barrier {
namespace {

Grid grid(const std::vector<uint32_t>& lengths) {
  Grid made{.dimensions = static_cast<uint32_t>(lengths.size())};
  std::copy(lengths.begin(), lengths.end(), made.lengths.begin());
  return made;
}

std::string error_of(const char* text) {
  Scheme scheme = Tree{};
  std::string error;
  EXPECT_EQ(parse_scheme(text, &scheme, &error), -EINVAL) << text;
  EXPECT_EQ(scheme, Scheme{Tree{}}) << "set only on success";
  return error;
}

uint32_t rounds(const Scheme& scheme, uint32_t ranks) {
  uint32_t count = UINT32_MAX;
  EXPECT_EQ(count_rounds(scheme, ranks, &count), 0);
  return count;
}

TEST(Scheme, TextsAreReadAndWritten) {
  const std::vector<std::pair<const char*, Scheme>> texts = {
      {"classic", Classic{}},
      {"two-way", TwoWay{}},
      {"dimensions:8x4x4", Dimensions{grid({8, 4, 4})}},
      {"torus:100x100x100", Torus{grid({100, 100, 100})}},
      {"mesh:8x4", Mesh{grid({8, 4})}},
      {"mesh:7", Mesh{grid({7})}},
      {"torus:1x1x2", Torus{grid({1, 1, 2})}},
      {"tree", Tree{}},
      {"tree:2", Tree{2}},
  };
  for (const auto& [text, scheme] : texts) {
    Scheme read = Tree{7};
    std::string error;
    ASSERT_EQ(parse_scheme(text, &read, &error), 0) << error;
    EXPECT_EQ(read, scheme) << text;
    EXPECT_EQ(to_string(read), text);
  }
  Scheme read;
  std::string error;
  ASSERT_EQ(parse_scheme("tree:3", &read, &error), 0);
  EXPECT_EQ(read, Scheme{Tree{3}});
}

TEST(Scheme, WrongTextsAreRefusedWithAReason) {
  EXPECT_EQ(error_of("fast"),
            "schedule: 'fast' is no schedule; there are: classic, two-way, dimensions:8x4x4, "
            "torus:8x4x4, mesh:8x4, tree, tree:2 or tree:3");
  EXPECT_EQ(error_of("").substr(0, 29), "schedule: '' is no schedule; ");
  EXPECT_EQ(error_of("classic:2"), "schedule: 'classic:2': nothing may follow 'classic'");
  EXPECT_EQ(error_of("two-way:"), "schedule: 'two-way:': nothing may follow 'two-way'");
  EXPECT_EQ(error_of("mesh"),
            "schedule: 'mesh' needs the lengths of its dimensions, as in mesh:8x4x4");
  for (const char* const text :
       {"torus:", "torus:8x", "torus:x8", "torus:8xx4", "torus:8x0", "torus:8x-4", "torus:8 x4",
        "torus:8x4y", "torus:0x8", "torus:99999999999"}) {
    EXPECT_NE(error_of(text).find("is no list of lengths"), std::string::npos) << text;
  }
  EXPECT_EQ(error_of("torus:65536x65536"),
            "schedule: '65536x65536' has more nodes than ranks can number (4294967295)");
  EXPECT_EQ(error_of("mesh:1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1x1").substr(0, 39),
            "schedule: more than 20 dimensions in '1");
  for (const char* const text : {"tree:1", "tree:4", "tree:", "tree:two"}) {
    EXPECT_NE(error_of(text).find("the arity of a tree is 2 or 3"), std::string::npos) << text;
  }
}

TEST(Scheme, RoundsAtTheEdgesOfPowers) {
  EXPECT_EQ(rounds(Classic{}, 1), 0u);
  EXPECT_EQ(rounds(Classic{}, 2), 1u);
  EXPECT_EQ(rounds(Classic{}, 128), 7u);
  EXPECT_EQ(rounds(Classic{}, 129), 8u);
  EXPECT_EQ(rounds(Classic{}, 1u << 20), 20u);
  EXPECT_EQ(rounds(TwoWay{}, 1), 0u);
  EXPECT_EQ(rounds(TwoWay{}, 3), 1u);
  EXPECT_EQ(rounds(TwoWay{}, 4), 2u);
  EXPECT_EQ(rounds(TwoWay{}, 81), 4u);
  EXPECT_EQ(rounds(TwoWay{}, 128), 5u);
  EXPECT_EQ(rounds(TwoWay{}, 1'000'000), 13u);
  EXPECT_EQ(rounds(TwoWay{}, 3'486'784'401u), 20u);
  EXPECT_EQ(rounds(Dimensions{grid({8, 4, 4})}, 128), 6u);
  EXPECT_EQ(rounds(Torus{grid({8, 4, 4})}, 128), 5u);
  EXPECT_EQ(rounds(Torus{grid({100, 100, 100})}, 1'000'000), 15u);
  EXPECT_EQ(rounds(Torus{grid({1, 1})}, 1), 0u);
  EXPECT_EQ(rounds(Mesh{grid({8, 4})}, 32), 4u);
  EXPECT_EQ(rounds(Tree{}, 1), 0u);
  EXPECT_EQ(rounds(Tree{}, 3), 2u);
  EXPECT_EQ(rounds(Tree{}, 4), 4u);
  EXPECT_EQ(rounds(Tree{}, 59'049), 20u);
  EXPECT_EQ(rounds(Tree{2}, 3), 2u);
  EXPECT_EQ(rounds(Tree{2}, 4), 4u);
  EXPECT_EQ(rounds(Tree{2}, 2047), 20u);
}

TEST(Scheme, GroupsThatDoNotFitAreRefusedWithAReason) {
  struct Case {
    Scheme scheme;
    uint32_t ranks;
    int failure;
    const char* error;
  };
  const std::vector<Case> cases = {
      {Classic{}, (1u << 20) + 1, -E2BIG,
       "schedule: 'classic' takes 21 rounds for 1048577 ranks, and a descriptor has 20; use "
       "two-way or torus, or fewer ranks"},
      {TwoWay{}, 3'486'784'402u, -E2BIG,
       "schedule: 'two-way' takes 21 rounds for 3486784402 ranks, and a descriptor has 20; use "
       "two-way or torus, or fewer ranks"},
      {Tree{}, 59'050, -E2BIG,
       "schedule: 'tree' takes 22 rounds for 59050 ranks, and a descriptor has 20; use two-way or "
       "torus, or fewer ranks"},
      {Tree{2}, 2048, -E2BIG,
       "schedule: 'tree:2' takes 22 rounds for 2048 ranks, and a descriptor has 20; use two-way "
       "or torus, or fewer ranks"},
      {Torus{grid({2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4})}, 1u << 22, 0, ""},
      {Dimensions{grid({2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4})}, 1u << 22, -E2BIG,
       "schedule: 'dimensions:2x2x2x2x2x2x2x2x2x2x4x4x4x4x4x4' takes 22 rounds for 4194304 ranks, "
       "and a descriptor has 20; use two-way or torus, or fewer ranks"},
      {Dimensions{grid({8, 4, 4})}, 127, -EINVAL,
       "schedule: 'dimensions:8x4x4' has 128 nodes, and the group has 127 ranks; give lengths "
       "whose product is the number of ranks"},
      {Mesh{grid({8, 4})}, 33, -EINVAL,
       "schedule: 'mesh:8x4' has 32 nodes, and the group has 33 ranks; give lengths whose product "
       "is the number of ranks"},
      {Torus{}, 1, -EINVAL,
       "schedule: 'torus:' has 1 nodes, and the group has 1 ranks; give lengths whose product is "
       "the number of ranks"},
      {Tree{4}, 9, -EINVAL, "schedule: 'tree:4': the arity of a tree is 2 or 3"},
      {Tree{0}, 9, -EINVAL, "schedule: 'tree:0': the arity of a tree is 2 or 3"},
      {Classic{}, 0, -EINVAL, "schedule: 'classic': a group has at least 1 rank"},
      {Torus{grid({4})}, 0, -EINVAL, "schedule: 'torus:4': a group has at least 1 rank"},
  };
  for (const Case& one : cases) {
    std::string error;
    EXPECT_EQ(check_fits(one.scheme, one.ranks, &error), one.failure) << one.error;
    EXPECT_EQ(error, one.error);
    if (one.ranks != 0) {
      Schedule schedule;
      schedule.send = 99;
      EXPECT_EQ(make_schedule(one.scheme, one.ranks, 0, &schedule), one.failure) << one.error;
      EXPECT_EQ(schedule.send == 99, one.failure != 0) << "set only on success";
    }
  }
}

TEST(Scheme, ARankOutsideOfTheGroupIsRefused) {
  Schedule schedule;
  EXPECT_EQ(make_schedule(Classic{}, 5, 5, &schedule), -EINVAL);
  EXPECT_EQ(make_schedule(Classic{}, 0, 0, &schedule), -EINVAL);
  EXPECT_EQ(make_schedule(Torus{grid({2, 3})}, 6, 6, &schedule), -EINVAL);
}

TEST(Scheme, AGroupOfOneHasNoRounds) {
  for (const Scheme& scheme : std::vector<Scheme>{Classic{}, TwoWay{}, Dimensions{grid({1})},
                                                  Torus{grid({1, 1})}, Mesh{grid({1})}, Tree{}}) {
    Schedule schedule;
    schedule.add(0, 3, true, true);
    ASSERT_EQ(make_schedule(scheme, 1, 0, &schedule), 0);
    EXPECT_EQ(schedule, Schedule{}) << to_string(scheme);
  }
}

TEST(Scheme, AGroupOfTwoExchangesOnce) {
  for (const Scheme& scheme : std::vector<Scheme>{Classic{}, TwoWay{}, Dimensions{grid({1, 2})},
                                                  Torus{grid({2, 1})}, Mesh{grid({2})}}) {
    Schedule schedule;
    Schedule expected;
    expected.rounds = 1;
    expected.add(0, 0, true, true);
    ASSERT_EQ(make_schedule(scheme, 2, 1, &schedule), 0);
    EXPECT_EQ(schedule, expected) << to_string(scheme);
  }
}

TEST(Scheme, TwoDimensionsOfFourShareARoundBeforeTheLast) {
  Schedule schedule;
  ASSERT_EQ(make_schedule(Torus{grid({4, 4})}, 16, 0, &schedule), 0);
  Schedule expected;
  expected.rounds = 3;
  expected.add(0, 1, true, true);
  expected.add(0, 3, true, true);
  expected.add(1, 5, true, true);
  expected.add(1, 15, true, true);
  expected.add(2, 4, true, true);
  expected.add(2, 12, true, true);
  EXPECT_EQ(schedule, expected);
}

TEST(Scheme, TheLastNodeOfADimensionOfFourComesOneWay) {
  Schedule schedule;
  ASSERT_EQ(make_schedule(Torus{grid({4})}, 4, 1, &schedule), 0);
  Schedule expected;
  expected.rounds = 2;
  expected.add(0, 2, true, true);
  expected.add(0, 0, true, true);
  expected.add(1, 2, true, false);
  expected.add(1, 0, false, true);
  EXPECT_EQ(schedule, expected);
}

TEST(Scheme, MeshGoesAroundAFoldedRing) {
  // The ring of a line of five is 0 2 4 3 1.
  Schedule schedule;
  ASSERT_EQ(make_schedule(Mesh{grid({5})}, 5, 0, &schedule), 0);
  Schedule expected;
  expected.rounds = 2;
  expected.add(0, 2, true, true);
  expected.add(0, 1, true, true);
  expected.add(1, 2, true, true);
  expected.add(1, 1, true, true);
  EXPECT_EQ(schedule, expected);
  for (uint32_t length = 1; length < 100; ++length) {
    for (uint32_t at = 0; at < length; ++at) {
      EXPECT_EQ(unfolded(folded(at, length), length), at);
    }
  }
}

TEST(Scheme, TreeOfFourInTwoLevels) {
  // Pairs (0, 1) and (2, 3); 0 and 2 go on; 1 and 3 keep each other busy until the broadcast.
  Schedule root;
  ASSERT_EQ(make_schedule(Tree{}, 4, 0, &root), 0);
  Schedule expected;
  expected.rounds = 4;
  expected.add(0, 1, false, true);
  expected.add(1, 2, false, true);
  expected.add(2, 2, true, false);
  expected.add(3, 1, true, false);
  EXPECT_EQ(root, expected);
  EXPECT_EQ(root_of(Tree{}, 4), 0u);
  Schedule leaf;
  ASSERT_EQ(make_schedule(Tree{}, 4, 3, &leaf), 0);
  expected = Schedule{};
  expected.rounds = 4;
  expected.add(0, 2, true, false);
  expected.add(1, 1, true, true);
  expected.add(2, 1, true, true);
  expected.add(3, 2, false, true);
  EXPECT_EQ(leaf, expected);
}

TEST(Scheme, TheRootOfATreeIsInTheMiddle) {
  EXPECT_EQ(root_of(Tree{}, 1), 0u);
  EXPECT_EQ(root_of(Tree{}, 3), 1u);
  EXPECT_EQ(root_of(Tree{}, 9), 4u);
  EXPECT_EQ(root_of(Tree{}, 59'049), 29'524u);
}

TEST(Scheme, TwoWayAtTwiceAPowerOfThreeHasOnePeerInTheLastRound) {
  uint32_t ranks = 2;
  for (uint32_t s = 0; s < 13; ++s, ranks *= 3) {
    Schedule schedule;
    ASSERT_EQ(make_schedule(TwoWay{}, ranks, ranks - 1, &schedule), 0);
    EXPECT_EQ(schedule.rounds, s + 1);
    EXPECT_EQ(schedule.peer(s, 0), ranks / 2 - 1);
    EXPECT_EQ(schedule.peer(s, 1), kNoPeer);
    EXPECT_EQ(broken_rule(schedule, ranks, ranks - 1).rule, nullptr);
  }
}

}  // namespace
}  // namespace rio::barrier
