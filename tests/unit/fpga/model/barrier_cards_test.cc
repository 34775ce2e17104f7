// Barriers of two, three and eight cards: arrivals in any order, faults, a card that dies. No card
// may leave before the last one has arrived, and none may wait for ever.
#include "tests/unit/fpga/model/barrier_cards.hpp"

#include <algorithm>
#include <ostream>
#include <vector>

#include "tests/support/barrier_desc.hpp"

namespace rio::test {
namespace {

using model::Fault;
using regs::Status;

constexpr uint32_t kResponseUs = 200;
constexpr uint64_t kNsPerTurn = 500;
constexpr uint32_t kNone = ~0u;

struct Case {
  uint32_t cards;
  bool exact;
  uint64_t pcie_seed;
  bool slots;  // the hosts start barriers by GO
  bool looks;  // the hosts poll as ports do: most steps are short ones
  /// Plans are loaded, and the wire loses nothing. Only every second card has faults.
  bool pledges = false;
};
std::ostream& operator<<(std::ostream& out, const Case& each) {
  return out << each.cards << " cards, exact " << each.exact << ", pcie " << each.pcie_seed
             << ", slots " << each.slots << ", looks " << each.looks << ", pledges "
             << each.pledges;
}

/// The outcome of one barrier.
struct Outcome {
  uint32_t ok = 0;
  uint32_t failed = 0;
  uint32_t early = 0;  // ended as OK before the last arrival
  uint64_t turns = 0;  // from the last arrival to the last end
};

/// The members of a group, each a card with its host. Classic dissemination.
class Members {
 public:
  Members(const Case& how, const model::FaultConfig& faults, uint64_t seed,
          uint32_t early_notices = 3)
      : how_(how), random_(seed), mesh_(how.cards), loads_(how.pledges && early_notices != 0) {
    if (how.pledges) {
      mesh_.take_pledges();
    }
    model::Config config;
    config.exact = how.exact;
    config.pcie_seed = how.pcie_seed;
    config.torn = how.pcie_seed != 0;
    config.early_notices = early_notices;
    for (uint32_t i = 0; i < how.cards; ++i) {
      cards_.push_back(std::make_unique<MeshCard>(config, &clock_, mesh_.plug(i)));
      bring_up(i);
    }
    for (uint32_t i = 0; i < how.cards; ++i) {
      model::FaultConfig own = faults;
      own.seed += i;
      if (!how.pledges || i % 2 == 0) {
        cards_[i]->set_faults(own);
      }
    }
    load();
  }
  /// Runs the next barrier. @param dies card that is not stepped from a random time on.
  Outcome run(uint32_t dies = kNone) {
    std::vector<uint64_t> arrivals(how_.cards);
    for (uint64_t& turn : arrivals) {
      turn = random_.below(2000);
    }
    const uint64_t last = *std::max_element(arrivals.begin(), arrivals.end());
    const uint64_t death = dies == kNone ? ~uint64_t{0} : random_.below(3000);
    const uint64_t deadline = last + 100ull * kResponseUs * 1000 / kNsPerTurn;
    ended_.assign(how_.cards, false);
    Outcome outcome;
    for (uint64_t turn = 0; !all_ended(dies) && turn < 3 * deadline; ++turn) {
      clock_.advance_ns(kNsPerTurn);
      for (uint32_t i = 0; i < how_.cards; ++i) {
        if (i == dies && turn >= death) {
          continue;
        }
        if (arrivals[i] == turn) {
          arrive(i);
        }
        if (turn == deadline && !ended_[i]) {
          cancel(i);  // as a host does at its deadline
        }
        if (random_.below(3) != 0) {
          poll(i);
        }
        look(i, turn < last, &outcome);
      }
      outcome.turns = turn < last ? 0 : turn - last;
    }
    ++epoch_;
    return outcome;
  }
  /// Both of two cards arrive, then only the second one looks. @return whether its barrier has
  /// ended.
  bool ends_without_an_answer() {
    ended_.assign(2, false);
    arrive(0);
    arrive(1);
    Outcome outcome;
    poll(1);
    look(1, false, &outcome);
    const bool has_ended = ended_[1];
    for (uint32_t turn = 0; turn < 1000; ++turn) {
      poll(turn % 2);
      look(turn % 2, false, &outcome);
    }
    EXPECT_EQ(outcome.ok, 2u);
    ++epoch_;
    return has_ended;
  }
  /// Lets the next barriers be started by another slot.
  void use_slot(uint32_t slot) { slot_ = slot; }
  /// Forms another group, as hosts do after a failure.
  void regroup() {
    group_ = (group_ + 1) % 128;
    for (uint32_t turn = 0; turn < 40'000; ++turn) {  // more than ten response time-outs
      clock_.advance_ns(kNsPerTurn);
      cards_[turn % how_.cards]->work();
    }
    for (uint32_t i = 0; i < how_.cards; ++i) {
      static_cast<void>(take(i));
    }
    load();
  }
  [[nodiscard]] uint32_t count(uint32_t (*word)(uint32_t)) {
    uint32_t sum = 0;
    for (const auto& card : cards_) {
      card->run();
      sum += card->read32(word(0));
    }
    return sum;
  }

 private:
  void bring_up(uint32_t i) {
    MeshCard& card = *cards_[i];
    card.bring_up(Mesh::kFirstId + i, kResponseUs);
    card.write32(regs::barrier::resend_limit(0), 40);
    rings_.push_back(
        std::make_unique<TestRing>(card, RingConfig{.ring = 5, .log2 = 3, .clog2 = 5}));
    rings_.back()->start();
    receive_one(i);
    for (uint32_t index = 0; index < kPlaces; ++index) {
      leave(i, index, false);
    }
  }
  /// Lets a card send itself a message: one that has taken one may look for more instead of making
  /// steps.
  void receive_one(uint32_t i) {
    MeshCard& card = *cards_[i];
    const Memory area = card.map(2 * regs::kPageBytes);
    TestRing& shared = *message_rings_.emplace_back(
        std::make_unique<TestRing>(card, RingConfig{.ring = 1, .log2 = 3}));
    TestRing& tx = *message_rings_.emplace_back(
        std::make_unique<TestRing>(card, RingConfig{.ring = 0, .log2 = 3}));
    shared.start();
    tx.start();
    shared.put(uint64_t{area.iova});
    shared.post();
    tx.put(regs::TxDesc{.control = regs::tx_desc::Control::ssize.put(14),
                        .dest_id = Mesh::kFirstId + i,
                        .cookie = 0,
                        .length = 8,
                        .addr = area.iova + regs::kPageBytes,
                        .aux = 0});
    tx.post();
    card.run();
    regs::SharedCpl cpl;
    EXPECT_TRUE(shared.take(&cpl));
  }
  [[nodiscard]] regs::BarrierDesc desc(uint32_t i, regs::BarrierOp op) const {
    const uint32_t n = how_.cards;
    uint32_t rounds = 0;
    std::vector<PeerOfRound> peers;
    for (; 1u << rounds < n; ++rounds) {
      const uint32_t away = 1u << rounds;
      const uint32_t after = Mesh::kFirstId + (i + away) % n;
      const uint32_t before = Mesh::kFirstId + (i + n - away) % n;
      if (how_.pledges && after == before) {
        peers.push_back({rounds, 0, after});
      } else {
        peers.push_back({rounds, 0, after, true, false});
        peers.push_back({rounds, 1, before, false, true});
      }
    }
    regs::BarrierDesc out = make_barrier_desc(rounds, peers, op);
    out.group = group_;
    out.epoch = epoch_;
    out.cookie = cookie();
    return out;
  }
  void poll(uint32_t i) {
    if (how_.looks) {
      cards_[i]->step_to_receive();
    } else {
      cards_[i]->work();
    }
  }
  void arrive(uint32_t i) {
    const regs::BarrierDesc run = desc(i, regs::BarrierOp::kRun);
    if (!how_.slots) {
      rings_[i]->put(run);
      rings_[i]->post();
      return;
    }
    uint32_t words[64];
    std::memcpy(words, &run, sizeof words);
    for (uint32_t w = 0; w < 64; ++w) {
      cards_[i]->write32(regs::barrier::slot(0, slot_ * 64 + w), words[w]);
    }
    cards_[i]->write32(regs::barrier::go(0, slot_), epoch_);
    if (how_.looks) {
      cards_[i]->step_to_start();
    }
  }
  /// Gives the cards the plan of the group, whose next barrier is the next one.
  void load() {
    for (uint32_t i = 0; i < how_.cards && loads_; ++i) {
      regs::BarrierDesc plan = desc(i, regs::BarrierOp::kLoad);
      plan.cookie = kCancelCookie;  // take() skips its completion
      rings_[i]->put(plan);
      rings_[i]->post();
      cards_[i]->run();
    }
  }
  void cancel(uint32_t i) {
    regs::BarrierDesc out = desc(i, regs::BarrierOp::kCancel);
    out.cookie = kCancelCookie;
    rings_[i]->put(out);
    rings_[i]->post();
  }
  /// Overwrites a completion that was taken with words that no completion has.
  void leave(uint32_t i, uint32_t index, bool phase) {
    const uint32_t left[4] = {kLeft, kLeft, kLeft, kLeft >> 1 | uint32_t{phase} << 31};
    std::memcpy(rings_[i]->completions.va + (index % kPlaces) * 16, left, sizeof left);
  }
  /// The completions of a card's barriers since the last call, without those of cancel().
  std::vector<regs::BarrierCpl> take(uint32_t i) {
    std::vector<regs::BarrierCpl> all;
    TestRing& ring = *rings_[i];
    for (;;) {
      uint32_t words[4];
      std::memcpy(words, ring.completions.va + (ring.cidx % kPlaces) * 16, sizeof words);
      const bool phase = words[3] >> 31 != 0;
      if (phase != (ring.cidx / kPlaces % 2 == 0) || words[3] << 1 == kLeft << 1 ||
          std::count(words, words + 3, kLeft) != 0) {
        return all;
      }
      leave(i, ring.cidx, phase);
      ++ring.cidx;
      if (words[0] != kCancelCookie) {
        all.push_back({words[0], words[1], words[2], words[3]});
      }
    }
  }
  void look(uint32_t i, bool is_early, Outcome* outcome) {
    for (const regs::BarrierCpl& end : take(i)) {
      EXPECT_EQ(end.cookie, cookie());
      EXPECT_FALSE(ended_[i]);
      ended_[i] = true;
      const bool ok = code_of(end.status) == Status::kOk;
      outcome->ok += ok ? 1 : 0;
      outcome->failed += ok ? 0 : 1;
      outcome->early += ok && is_early ? 1 : 0;
    }
  }
  [[nodiscard]] bool all_ended(uint32_t but) const {
    for (uint32_t i = 0; i < how_.cards; ++i) {
      if (i != but && !ended_[i]) {
        return false;
      }
    }
    return true;
  }

  [[nodiscard]] uint32_t cookie() const { return 0x40000000 | (epoch_ & 0xFFFF); }

  static constexpr uint32_t kLeft = 0xFFFFFFFF;
  static constexpr uint32_t kPlaces = 32;
  static constexpr uint32_t kCancelCookie = 1;

  Case how_;
  base::Random random_;
  ManualClock clock_;
  Mesh mesh_;
  bool loads_;
  std::vector<std::unique_ptr<MeshCard>> cards_;
  std::vector<std::unique_ptr<TestRing>> rings_;
  std::vector<std::unique_ptr<TestRing>> message_rings_;
  std::vector<bool> ended_;
  uint32_t group_ = 9;
  uint32_t slot_ = 1;
  uint32_t epoch_ = 0xFFFFFFFA;
};

class BarrierCards : public testing::TestWithParam<Case> {};

TEST_P(BarrierCards, NoneLeavesBeforeTheLastArrives) {
  Members members(GetParam(), {}, 1);
  for (uint32_t i = 0; i < 20; ++i) {
    const Outcome outcome = members.run();
    ASSERT_EQ(outcome.ok, GetParam().cards) << i;
    ASSERT_EQ(outcome.early, 0u) << i;
  }
  EXPECT_EQ(members.count(regs::barrier::foreign), 0u);
  EXPECT_GT(members.count(regs::barrier::early), 0u);
}

/// A slot that was never used before is seen as soon as its host says GO.
TEST(BarrierLooks, EachSlotStartsAtOnce) {
  Members members({.cards = 2, .exact = false, .pcie_seed = 0, .slots = true, .looks = true}, {},
                  7);
  for (uint32_t slot = 0; slot < 6;
       ++slot) {  // the epochs have not come to 0, which is in GO already
    members.use_slot(slot);
    const Outcome outcome = members.run();
    ASSERT_EQ(outcome.ok, 2u) << slot;
    EXPECT_LT(outcome.turns, 40u) << slot;
  }
}

/// Over a wire that loses nothing the notification of the peer is the answer.
TEST(BarrierPledges, EndABarrierWithoutAnAnswer) {
  for (const bool pledges : {false, true}) {
    Members members({.cards = 2,
                     .exact = false,
                     .pcie_seed = 0,
                     .slots = true,
                     .looks = true,
                     .pledges = pledges},
                    {}, 8);
    EXPECT_FALSE(members.ends_without_an_answer()) << "the first one might be refused";
    EXPECT_EQ(members.ends_without_an_answer(), pledges);
    EXPECT_EQ(members.ends_without_an_answer(), pledges);
  }
}

/// With no room for early notifications, the card answers RETRY until its member arrives.
TEST_P(BarrierCards, FullMemoriesDoNotBlock) {
  Members members(GetParam(), {}, 2, 0);
  for (uint32_t i = 0; i < 10; ++i) {
    ASSERT_EQ(members.run().ok, GetParam().cards) << i;
  }
  EXPECT_GT(members.count(regs::barrier::nacks_given), 0u);
}

TEST_P(BarrierCards, LostAnswersRefusalsAndSlownessDelayOnly) {
  constexpr uint32_t kKinds =
      static_cast<uint32_t>(Fault::kRetry) | static_cast<uint32_t>(Fault::kLostResponse) |
      static_cast<uint32_t>(Fault::kSlowReceiver) | static_cast<uint32_t>(Fault::kStuckQueue) |
      static_cast<uint32_t>(Fault::kLinkDown);
  Members members(GetParam(), {.seed = 5, .rate = 0.02, .kinds = kKinds}, 3);
  for (uint32_t i = 0; i < 20; ++i) {
    const Outcome outcome = members.run();
    ASSERT_EQ(outcome.ok, GetParam().cards) << i;
    ASSERT_EQ(outcome.early, 0u) << i;
  }
  EXPECT_GT(members.count(regs::barrier::resent), 0u);
}

TEST_P(BarrierCards, UnderAllFaultsEachEndsAndNoneEarly) {
  Members members(GetParam(), {.seed = 6, .rate = 0.05}, 4);
  uint32_t failures = 0;
  for (uint32_t i = 0; i < 30; ++i) {
    const Outcome outcome = members.run();
    ASSERT_EQ(outcome.ok + outcome.failed, GetParam().cards) << i;
    ASSERT_EQ(outcome.early, 0u) << i;
    if (outcome.failed > 0) {
      ++failures;
      members.regroup();
    }
  }
  if (!GetParam().pledges) {  // pledges to a card with faults have none
    EXPECT_GT(failures, 0u);
  }
}

TEST_P(BarrierCards, ADeadCardEndsTheBarrierOfAllOthers) {
  for (uint64_t seed = 1; seed <= 4; ++seed) {
    Members members(GetParam(), {}, seed);
    ASSERT_EQ(members.run().ok, GetParam().cards);
    const Outcome outcome = members.run(static_cast<uint32_t>(seed) % GetParam().cards);
    EXPECT_GE(outcome.ok + outcome.failed + 1, GetParam().cards) << seed;
    EXPECT_EQ(outcome.early, 0u) << seed;
  }
}

/// The peer of all these cancellations does not answer: the card keeps a bounded number of them.
TEST(BarrierCard, KeepsABoundedNumberOfBarriers) {
  constexpr uint32_t kPosted = 400;
  ManualClock clock;
  Mesh mesh(2);
  model::Config config;
  config.exact = true;
  MeshCard card(config, &clock, mesh.plug(0));
  card.bring_up(Mesh::kFirstId, kResponseUs);
  TestRing ring(card, {.ring = 5, .log2 = 9, .clog2 = 10});
  ring.start();
  for (uint32_t i = 0; i < kPosted; ++i) {
    regs::BarrierDesc desc =
        make_barrier_desc(1, {{0, 0, Mesh::kFirstId + 1, true, false}}, regs::BarrierOp::kCancel);
    desc.group = i % 128;
    desc.epoch = i / 128;
    ring.put(desc);
  }
  ring.post();
  size_t ended = ring.take_all<regs::BarrierCpl>().size();
  EXPECT_GE(ended, 128u);
  EXPECT_LE(ended, 256u);
  for (uint32_t i = 0; i < 10 && ended < kPosted; ++i) {
    clock.advance_ns(2000ull * kResponseUs);
    ended += ring.take_all<regs::BarrierCpl>().size();
  }
  EXPECT_EQ(ended, kPosted);
}

/// The other card is not stepped for a hundred response time-outs, which the wire knows.
TEST(BarrierCard, DoesNotBlameAPartnerThatDoesNotRun) {
  ManualClock clock;
  Mesh mesh(2);
  mesh.watch();
  std::unique_ptr<MeshCard> cards[2];
  std::unique_ptr<TestRing> rings[2];
  for (uint32_t i = 0; i < 2; ++i) {
    cards[i] = std::make_unique<MeshCard>(model::Config{}, &clock, mesh.plug(i));
    cards[i]->bring_up(Mesh::kFirstId + i, kResponseUs);
    rings[i] = std::make_unique<TestRing>(*cards[i], RingConfig{.ring = 5, .clog2 = 5});
    rings[i]->start();
  }
  const auto post = [&](uint32_t i) {
    rings[i]->put(make_barrier_desc(1, {{0, 0, Mesh::kFirstId + 1 - i}}));
    rings[i]->post();
  };
  post(0);
  for (uint32_t i = 0; i < 100; ++i) {
    clock.advance_ns(1000ull * kResponseUs);
    ASSERT_TRUE(rings[0]->take_all<regs::BarrierCpl>().empty());
  }
  post(1);
  for (uint32_t i = 0; i < 4; ++i) {
    cards[i % 2]->run();
  }
  for (uint32_t i = 0; i < 2; ++i) {
    const auto ends = rings[i]->take_all<regs::BarrierCpl>();
    ASSERT_EQ(ends.size(), 1u);
    EXPECT_EQ(code_of(ends[0].status), Status::kOk);
    EXPECT_EQ(ends[0].where, 0u) << "nothing was sent again";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cards, BarrierCards,
    testing::Values(Case{2, true, 0, false, false}, Case{2, false, 0, true, false},
                    Case{2, false, 0, true, true}, Case{3, false, 0, false, false},
                    Case{3, false, 0, false, true}, Case{3, true, 11, true, false},
                    Case{8, false, 0, true, false}, Case{8, false, 0, true, true},
                    Case{8, true, 0, false, false}, Case{8, true, 12, false, false},
                    Case{5, false, 0, false, false}, Case{2, false, 0, true, true, true},
                    Case{2, false, 0, false, false, true}, Case{8, false, 0, true, true, true},
                    Case{2, true, 0, true, true, true}));

}  // namespace
}  // namespace rio::test
