// Groups over emulated cards of one process, by their engines and in software: creation, barriers,
// and members that leave.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "lib/barrier/early_joins.hpp"
#include "tests/unit/lib/barrier/group_fixture.hpp"

namespace rio::barrier::test {
namespace {

GroupOptions with_key(uint64_t key) {
  GroupOptions options;
  options.key = key;
  return options;
}

TEST_P(GroupWays, GroupsOfEachSizeMeetManyTimes) {
  open(8);
  const Scheme schemes[] = {Classic{}, TwoWay{}, Tree{3}};
  uint64_t key = 0;
  for (const uint32_t ranks : {1u, 2u, 3u, 8u}) {
    for (const Scheme& scheme : schemes) {
      GroupOptions options = with_key(++key);
      options.scheme = scheme;
      const Groups groups = begin_all(first(ranks), options);
      ASSERT_TRUE(make_ready(groups)) << ranks;
      EXPECT_EQ(groups[0]->way(), ranks == 1 ? Way::kSoftware : GetParam());
      for (uint32_t i = 1; i <= 20; ++i) {
        ASSERT_TRUE(meet(groups)) << ranks << ", " << to_string(scheme) << ", " << i;
        EXPECT_EQ(groups[0]->arrivals(), i);
      }
    }
  }
  EXPECT_EQ(at(0).stats().failed, 0u);
  EXPECT_EQ(at(0).stats().foreign, 0u);
  EXPECT_EQ(at(0).stats().passed, 4u * 3 * 20);
}

TEST_P(GroupWays, NoMemberPassesBeforeTheLastArrives) {
  open(3);
  const Groups groups = begin_all(first(3));
  ASSERT_TRUE(make_ready(groups));
  for (uint32_t last = 0; last < 3; ++last) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      if (rank != last) {
        ASSERT_EQ(groups[rank]->arrive(), 0);
        EXPECT_EQ(groups[rank]->arrive(), -EBUSY);
      }
    }
    uint32_t turns_left = 200;
    ASSERT_TRUE(work([&] { return --turns_left == 0; }));
    for (uint32_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(groups[rank]->test(), rank == last ? 1 : 0);
    }
    ASSERT_EQ(groups[last]->arrive(), 0);
    ASSERT_TRUE(pass(groups));
  }
}

TEST_P(GroupWays, MembersShowBytesWhereTheyMeetInMemory) {
  open(3);
  const Groups groups = begin_all(first(3));
  EXPECT_EQ(groups[0]->shown_most(), 0u) << "not ready";
  ASSERT_TRUE(make_ready(groups));
  const std::vector<uint8_t> too_many(kShownMost + 1);
  EXPECT_EQ(groups[0]->arrive(too_many), -EMSGSIZE);
  if (GetParam() != Way::kMemory) {
    EXPECT_EQ(groups[0]->shown_most(), 0u);
    EXPECT_EQ(groups[0]->arrive(std::span(too_many).first(1)), -EMSGSIZE);
    return;
  }
  EXPECT_EQ(groups[0]->shown_most(), kShownMost);
  for (const size_t bytes : {size_t{1}, size_t{100}, size_t{kShownMost}}) {
    for (uint32_t rank = 0; rank < 3; ++rank) {
      const std::vector<uint8_t> shows(bytes, static_cast<uint8_t>(bytes + rank));
      ASSERT_EQ(groups[rank]->arrive(std::span(shows).first(rank == 2 ? bytes - 1 : bytes)), 0);
    }
    ASSERT_TRUE(pass(groups));
    for (uint32_t from = 0; from < 3; ++from) {
      const std::span<const uint8_t> shown = groups[0]->shown(from);
      EXPECT_EQ(shown.size(), from == 2 ? bytes - 1 : bytes) << "the other lengths differ";
      EXPECT_TRUE(from == 2 || shown.back() == static_cast<uint8_t>(bytes + from));
    }
  }
}

TEST_P(GroupWays, AMemberMayBeCreatedLate) {
  open(2);
  std::unique_ptr<Group> late;
  // Rank 1 joins before rank 0 begins, and the other way round, and before the context exists.
  for (const uint32_t early : {0u, 1u}) {
    Groups groups(2);
    groups[early] = begin(first(3), early, with_key(early));
    uint32_t turns_left = 100;
    ASSERT_TRUE(work([&] { return --turns_left == 0; }));
    EXPECT_EQ(groups[early]->ready(), 0);
    EXPECT_EQ(groups[early]->arrive(), -EAGAIN);
    groups[1 - early] = begin(first(3), 1 - early, with_key(early));
    if (places_.size() == 2) {
      open_one(3);
    }
    groups.push_back(begin(first(3), 2, with_key(early)));
    ASSERT_TRUE(make_ready(groups));
    ASSERT_TRUE(meet(groups));
  }
}

TEST_P(GroupWays, AMemberMayBeginMoreGroupsThanItsPeersKeepInMind) {
  constexpr uint32_t kMany = EarlyJoins::kOfPeerMax + 6;
  open(3);
  for (uint32_t ahead = 0; ahead < 3; ++ahead) {
    std::vector<Groups> all(kMany);
    for (uint32_t i = 0; i < kMany; ++i) {
      all[i].resize(3);
      all[i][ahead] = begin(first(3), ahead, with_key(i));
    }
    uint32_t turns_left = 100;
    ASSERT_TRUE(work([&] { return --turns_left == 0; }));
    for (uint32_t i = 0; i < kMany; ++i) {
      for (const uint32_t rank : {(ahead + 2) % 3, (ahead + 1) % 3}) {
        all[i][rank] = begin(first(3), rank, with_key(i));
      }
    }
    for (const Groups& groups : all) {
      ASSERT_TRUE(make_ready(groups)) << ahead;
    }
    ASSERT_TRUE(meet(all.back()));
  }
}

TEST_P(GroupWays, GroupsThatOverlapAreCreatedAtOnceInDifferentOrders) {
  open(4);
  const std::vector<std::vector<msg::Address>> lists = {members({0, 1, 2, 3}), members({3, 2, 1}),
                                                        members({2, 0}), members({1, 0, 3})};
  std::vector<Groups> groups(lists.size());
  for (uint32_t place = 0; place < 4; ++place) {
    for (uint32_t i = 0; i < lists.size(); ++i) {
      const uint32_t which = place % 2 == 0 ? i : static_cast<uint32_t>(lists.size()) - 1 - i;
      const auto& list = lists[which];
      const auto found = std::find(list.begin(), list.end(), at(place).self());
      if (found != list.end()) {
        const auto rank = static_cast<uint32_t>(found - list.begin());
        groups[which].resize(list.size());
        groups[which][rank] = begin(list, rank, with_key(which));
      }
    }
  }
  for (const Groups& one : groups) {
    ASSERT_TRUE(make_ready(one));
  }
  // All run at once.
  for (uint32_t i = 0; i < 10; ++i) {
    for (const Groups& one : groups) {
      for (const auto& group : one) {
        ASSERT_EQ(group->arrive(), 0);
      }
    }
    for (const Groups& one : groups) {
      ASSERT_TRUE(pass(one));
    }
  }
}

TEST_P(GroupWays, MembersThatLeaveAfterTheLastBarrierDoNoHarm) {
  open(3);
  Groups groups = begin_all(first(3));
  ASSERT_TRUE(make_ready(groups));
  ASSERT_TRUE(meet(groups));  // all are connected now
  for (uint32_t rank = 0; rank < 3; ++rank) {
    ASSERT_EQ(groups[rank]->arrive(), 0);
  }
  // Ranks 0 and 1 pass, leave and close their ports before rank 2 has looked.
  ASSERT_TRUE(work_until([&] {
    at(0).progress();
    at(1).progress();
    return groups[0]->test() == 1 && groups[1]->test() == 1;
  }));
  for (uint32_t rank = 0; rank < 2; ++rank) {
    groups[rank].reset();
    for (uint32_t i = 0; i < 50; ++i) {
      at(rank).attend();
      turn();
    }
    places_[rank].context.reset();
    close(*places_[rank].port);
  }
  EXPECT_EQ(groups[2]->wait(5000), 1);
  EXPECT_EQ(groups[2]->failure().error, 0);
  EXPECT_EQ(groups[2]->arrive(), -ECONNREFUSED);
}

TEST_P(GroupWays, BarriersThatHaveEndedDoNotLetTheCardWork) {
  open(2);
  Groups groups = begin_all(first(2));
  ASSERT_TRUE(make_ready(groups));
  ASSERT_TRUE(meet(groups));
  const auto heartbeat = [&] {
    return places_[0].port->endpoint().card().bus().bar().read32(regs::id::heartbeat());
  };
  const uint32_t before = heartbeat();
  for (uint32_t i = 0; i < 20'000; ++i) {
    at(0).attend();
  }
  EXPECT_LE(heartbeat() - before, 4u);  // the thread of the wire may step the card
}

TEST_P(GroupWays, AMemberThatHasLeftFailsTheNextBarrier) {
  open(3);
  Groups groups = begin_all(first(3));
  ASSERT_TRUE(make_ready(groups));
  ASSERT_TRUE(meet(groups));
  groups[1].reset();
  uint32_t turns_left = 200;
  ASSERT_TRUE(work([&] { return --turns_left == 0; }));
  EXPECT_EQ(groups[0]->failure().error, 0);
  EXPECT_EQ(groups[0]->test(), 1);
  EXPECT_EQ(groups[0]->arrive(), -ECONNREFUSED);
  EXPECT_EQ(groups[0]->failure().rank, 1u);
  ASSERT_TRUE(work([&] { return groups[2]->failure().error != 0; }));
  EXPECT_EQ(groups[2]->failure().error, -ECONNREFUSED);
  EXPECT_EQ(groups[2]->failure().rank, 1u);
  EXPECT_EQ(groups[2]->arrive(), -ECONNREFUSED);
}

TEST_P(GroupWays, AMemberThatLeavesItsBarrierFailsIt) {
  open(4);
  Groups groups = begin_all(first(4));
  ASSERT_TRUE(make_ready(groups));
  ASSERT_EQ(groups[0]->arrive(), 0);
  ASSERT_EQ(groups[2]->arrive(), 0);
  groups[2].reset();
  ASSERT_TRUE(all_fail(groups));
  for (const uint32_t rank : {0u, 1u, 3u}) {
    EXPECT_EQ(groups[rank]->failure().error, -ECONNREFUSED);
    EXPECT_EQ(groups[rank]->failure().rank, 2u);
  }
  EXPECT_EQ(groups[0]->test(), -ECONNREFUSED);
}

TEST_P(GroupWays, AKeyIsFreeAgainOnceItsGroupIsDestroyed) {
  open(3);
  for (uint32_t i = 0; i < 5; ++i) {
    Groups groups = begin_all(first(3));
    std::unique_ptr<Group> twice;
    EXPECT_EQ(at(0).create_group(first(3), 0, {}, &twice), -EEXIST);
    // A member that is quicker than the others begins the next group while they leave this one.
    ASSERT_TRUE(make_ready(groups));
    ASSERT_TRUE(meet(groups));
    groups[2].reset();
    groups[2] = begin(first(3), 2);
    uint32_t turns_left = 100;
    ASSERT_TRUE(work([&] { return --turns_left == 0; }));
    for (const uint32_t rank : {0u, 1u}) {
      groups[rank].reset();
      groups[rank] = begin(first(3), rank);
    }
    ASSERT_TRUE(make_ready(groups)) << i;
    ASSERT_TRUE(meet(groups));
  }
}

TEST_P(GroupWays, MembersThatDisagreeAreAllRefused) {
  open(4);
  struct Case {
    std::vector<std::vector<msg::Address>> lists;  // of places 0 to 3
  };
  const Case cases[] = {
      {{members({0, 1, 2, 3}), members({0, 1, 2, 3}), members({0, 1, 2, 3}),
        members({0, 1, 3, 2})}},
      {{members({0, 1, 2, 3}), members({1, 0, 2, 3}), members({0, 1, 2, 3}),
        members({1, 0, 2, 3})}},
      {{members({0, 1}), members({0, 1, 2, 3}), members({0, 1, 2, 3}), members({0, 1, 2, 3})}},
      {{members({0, 1, 2, 3}), members({0, 1, 2, 3}), members({2, 3}), members({0, 1, 2, 3})}},
  };
  uint64_t key = 0;
  for (const Case& one : cases) {
    for (uint32_t start = 0; start < 4; ++start) {
      Groups groups;
      ++key;
      for (uint32_t i = 0; i < 4; ++i) {
        const uint32_t place = (start + i) % 4;
        const auto& list = one.lists[place];
        const auto rank = static_cast<uint32_t>(
            std::find(list.begin(), list.end(), at(place).self()) - list.begin());
        groups.push_back(begin(list, rank, with_key(key)));
      }
      ASSERT_TRUE(all_fail(groups)) << "case " << &one - cases << ", start " << start;
      for (const auto& group : groups) {
        EXPECT_EQ(group->ready(), -EINVAL) << "case " << &one - cases << ", start " << start;
        EXPECT_EQ(group->arrive(), -EINVAL);
      }
    }
  }
}

TEST_P(GroupWays, OtherTermsAreADisagreement) {
  open(2);
  GroupOptions classic;
  classic.scheme = Classic{};
  Groups groups;
  groups.push_back(begin(first(2), 0));
  groups.push_back(begin(first(2), 1, classic));
  ASSERT_TRUE(all_fail(groups));
  EXPECT_EQ(groups[0]->ready(), -EINVAL);
  EXPECT_EQ(groups[0]->failure().rank, 1u);
  EXPECT_EQ(groups[1]->ready(), -EINVAL);
  EXPECT_EQ(groups[1]->failure().rank, 0u);
}

TEST_F(GroupNet, AMemberWithoutTheOnlyWayFailsAll) {
  way_ = Way::kMemory;
  const std::string folder = std::getenv("RIO_RUNTIME_DIR");
  for (uint32_t lacks = 0; lacks < 3; ++lacks) {
    for (uint32_t place = 0; place < 3; ++place) {
      places_.push_back({&port(place + 1), nullptr});
      setenv("RIO_RUNTIME_DIR", place == lacks ? "/nonexistent" : folder.c_str(), 1);
      ASSERT_EQ(BarrierContext::create(*places_[place].port, kContext, &places_[place].context), 0);
      setenv("RIO_RUNTIME_DIR", folder.c_str(), 1);
    }
    Groups groups = begin_all(first(3));
    ASSERT_TRUE(all_fail(groups)) << lacks;
    for (const auto& group : groups) {
      EXPECT_EQ(group->ready(), -ENOTSUP) << lacks;
    }
    groups.clear();
    places_.clear();
    ports_.clear();
  }
}

TEST_P(GroupWays, AMemberThatNeverJoinsIsNamedToAll) {
  open(4);
  GroupOptions options;
  options.create_ms = 300;
  Groups groups;
  for (const uint32_t rank : {0u, 1u, 3u}) {
    groups.push_back(begin(first(4), rank, options));
  }
  ASSERT_TRUE(all_fail(groups));
  for (const auto& group : groups) {
    EXPECT_EQ(group->ready(), -ETIMEDOUT);
    EXPECT_EQ(group->failure().rank, 2u);
  }
  // A member that comes late is told of the failure, and the next creation begins anew.
  groups.push_back(begin(first(4), 2, options));
  ASSERT_TRUE(all_fail(groups));
  EXPECT_EQ(groups.back()->ready(), -ETIMEDOUT);
  groups.clear();
  groups = begin_all(first(4));
  ASSERT_TRUE(make_ready(groups));
  ASSERT_TRUE(meet(groups));
}

TEST_P(GroupWays, ADeadlineFailsTheBarrierForAll) {
  open(3);
  GroupOptions hasty;
  hasty.deadline_ms = 50;
  Groups groups;
  groups.push_back(begin(first(3), 0));
  groups.push_back(begin(first(3), 1, hasty));
  groups.push_back(begin(first(3), 2));
  ASSERT_TRUE(make_ready(groups));
  ASSERT_EQ(groups[0]->arrive(), 0);
  ASSERT_EQ(groups[1]->arrive(), 0);
  ASSERT_TRUE(all_fail(groups));
  for (const auto& group : groups) {
    EXPECT_EQ(group->failure().error, -ETIME);
    EXPECT_EQ(group->failure().rank, 1u);
    EXPECT_EQ(group->arrive(), -ETIME);
  }
}

TEST_F(GroupNet, NumbersOfTheCardAreUsedAgainByOtherMembers) {
  // Groups of any members, one after the other, run any number of barriers: numbers of earlier
  // groups are used again, some of them with other epochs at each member.
  way_ = Way::kCard;
  open(4);
  base::Random random(3);
  uint32_t by_card = 0;
  for (uint32_t i = 0; i < 400; ++i) {
    std::vector<msg::Address> list;
    for (uint32_t place = 0; place < 4; ++place) {
      if (random.below(3) != 0) {
        list.push_back(at(place).self());
      }
    }
    if (list.size() < 2) {
      continue;
    }
    std::swap(list[0], list[random.below(static_cast<uint32_t>(list.size()))]);
    const Groups groups = begin_all(list);
    ASSERT_TRUE(settle(groups)) << i;
    if (groups[0]->ready() == -EBUSY) {
      continue;  // no number is free, or its epochs differ
    }
    ++by_card;
    for (uint32_t left = random.below(4); left != 0; --left) {
      ASSERT_TRUE(meet(groups)) << i;
    }
  }
  EXPECT_GT(by_card, 50u);
}

TEST_P(GroupWays, BadArgumentsAreRefused) {
  open(2);
  std::unique_ptr<Group> group;
  const auto create = [&](const std::vector<msg::Address>& list, uint32_t rank,
                          const GroupOptions& options = {}) {
    return at(0).create_group(list, rank, options, &group);
  };
  EXPECT_EQ(create({}, 0), -EINVAL);
  EXPECT_EQ(create(first(2), 1), -EINVAL);  // not this member's place
  EXPECT_EQ(create(first(2), 2), -EINVAL);
  EXPECT_EQ(create(members({0, 1, 1}), 0), -EINVAL);
  EXPECT_EQ(create({at(0).self(), msg::address(2, msg::kContexts)}, 0), -EINVAL);
  GroupOptions options;
  options.create_ms = 0;
  EXPECT_EQ(create(first(2), 0, options), -EINVAL);
  options = {};
  options.scheme = Torus{{1, {5}}};
  EXPECT_EQ(create(first(2), 0, options), -EINVAL);
  EXPECT_EQ(group, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Ways, GroupWays,
                         testing::Values(Way::kSoftware, Way::kCard, Way::kMemory));

}  // namespace
}  // namespace rio::barrier::test
