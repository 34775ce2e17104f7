// Members that create groups over a transport that keeps the order of each pair's messages only.
// Several groups at once take numbers from the same cards.
#include "lib/barrier/agreement.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.hpp"

namespace rio::barrier {
namespace {

using Stage = Agreement::Stage;
constexpr uint32_t kBoth = GroupMessage::kCardBit | GroupMessage::kSoftwareBit;

/// A card, which several groups share.
struct Card {
  IdPool ids;
};

/// A member of one group, on a card.
class Member final : public Agreement::Ends {
 public:
  using Wires = std::map<std::tuple<uint32_t, uint32_t, uint32_t>, std::deque<GroupMessage>>;

  Member(const Agreement::Terms& terms, uint32_t group, Card& card, Wires& wires)
      : terms_(terms), group_(group), card_(card), wires_(wires), agreement(terms, *this) {}

  void send(uint32_t rank, const GroupMessage& message) override {
    GroupMessage read_back;
    EXPECT_TRUE(
        read({reinterpret_cast<const uint8_t*>(&message), message.size_bytes()}, &read_back));
    EXPECT_NE(rank, terms_.rank);
    wires_[{group_, terms_.rank, rank}].push_back(message);
  }
  IdSet free_ids() override { return card_.ids.free(0); }
  bool load(uint32_t id) override {
    EXPECT_EQ(held, kNone);
    if (id != kNoId && !card_.ids.take(id, 0)) {
      return false;
    }
    held = id;
    is_loading = true;
    if (loads_at_once) {
      finish_load();
    }
    return true;
  }
  void unload(uint32_t id) override {
    EXPECT_EQ(held, id);
    if (id != kNoId) {
      card_.ids.give_back(id, 0);
    }
    held = kNone;
    is_loading = false;
  }
  void finish_load() {
    is_loading = false;
    agreement.loaded(std::exchange(load_error, 0));
  }

  static constexpr uint32_t kNone = 1000;

 private:
  Agreement::Terms terms_;
  uint32_t group_;
  Card& card_;
  Wires& wires_;

 public:
  uint32_t held = kNone;
  bool is_loading = false;
  bool loads_at_once = true;
  bool has_begun = false;
  int load_error = 0;
  Agreement agreement;
};

/// Groups over cards: group g has a member on each card of `places[g]`, in the order of ranks.
class World {
 public:
  World(uint32_t cards, std::vector<std::vector<uint32_t>> places, uint64_t seed,
        uint32_t ways = kBoth)
      : cards_(cards), places_(std::move(places)), random_(seed) {
    for (uint32_t group = 0; group < places_.size(); ++group) {
      groups_.emplace_back();
      for (uint32_t rank = 0; rank < places_[group].size(); ++rank) {
        Agreement::Terms terms;
        terms.key = group;
        terms.digest = 99;
        terms.ranks = static_cast<uint32_t>(places_[group].size());
        terms.rank = rank;
        terms.ticket = 1 + group * 1000 + rank;
        terms.serial = 1 + static_cast<uint32_t>(random_.next() >> 33);
        terms.ways = ways;
        groups_[group].push_back(
            std::make_unique<Member>(terms, group, cards_[places_[group][rank]], wires));
        groups_[group].back()->loads_at_once = random_.below(2) == 0;
      }
    }
  }

  [[nodiscard]] Member& at(uint32_t group, uint32_t rank) { return *groups_[group][rank]; }
  [[nodiscard]] Card& card(uint32_t index) { return cards_[index]; }
  [[nodiscard]] std::vector<std::unique_ptr<Member>>& group(uint32_t index) {
    return groups_[index];
  }

  /// One step in a random order. @return false: there is none.
  bool step() {
    std::vector<std::pair<Member*, std::tuple<uint32_t, uint32_t, uint32_t>>> all;
    for (auto& group : groups_) {
      for (auto& member : group) {
        if (!member->has_begun || member->is_loading) {
          all.push_back({member.get(), {}});
        }
      }
    }
    for (auto& [wire, queue] : wires) {
      // Before it has begun, a member's messages wait with it, as EarlyJoins keeps them.
      Member& to = at(std::get<0>(wire), std::get<2>(wire));
      if (!queue.empty() && to.has_begun) {
        all.push_back({nullptr, wire});
      }
    }
    if (all.empty()) {
      return false;
    }
    const auto [member, wire] = all[random_.below(static_cast<uint32_t>(all.size()))];
    if (member != nullptr && member->is_loading) {
      member->finish_load();
    } else if (member != nullptr) {
      member->has_begun = true;
      member->agreement.begin();
    } else {
      const auto [group, from, to] = wire;
      const GroupMessage message = wires[wire].front();
      wires[wire].pop_front();
      static_cast<void>(at(group, to).agreement.receive(from, message));
    }
    return true;
  }
  void run() {
    while (step()) {
    }
  }

  Member::Wires wires;

 private:
  std::vector<Card> cards_;
  std::vector<std::vector<uint32_t>> places_;
  std::vector<std::vector<std::unique_ptr<Member>>> groups_;
  base::Random random_;
};

/// All members of a group have come to the same result.
void expect_same(World& world, uint32_t group, Stage stage) {
  const Agreement& first = world.at(group, 0).agreement;
  for (const auto& member : world.group(group)) {
    const Agreement& agreement = member->agreement;
    EXPECT_EQ(agreement.stage(), stage);
    EXPECT_EQ(agreement.id(), first.id());
    if (stage == Stage::kReady) {
      EXPECT_EQ(agreement.serial(), first.serial());
    }
    EXPECT_EQ(agreement.error(), first.error());
    EXPECT_EQ(agreement.culprit(), first.culprit());
    EXPECT_EQ(member->held, stage == Stage::kReady ? first.id() : Member::kNone);
  }
}

std::vector<uint32_t> first_cards(uint32_t count) {
  std::vector<uint32_t> cards(count);
  for (uint32_t i = 0; i < count; ++i) {
    cards[i] = i;
  }
  return cards;
}

TEST(Agreement, EverySizeInRandomOrders) {
  for (uint32_t ranks = 1; ranks <= 9; ++ranks) {
    for (uint64_t seed = 0; seed < 50; ++seed) {
      World world(ranks, {first_cards(ranks)}, seed);
      world.run();
      expect_same(world, 0, Stage::kReady);
      EXPECT_NE(world.at(0, 0).agreement.id(), kNoId);
      ASSERT_FALSE(HasFailure()) << ranks << ", seed " << seed;
    }
  }
}

TEST(Agreement, SoftwareHasNoNumber) {
  World world(3, {first_cards(3)}, 1, GroupMessage::kSoftwareBit);
  world.run();
  expect_same(world, 0, Stage::kReady);
  EXPECT_EQ(world.at(0, 0).agreement.id(), kNoId);
}

TEST(Agreement, GroupsThatMeetOnCardsGetDifferentNumbers) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    // Each pair of groups has cards in common, and their members are in different orders.
    World world(5, {{0, 1, 2}, {2, 1, 0}, {3, 1}, {4, 3, 2, 1, 0}, {0, 4}, {1, 2, 3, 4}}, seed);
    world.run();
    for (uint32_t group = 0; group < 6; ++group) {
      expect_same(world, group, Stage::kReady);
    }
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}

TEST(Agreement, GroupsThatWantTheLastNumber) {
  uint32_t by_card = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    World world(3, {{0, 1, 2}, {2, 1, 0}, {1, 0}}, seed);
    for (uint32_t card = 0; card < 3; ++card) {
      for (uint32_t id = 0; id < kIds - 1; ++id) {
        ASSERT_TRUE(world.card(card).ids.take(id, 0));
      }
    }
    world.run();
    uint32_t holders = 0;
    for (uint32_t group = 0; group < 3; ++group) {
      expect_same(world, group, Stage::kReady);
      holders += world.at(group, 0).agreement.id() == kIds - 1 ? 1 : 0;
    }
    EXPECT_LE(holders, 1u);
    by_card += holders;
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
  EXPECT_GT(by_card, 0u);
}

TEST(Agreement, NoNumberAndNoSoftware) {
  World world(2, {first_cards(2)}, 1, GroupMessage::kCardBit);
  for (uint32_t id = 0; id < kIds; ++id) {
    ASSERT_TRUE(world.card(id % 2).ids.take(id, 0));  // each number is taken on one of the cards
  }
  world.run();
  expect_same(world, 0, Stage::kFailed);
  EXPECT_EQ(world.at(0, 0).agreement.error(), -EBUSY);
}

TEST(Agreement, MembersThatWantDifferentWays) {
  World world(2, {first_cards(2)}, 1, 0);
  world.run();
  expect_same(world, 0, Stage::kFailed);
  EXPECT_EQ(world.at(0, 1).agreement.error(), -ENOTSUP);
}

TEST(Agreement, AMemberThatFailsAtAnyStepFailsAllThatAreNotReady) {
  for (uint32_t ranks = 1; ranks <= 6; ++ranks) {
    for (uint32_t victim = 0; victim < ranks; ++victim) {
      for (uint32_t after = 0; after < 40; ++after) {
        World world(ranks, {first_cards(ranks)}, after);
        for (uint32_t step = 0; step < after && world.step(); ++step) {
        }
        Member& failing = world.at(0, victim);
        if (!failing.has_begun) {
          continue;
        }
        const bool was_ready = failing.agreement.stage() == Stage::kReady;
        failing.agreement.fail(-EIO, victim);
        world.run();
        // If rank 0 has let them run, a member's failure is that of a group that runs.
        if (was_ready || world.at(0, 0).agreement.stage() == Stage::kReady) {
          continue;
        }
        for (const auto& member : world.group(0)) {
          EXPECT_TRUE(member->agreement.stage() == Stage::kFailed ||
                      member->agreement.stage() == Stage::kJoining);
          EXPECT_EQ(member->held, Member::kNone);
        }
        EXPECT_EQ(world.at(0, 0).agreement.error(), -EIO);
        EXPECT_EQ(world.at(0, 0).agreement.culprit(), victim);
        ASSERT_FALSE(HasFailure()) << ranks << ", " << victim << " after " << after;
      }
    }
  }
}

TEST(Agreement, ALoadThatFailsFailsAll) {
  World world(3, {first_cards(3)}, 5);
  world.at(0, 1).load_error = -EIO;
  world.run();
  expect_same(world, 0, Stage::kFailed);
  EXPECT_EQ(world.at(0, 2).agreement.culprit(), 1u);
}

TEST(Agreement, AMemberThatJoinsAFailedCreationIsToldOnce) {
  World world(2, {first_cards(2)}, 1);
  Agreement& root = world.at(0, 0).agreement;
  world.at(0, 0).has_begun = true;
  root.begin();
  EXPECT_EQ(root.missing(), 1u);
  root.fail(-ETIMEDOUT, root.missing());
  EXPECT_TRUE(root.tell_late(1, 1001));
  EXPECT_FALSE(root.tell_late(1, 55));
  EXPECT_EQ((world.wires[{0, 0, 1}].back().error), -ETIMEDOUT);
  EXPECT_EQ((world.wires[{0, 0, 1}].back().ticket), 1001u);
}

TEST(Agreement, AMemberThatDoesNotAnswerIsMissing) {
  World world(3, {first_cards(3)}, 1);
  for (uint32_t rank = 0; rank < 3; ++rank) {
    world.at(0, rank).loads_at_once = true;
  }
  for (const uint32_t rank : {1u, 2u, 0u}) {
    world.at(0, rank).has_begun = true;
    world.at(0, rank).agreement.begin();
  }
  Agreement& root = world.at(0, 0).agreement;
  EXPECT_EQ(root.missing(), 1u) << "none has joined";
  for (const uint32_t rank : {1u, 2u}) {
    ASSERT_TRUE(root.receive(rank, world.wires[{0, rank, 0}].back()));
  }
  EXPECT_EQ(root.missing(), 1u) << "all have joined, and none has answered";
  ASSERT_TRUE(world.at(0, 1).agreement.receive(0, world.wires[{0, 0, 1}].back()));
  ASSERT_TRUE(root.receive(1, world.wires[{0, 1, 0}].back()));
  EXPECT_EQ(root.missing(), 2u);
}

TEST(Agreement, AMemberForWhichThereWasNoRoomJoinsAgainWhenRank0Begins) {
  World world(2, {first_cards(2)}, 1);
  Agreement& member = world.at(0, 1).agreement;
  auto& sent = world.wires[{0, 1, 0}];
  world.at(0, 1).has_begun = true;
  member.begin();
  ASSERT_EQ(sent.size(), 1u);
  GroupMessage refusal;
  refusal.what = What::kFailed;
  refusal.ticket = sent.front().ticket;
  refusal.error = -EAGAIN;
  sent.clear();
  EXPECT_TRUE(member.receive(0, refusal));
  EXPECT_EQ(member.stage(), Stage::kJoining);
  EXPECT_TRUE(sent.empty());
  world.run();  // rank 0 begins
  expect_same(world, 0, Stage::kReady);
  EXPECT_FALSE(member.receive(0, refusal));
  // To rank 0 it means nothing.
  World other(2, {first_cards(2)}, 1);
  other.at(0, 0).agreement.begin();
  refusal.ticket = 1;
  EXPECT_FALSE(other.at(0, 0).agreement.receive(1, refusal));
  EXPECT_EQ(other.at(0, 0).agreement.stage(), Stage::kJoining);
}

TEST(Agreement, MessagesThatAreNotDueAreNotTaken) {
  World world(3, {first_cards(3)}, 1);
  Agreement& root = world.at(0, 0).agreement;
  Agreement& member = world.at(0, 1).agreement;
  root.begin();
  member.begin();
  const auto from = [](What what, uint32_t rank) {
    GroupMessage message;
    message.what = what;
    message.rank = rank;
    message.ticket = 1 + rank;
    message.ranks = 3;
    message.digest = 99;
    message.ways = kBoth;
    message.serial = 5;
    message.attempt = 1;
    message.error = -EIO;
    return message;
  };
  // Rank 0 before all have joined.
  EXPECT_FALSE(root.receive(1, from(What::kLoaded, 1)));
  EXPECT_FALSE(root.receive(1, from(What::kDenied, 1)));
  EXPECT_FALSE(root.receive(1, from(What::kRun, 1)));
  EXPECT_FALSE(root.receive(1, from(What::kPropose, 1)));
  EXPECT_TRUE(root.receive(1, from(What::kJoin, 1)));
  EXPECT_FALSE(root.receive(1, from(What::kJoin, 1)));  // twice
  GroupMessage join = from(What::kJoin, 2);
  join.digest = 98;
  EXPECT_FALSE(root.receive(2, join));
  join = from(What::kJoin, 2);
  join.ranks = 4;
  EXPECT_FALSE(root.receive(2, join));
  GroupMessage failed = from(What::kFailed, 2);
  failed.ticket = 77;  // of another creation
  EXPECT_FALSE(root.receive(2, failed));
  EXPECT_EQ(root.stage(), Stage::kJoining);

  // A member before the proposal, and messages from others than rank 0.
  EXPECT_FALSE(member.receive(0, from(What::kRun, 0)));
  EXPECT_FALSE(member.receive(0, from(What::kPropose, 0)));  // the ticket is that of rank 0
  GroupMessage proposal = from(What::kPropose, 0);
  proposal.ticket = 2;
  proposal.id = kNoId;
  EXPECT_FALSE(member.receive(2, proposal));
  EXPECT_FALSE(member.receive(0, failed));
  world.at(0, 1).loads_at_once = true;
  EXPECT_TRUE(member.receive(0, proposal));
  EXPECT_FALSE(member.receive(0, proposal));  // twice
  EXPECT_EQ(member.stage(), Stage::kLoaded);
  GroupMessage run = from(What::kRun, 0);
  run.serial = 6;
  EXPECT_FALSE(member.receive(0, run));
  run.serial = 5;
  EXPECT_FALSE(member.receive(2, run));
  EXPECT_TRUE(member.receive(0, run));
  EXPECT_EQ(member.stage(), Stage::kReady);
}

}  // namespace
}  // namespace rio::barrier
