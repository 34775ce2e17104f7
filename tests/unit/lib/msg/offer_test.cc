#include "lib/msg/offer.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>

namespace rio::msg {
namespace {

using Answer = OfferMaker::Answer;
using State = OfferMaker::State;

OfferBody body(uint32_t offer, uint32_t message_number) {
  OfferBody made{};
  made.offer = offer;
  made.message_number = message_number;
  made.len_max = 1 << 20;
  made.match_bits = 0x1200;
  made.ignore_bits = 0xff;
  made.unit_bytes = 256;
  made.window = 2;
  made.mailbox = 1;
  return made;
}

TEST(OfferMaker, EachMessageAnswersTheOfferForIt) {
  OfferMaker maker;
  Answer answer = Answer::kAccepted;
  ASSERT_EQ(maker.on_message(4, 0, &answer), 0);
  EXPECT_EQ(answer, Answer::kNone);
  EXPECT_EQ(maker.open(5), 1u);
  ASSERT_EQ(maker.on_message(5, 1, &answer), 0);
  EXPECT_EQ(answer, Answer::kAccepted);
  EXPECT_EQ(maker.open(6), 2u);
  ASSERT_EQ(maker.on_message(6, 0, &answer), 0);
  EXPECT_EQ(answer, Answer::kRefused);
  EXPECT_EQ(maker.state(), State::kNone);
}

TEST(OfferMaker, ARevokedOfferIsAnsweredAllTheSame) {
  OfferMaker maker;
  Answer answer = Answer::kNone;
  EXPECT_FALSE(maker.revoke());
  static_cast<void>(maker.open(1));
  EXPECT_TRUE(maker.revoke());
  EXPECT_FALSE(maker.revoke());
  ASSERT_EQ(maker.on_message(1, 1, &answer), 0);  // ACCEPT was already on its way
  EXPECT_EQ(answer, Answer::kAccepted);
  static_cast<void>(maker.open(2));
  EXPECT_TRUE(maker.revoke());
  EXPECT_EQ(maker.on_revoked(2), 0);
  EXPECT_EQ(maker.state(), State::kNone);
}

TEST(OfferMaker, RefusesLies) {
  OfferMaker maker;
  Answer answer = Answer::kNone;
  EXPECT_EQ(maker.on_message(1, 1, &answer), -EPROTO);  // nothing was offered
  EXPECT_EQ(maker.on_revoked(0), -EPROTO);
  static_cast<void>(maker.open(7));
  EXPECT_EQ(maker.on_message(7, 2, &answer), -EPROTO);
  EXPECT_EQ(maker.on_message(8, 1, &answer), -EPROTO);
  EXPECT_EQ(maker.on_revoked(1), -EPROTO);  // the port asked for no REVOKED
  EXPECT_EQ(maker.state(), State::kOpen);
}

TEST(OfferTaker, TakesOnlyWhatFits) {
  struct Case {
    uint64_t len_bytes;
    uint64_t match_bits;
    bool fits;
  };
  for (const Case& one : {Case{1 << 20, 0x1234, true}, Case{(1 << 20) + 1, 0x1234, false},
                          Case{0, 0x1234, false}, Case{8192, 0x1334, false}}) {
    OfferTaker taker;
    EXPECT_EQ(taker.take(8, 8192, 0x1200), nullptr);
    ASSERT_EQ(taker.on_offer(body(1, 9), 9), 0);
    EXPECT_TRUE(taker.held());
    const OfferBody* const offer = taker.take(9, one.len_bytes, one.match_bits);
    EXPECT_EQ(offer != nullptr, one.fits);
    EXPECT_FALSE(taker.held());
    bool answer = true;
    EXPECT_EQ(taker.on_revoke(1, &answer), 0);  // ACCEPT, the answer to the offer, is on its way
    EXPECT_FALSE(answer);
  }
}

TEST(OfferTaker, ForgetsLateOffersAndGivesUpRevokedOnes) {
  OfferTaker taker;
  ASSERT_EQ(taker.on_offer(body(1, 3), 4), 0);
  EXPECT_FALSE(taker.held());
  ASSERT_EQ(taker.on_offer(body(2, 4), 4), 0);
  bool answer = false;
  ASSERT_EQ(taker.on_revoke(2, &answer), 0);
  EXPECT_TRUE(answer);
  EXPECT_EQ(taker.take(4, 8192, 0x1200), nullptr);
  ASSERT_EQ(taker.on_offer(body(3, 5), 5), 0);
  taker.lapse_before(5);
  EXPECT_NE(taker.take(5, 8192, 0x1200), nullptr);
  ASSERT_EQ(taker.on_offer(body(4, 6), 6), 0);
  taker.lapse_before(7);  // message 6 was sent, small
  EXPECT_EQ(taker.take(7, 8192, 0x1200), nullptr);
}

TEST(OfferTaker, RefusesLies) {
  OfferTaker taker;
  bool answer = false;
  EXPECT_EQ(taker.on_revoke(0, &answer), -EPROTO);
  EXPECT_EQ(taker.on_revoke(1, &answer), -EPROTO);
  EXPECT_EQ(taker.on_offer(body(2, 1), 1), -EPROTO);  // the number before it was skipped
  EXPECT_EQ(taker.on_offer(body(1, 2), 1),
            -EPROTO);  // the sender does not wait for an offer for that message yet
  ASSERT_EQ(taker.on_offer(body(1, 1), 1), 0);
  EXPECT_EQ(taker.on_offer(body(2, 1), 1), -EPROTO);  // another offer is open
}

TEST(OfferTaker, MessageNumbersWrap) {
  OfferTaker taker;
  ASSERT_EQ(taker.on_offer(body(1, UINT32_MAX), 0), 0);
  EXPECT_FALSE(taker.held());
  EXPECT_EQ(taker.on_offer(body(2, 0), UINT32_MAX), -EPROTO);
}

/// Both sides with message streams that arrive late at random: each offer ends exactly once, and
/// both sides agree on how.
TEST(Offer, EachHasOneEnd) {
  enum class Kind { kMessage, kRevoked, kOffer, kRevoke };
  struct Said {
    Kind kind;
    uint32_t number;
    uint32_t offer;
  };
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  OfferMaker maker;
  OfferTaker taker;
  std::deque<Said> up;
  std::deque<Said> down;
  uint32_t next = UINT32_MAX - 5000;  // number of the next message
  uint32_t expected = next;
  uint32_t made = 0;
  uint32_t ended = 0;
  for (int i = 0; i < 400'000; ++i) {
    switch (random() % 5) {
      case 0: {
        const OfferBody* const offer = taker.take(next, random() % 2 == 0 ? 0 : 9000, 0x1277);
        up.push_back({Kind::kMessage, next++, offer != nullptr ? offer->offer : 0});
        break;
      }
      case 1:
        if (maker.state() == State::kNone) {
          down.push_back({Kind::kOffer, expected, maker.open(expected)});
          ++made;
        } else if (maker.revoke()) {
          down.push_back({Kind::kRevoke, 0, maker.number()});
        }
        break;
      case 2:
      case 3:
        if (!up.empty()) {
          const Said said = up.front();
          up.pop_front();
          if (said.kind == Kind::kRevoked) {
            ASSERT_EQ(maker.on_revoked(said.offer), 0);
            ++ended;
            break;
          }
          Answer answer = Answer::kNone;
          ASSERT_EQ(said.number, expected++);
          ASSERT_EQ(maker.on_message(said.number, said.offer, &answer), 0);
          ASSERT_EQ(answer == Answer::kAccepted, said.offer != 0);
          ended += answer == Answer::kNone ? 0 : 1;
        }
        break;
      case 4:
        if (!down.empty()) {
          const Said said = down.front();
          down.pop_front();
          if (said.kind == Kind::kOffer) {
            ASSERT_EQ(taker.on_offer(body(said.offer, said.number), next), 0);
            break;
          }
          bool answer = false;
          ASSERT_EQ(taker.on_revoke(said.offer, &answer), 0);
          if (answer) {
            up.push_back({Kind::kRevoked, 0, said.offer});
          }
        }
        break;
    }
    ASSERT_EQ(made - ended, maker.state() == State::kNone ? 0u : 1u);
  }
  EXPECT_GT(made, 1000u);
}

}  // namespace
}  // namespace rio::msg
