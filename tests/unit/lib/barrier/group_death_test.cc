// Groups in which a member dies at any step: all others are told, with its rank, and none passes a
// barrier at which a living member has not arrived.
#include "base/random.hpp"
#include "tests/unit/lib/barrier/group_fixture.hpp"

namespace rio::barrier::test {
namespace {

class GroupDeath : public GroupWays {
 protected:
  /// Expects that the group has failed at all living members, because of this rank.
  void expect_told(const Groups& groups, uint32_t dead) {
    ASSERT_TRUE(all_fail(groups));
    for (const auto& group : groups) {
      if (group != nullptr) {
        EXPECT_EQ(group->failure().rank, dead);
        EXPECT_EQ(group->failure().error, -ECONNRESET);
        EXPECT_EQ(group->arrive(), -ECONNRESET);
        EXPECT_EQ(group->ready(), -ECONNRESET);
      }
    }
  }
};

TEST_P(GroupDeath, BeforeDuringAndBetweenBarriers) {
  const Scheme schemes[] = {Classic{}, TwoWay{}, Tree{3}};
  for (uint32_t round = 0; round < 12; ++round) {
    open(5);
    GroupOptions options;
    options.scheme = schemes[round % 3];
    Groups groups = begin_all(first(5), options);
    ASSERT_TRUE(make_ready(groups));
    ASSERT_TRUE(meet(groups));
    const uint32_t dead = round % 5;
    base::Random random(round);
    bool has_arrived[5] = {};
    for (uint32_t rank = 0; rank < 5; ++rank) {
      // Some have arrived, among them perhaps the one that dies.
      has_arrived[rank] = random.below(2) == 0;
      if (has_arrived[rank]) {
        ASSERT_EQ(groups[rank]->arrive(), 0);
      }
    }
    uint32_t turns_left = 1 + random.below(20);
    ASSERT_TRUE(work([&] { return --turns_left == 0; }));
    const bool all_arrived = std::all_of(has_arrived, has_arrived + 5, [](bool it) { return it; });
    kill(dead, groups[dead]);
    expect_told(groups, dead);
    for (uint32_t rank = 0; rank < 5; ++rank) {
      if (rank != dead && has_arrived[rank] && !all_arrived) {
        EXPECT_EQ(groups[rank]->test(), -ECONNRESET);
      }
    }
    groups.clear();
    places_.clear();
    ports_.clear();
  }
}

TEST_P(GroupDeath, WhileTheGroupIsCreated) {
  for (uint32_t step = 0; step < 24; ++step) {
    open(4);
    GroupOptions options;
    options.create_ms = 200;  // a member that has not joined yet is waited for
    Groups groups = begin_all(first(4), options);
    uint32_t turns_left = 1 + step * 2;
    ASSERT_TRUE(work([&] { return --turns_left == 0; }));
    const uint32_t dead = step % 4;
    const bool was_ready = groups[dead]->ready() == 1;
    kill(dead, groups[dead]);
    ASSERT_TRUE(all_fail(groups)) << step;
    for (const auto& group : groups) {
      if (group != nullptr) {
        EXPECT_EQ(group->failure().rank, dead) << step << (was_ready ? ", ready" : "");
      }
    }
    groups.clear();
    places_.clear();
    ports_.clear();
  }
}

TEST_P(GroupDeath, OtherGroupsGoOn) {
  open(4);
  GroupOptions second;
  second.key = 1;
  Groups all = begin_all(first(4));
  const Groups three = begin_all(first(3), second);
  ASSERT_TRUE(make_ready(all));
  ASSERT_TRUE(make_ready(three));
  kill(3, all[3]);
  expect_told(all, 3);
  for (uint32_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(meet(three));
  }
}

TEST_P(GroupDeath, AMemberThatIsStartedAnewMayBeInTheNextGroup) {
  open(3);
  for (uint32_t i = 0; i < 3; ++i) {
    Groups groups = begin_all(first(3));
    ASSERT_TRUE(make_ready(groups)) << i;
    ASSERT_TRUE(meet(groups));
    kill(2, groups[2]);
    places_.pop_back();
    open_one(3);
    // The new process creates the group while the others still have the old one.
    groups[2] = begin(first(3), 2);
    ASSERT_TRUE(all_fail({}));
    ASSERT_TRUE(
        work([&] { return groups[0]->failure().error != 0 && groups[1]->failure().error != 0; }));
    EXPECT_EQ(groups[0]->failure().rank, 2u);
    groups[0].reset();
    groups[1].reset();
    groups[0] = begin(first(3), 0);
    groups[1] = begin(first(3), 1);
    ASSERT_TRUE(make_ready(groups)) << i;
    ASSERT_TRUE(meet(groups));
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, GroupDeath, testing::Values(Way::kSoftware, Way::kCard));

}  // namespace
}  // namespace rio::barrier::test
