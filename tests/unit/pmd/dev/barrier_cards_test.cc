// Barriers of the real driver on emulated cards: no member leaves before the last one has arrived,
// and each barrier ends at all members, whatever happens to one of them.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "base/random.hpp"
#include "tests/support/barrier_cards.hpp"
#include "tests/support/seed.hpp"

namespace rio::test {
namespace {

using pmd::Status;

/// Slow cards that delay, reorder and tear what they write.
model::Config config_of(bool exact, uint64_t pcie_seed) {
  model::Config config;
  config.exact = exact;
  config.pcie_seed = pcie_seed;
  config.torn = pcie_seed != 0;
  return config;
}

/// Members arrive one after the other in a random order, with polls of others between.
class Rounds {
 public:
  Rounds(BarrierCards& cards, bool slots, uint64_t seed)
      : cards_(cards), slots_(slots), random_(seed), order_(cards.size()) {
    for (uint32_t i = 0; i < cards.size(); ++i) {
      order_[i] = i;
      if (slots) {
        EXPECT_EQ(cards[i].queue().load(i % 16, cards[i].desc, 1000 + i), 0);
      }
    }
  }
  void run(uint32_t epochs) {
    for (uint32_t epoch = 1; epoch <= epochs && !testing::Test::HasFailure(); ++epoch) {
      one(epoch);
    }
  }

 private:
  void one(uint32_t epoch) {
    for (uint32_t left = cards_.size(); left > 1; --left) {
      std::swap(order_[left - 1], order_[random_.below(left)]);
    }
    for (const uint32_t i : order_) {
      for (uint32_t polls = random_.below(64); polls != 0; --polls) {
        cards_.poll(random_.below(cards_.size()));
      }
      for (uint32_t other = 0; other < cards_.size(); ++other) {
        ASSERT_TRUE(cards_[other].done.empty()) << other << " left before " << i << " arrived";
      }
      const pmd::MmioCounts before = cards_[i].queue().mmio();
      ASSERT_TRUE(slots_ ? cards_[i].queue().go(i % 16, epoch) : cards_.post(i, epoch));
      EXPECT_EQ(cards_[i].queue().mmio().writes, before.writes + 1);
    }
    for (uint32_t i = 0; i < cards_.size(); ++i) {
      const pmd::MmioCounts before = cards_[i].queue().mmio();
      ASSERT_TRUE(cards_.poll_until_ended(i)) << "epoch " << epoch << ", member " << i;
      EXPECT_EQ(cards_[i].queue().mmio().writes, before.writes);
      EXPECT_EQ(cards_[i].queue().mmio().reads, 0u);
    }
    for (uint32_t i = 0; i < cards_.size(); ++i) {
      ASSERT_EQ(cards_[i].done.size(), 1u);
      const pmd::BarrierDone& done = cards_[i].done[0];
      ASSERT_EQ(done.status, Status::kOk) << "epoch " << epoch << ", member " << i;
      ASSERT_EQ(done.cookie, 1000 + i);
      ASSERT_EQ(done.epoch, epoch);
      ASSERT_EQ(done.slot, slots_ ? i % 16 : pmd::kBarrierNoSlot);
      cards_[i].done.clear();
    }
  }

  BarrierCards& cards_;
  const bool slots_;
  base::Random random_;
  std::vector<uint32_t> order_;
};

struct Shape {
  uint32_t members;
  barrier::Scheme scheme;
  bool slots;
  bool exact;
  bool pcie;
};

class BarrierShapes : public testing::TestWithParam<Shape> {};

TEST_P(BarrierShapes, NoMemberLeavesEarly) {
  const Shape& shape = GetParam();
  const uint64_t seed = first_seed() + shape.members;
  BarrierCards cards(shape.members, shape.scheme, config_of(shape.exact, shape.pcie ? seed : 0));
  Rounds(cards, shape.slots, seed).run(40);
  for (uint32_t i = 0; i < cards.size(); ++i) {
    EXPECT_EQ(cards[i].queue().stats().bad_completions, 0u);
    EXPECT_EQ(cards[i].queue().stats().messages, 40u);
    // A card shows its counters now and then.
    EXPECT_TRUE(cards.poll_until([&] { return cards[i].card->barrier_counters(0).sent >= 40; }));
    const pmd::BarrierCounters counters = cards[i].card->barrier_counters(0);
    EXPECT_EQ(counters.foreign, 0u);
    EXPECT_EQ(counters.cancelled, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Cards, BarrierShapes,
                         testing::Values(Shape{2, barrier::Classic{}, false, false, false},
                                         Shape{2, barrier::TwoWay{}, true, true, true},
                                         Shape{3, barrier::TwoWay{}, true, false, false},
                                         Shape{3, barrier::Classic{}, false, true, true},
                                         Shape{8, barrier::Classic{}, true, false, true},
                                         Shape{8, barrier::TwoWay{}, false, true, false},
                                         Shape{8, barrier::Tree{}, true, true, true}));

TEST(BarrierCardsTest, MembersThatHaveJoinedLearnThatOneStops) {
  BarrierCards cards(3, barrier::TwoWay{});
  ASSERT_TRUE(cards.post(0, 1));
  ASSERT_TRUE(cards.post(1, 1));
  cards[0].queue().begin_stop();
  ASSERT_TRUE(cards.poll_until([&] { return cards[0].queue().stopped() == 1; }));
  ASSERT_TRUE(cards.poll_until_ended(0));
  EXPECT_EQ(cards[0].done[0].status, Status::kFlushed);
  ASSERT_TRUE(cards.poll_until_ended(1));
  EXPECT_EQ(cards[1].done[0].status, Status::kPeerFailed);
  const uint32_t place = 2u * cards[1].done[0].round + cards[1].done[0].peer;
  EXPECT_EQ(cards[1].desc.peers[place], BarrierCards::dest_id(0));
  EXPECT_TRUE(cards.poll_until([&] { return cards[1].card->barrier_counters(0).cancelled == 1; }));
  // The last member learns of the cancellation when it arrives.
  ASSERT_TRUE(cards.post(2, 1));
  ASSERT_TRUE(cards.poll_until_ended(2));
  EXPECT_EQ(cards[2].done[0].status, Status::kPeerFailed);
}

TEST(BarrierCardsTest, StopEndsSlotsAndTheyRunAgainAfterARestart) {
  BarrierCards cards(2, barrier::Classic{});
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_EQ(cards[i].queue().load(0, cards[i].desc, i), 0);
  }
  ASSERT_TRUE(cards[0].queue().go(0, 5));
  cards[0].queue().begin_stop();
  ASSERT_TRUE(cards.poll_until([&] { return cards[0].queue().stopped() == 1; }));
  ASSERT_TRUE(cards.poll_until_ended(0));
  EXPECT_EQ(cards[0].done[0].status, Status::kFlushed);
  EXPECT_EQ(cards[0].done[0].slot, 0);
  ASSERT_EQ(cards[0].queue().restart(), 0);
  ASSERT_TRUE(cards[1].queue().go(0, 5));
  ASSERT_TRUE(cards.poll_until_ended(1));
  EXPECT_EQ(cards[1].done[0].status, Status::kPeerFailed);
  cards[0].done.clear();
  cards[1].done.clear();
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(cards[i].queue().go(0, 6));
  }
  for (uint32_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(cards.poll_until_ended(i));
    EXPECT_EQ(cards[i].done[0].status, Status::kOk);
  }
}

TEST(BarrierCardsTest, MembersThatHaveJoinedLearnThatACardWasReset) {
  BarrierCards cards(3, barrier::TwoWay{});
  ASSERT_TRUE(cards.post(0, 1));
  ASSERT_TRUE(cards.post(1, 1));
  cards.open(0);
  ASSERT_TRUE(cards.poll_until_ended(1));
  EXPECT_EQ(cards[1].done[0].status, Status::kPeerFailed);
  EXPECT_TRUE(cards[0].done.empty());  // its card has forgotten the barrier
  EXPECT_EQ(cards[0].queue().outstanding(), 0);
}

TEST(BarrierCardsTest, CancelledBarrierEndsAtAllMembers) {
  BarrierCards cards(3, barrier::TwoWay{});
  ASSERT_TRUE(cards.post(0, 1));
  ASSERT_TRUE(cards.post(1, 1));
  ASSERT_TRUE(cards.post(0, 1, regs::BarrierOp::kCancel));
  ASSERT_TRUE(cards.poll_until_ended(0, 2));
  EXPECT_EQ(cards[0].done[0].status, Status::kFlushed);
  EXPECT_EQ(cards[0].done[1].status, Status::kOk);
  ASSERT_TRUE(cards.poll_until_ended(1));
  EXPECT_EQ(cards[1].done[0].status, Status::kPeerFailed);
}

TEST(BarrierCardsTest, LoadedGroupTakesEarlyNotificationsWithoutMemory) {
  model::Config config;
  config.early_notices = 0;
  BarrierCards cards(2, barrier::Classic{}, config);
  ASSERT_TRUE(cards.post(1, 1, regs::BarrierOp::kLoad));
  ASSERT_TRUE(cards.poll_until_ended(1));
  ASSERT_TRUE(cards.post(0, 1));
  ASSERT_TRUE(cards.poll_until([&] { return cards[1].card->barrier_counters(0).early == 1; }));
  ASSERT_TRUE(cards.post(1, 1));
  ASSERT_TRUE(cards.poll_until_ended(0));
  ASSERT_TRUE(cards.poll_until_ended(1, 2));
  EXPECT_EQ(cards[0].done[0].status, Status::kOk);
  EXPECT_EQ(cards[1].done[1].status, Status::kOk);
  EXPECT_EQ(cards[1].card->barrier_counters(0).nacks_given, 0u);
}

TEST(BarrierCardsTest, NotificationOfAnOutsiderIsAnEventAndDoesNotCount) {
  BarrierCards cards(2, barrier::Classic{});
  const auto bus = cards.outsider();
  std::unique_ptr<pmd::Card> card;
  pmd::CardConfig identity;
  identity.dest_ids = {BarrierCards::dest_id(2)};
  ASSERT_EQ(pmd::Card::open(*bus, identity, &card), 0);
  std::unique_ptr<pmd::QueuePair> pair;
  ASSERT_EQ(card->open_queue_pair(0, {}, &pair), 0);
  ASSERT_TRUE(cards.post(0, 1));
  cards.poll(0);
  const uint32_t info = 1u << 15 | BarrierCards::kGroup << 8 | 1u << 5 | 0;
  const pmd::TxMessage forged = {.info = info,
                                 .cookie = 7,
                                 .dest_id = BarrierCards::dest_id(0),
                                 .length_bytes = 2,
                                 .mbox = 0,
                                 .flags = pmd::TxFlags::kDoorbell};
  ASSERT_EQ(pair->tx().burst(&forged, 1), 1);
  pmd::TxDone done{};
  ASSERT_TRUE(cards.poll_until([&] { return pair->tx().reap(&done, 1) == 1; }));
  EXPECT_EQ(done.status, Status::kErrorResponse);
  pmd::CardEvent event{};
  ASSERT_TRUE(cards.poll_until([&] { return cards[0].pair->events().burst(&event, 1) == 1; }));
  EXPECT_EQ(event.type, regs::EventType::kBarrierForeign);
  EXPECT_EQ(event.source, BarrierCards::dest_id(2));
  EXPECT_EQ(event.info, info);
  EXPECT_TRUE(cards[0].done.empty());
  EXPECT_TRUE(cards.poll_until([&] { return cards[0].card->barrier_counters(0).foreign == 1; }));
  ASSERT_TRUE(cards.post(1, 1));
  ASSERT_TRUE(cards.poll_until_ended(0));
  EXPECT_EQ(cards[0].done[0].status, Status::kOk);
}

TEST(BarrierCardsTest, CardWithoutAnEngineRefuses) {
  model::Config config;
  config.barrier = false;
  ManualClock clock;
  ModelBus bus(config, model::make_loop_wire(), &clock, 100);
  std::unique_ptr<pmd::Card> card;
  pmd::CardConfig identity;
  identity.dest_ids = {1};
  ASSERT_EQ(pmd::Card::open(bus, identity, &card), 0);
  EXPECT_EQ(card->caps().barrier_rounds, 0u);
  pmd::QueuePairConfig rings;
  rings.barriers = true;
  std::unique_ptr<pmd::QueuePair> pair;
  EXPECT_EQ(card->open_queue_pair(0, rings, &pair), -ENOTSUP);
}

}  // namespace
}  // namespace rio::test
