#include "lib/msg/credit.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>

namespace rio::msg {
namespace {

TEST(SendAccount, TakesWhatIsThere) {
  SendAccount account(2);
  EXPECT_TRUE(account.take());
  EXPECT_TRUE(account.take());
  EXPECT_FALSE(account.take());
  EXPECT_EQ(account.on_limit(3), 0);
  EXPECT_EQ(account.available(), 1);
  EXPECT_EQ(account.give_back(5), 1);
  EXPECT_FALSE(account.take());
}

TEST(SendAccount, RefusesTotalsThatGoBackOrTooFar) {
  SendAccount account(100);
  EXPECT_EQ(account.on_limit(99), -EPROTO);
  EXPECT_EQ(account.on_limit(100 + kWindowMax), -EPROTO);
  EXPECT_EQ(account.on_limit(kWindowMax), 0);
  EXPECT_EQ(account.on_limit(kWindowMax + 1), -EPROTO);  // more than may be out at once
  EXPECT_EQ(account.available(), kWindowMax);
}

TEST(RecvAccount, ALieIsFound) {
  RecvAccount account(1);
  EXPECT_EQ(account.arrive(), 0);
  EXPECT_EQ(account.arrive(), -EPROTO);
  EXPECT_FALSE(account.free());
  EXPECT_EQ(account.arrive(), -EPROTO);  // it was not told yet
  EXPECT_EQ(account.tell(), 2);
  EXPECT_EQ(account.arrive(), 0);
}

TEST(RecvAccount, IsDueWithHalfAWindowOrWhenTheSenderHasNothing) {
  RecvAccount account(5);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(account.arrive(), 0);
  }
  EXPECT_FALSE(account.free());
  EXPECT_FALSE(account.due());  // the sender has as much left
  EXPECT_TRUE(account.changed());
  EXPECT_FALSE(account.free());
  EXPECT_TRUE(account.due());
  EXPECT_FALSE(account.free());
  EXPECT_TRUE(account.due());
  EXPECT_EQ(account.tell(), 8);
  EXPECT_FALSE(account.due());
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(account.arrive(), 0);
  }
  EXPECT_FALSE(account.due());  // nothing came free
  EXPECT_FALSE(account.free());
  EXPECT_TRUE(account.due());
}

TEST(RecvAccount, LendsForAWhile) {
  RecvAccount records(1);
  ASSERT_EQ(records.arrive(), 0);
  EXPECT_TRUE(records.exhausted());
  records.lend(2);
  EXPECT_FALSE(records.exhausted());
  EXPECT_TRUE(records.due());
  EXPECT_EQ(records.tell(), 3);
  EXPECT_EQ(records.committed(), 3);
  ASSERT_EQ(records.arrive(), 0);
  EXPECT_TRUE(records.free());
  EXPECT_TRUE(records.free());
  EXPECT_EQ(records.committed(), 1);
  EXPECT_EQ(records.window(), 1);
}

TEST(RecvAccount, ShrinksByRecall) {
  RecvAccount account(6);
  for (int i = 0; i < 4; ++i) {
    ASSERT_EQ(account.arrive(), 0);
  }
  EXPECT_EQ(account.on_returned(3, 4), -EPROTO);  // more than was asked for
  EXPECT_EQ(account.on_returned(5, 3), -EPROTO);  // more than it has
  ASSERT_EQ(account.on_returned(3, 2), 0);
  EXPECT_EQ(account.window(), 3);
  EXPECT_EQ(account.committed(), 4);
  EXPECT_TRUE(account.free());  // the third
  EXPECT_FALSE(account.free());
  EXPECT_EQ(account.committed(), 3);
}

TEST(CreditTurn, OneOfEachIsOut) {
  CreditTurn here;
  CreditTurn there;
  ASSERT_TRUE(here.may_send());
  const uint8_t number = here.send();
  EXPECT_FALSE(here.may_send());
  EXPECT_EQ(here.on_told(there.tell()), 0);  // sent before it was read
  EXPECT_FALSE(here.may_send());
  ASSERT_EQ(there.on_credit(number), 0);
  EXPECT_FALSE(there.ack_due(false));
  EXPECT_TRUE(there.ack_due(true));
  EXPECT_EQ(here.on_ack(there.tell()), 0);
  EXPECT_FALSE(there.ack_due(true));
  EXPECT_TRUE(here.may_send());
  EXPECT_EQ(here.on_told(there.tell()), 0);  // and again with the next message
}

TEST(CreditTurn, RefusesLies) {
  CreditTurn turn;
  EXPECT_EQ(turn.on_ack(0), -EPROTO);
  EXPECT_EQ(turn.on_told(1), -EPROTO);
  EXPECT_EQ(turn.on_told(255), -EPROTO);
  EXPECT_EQ(turn.on_credit(2), -EPROTO);
  EXPECT_EQ(turn.on_credit(1), 0);
  EXPECT_EQ(turn.on_credit(2), -EPROTO);  // it cannot know that the first was read
  static_cast<void>(turn.send());
  EXPECT_EQ(turn.on_ack(0), -EPROTO);
  EXPECT_EQ(turn.on_told(0), 0);
  EXPECT_EQ(turn.on_told(1), 0);
  EXPECT_EQ(turn.on_told(0), -EPROTO);  // it was known
}

TEST(SharePool, GivesNothingTwice) {
  SharePool pool(10);
  EXPECT_EQ(pool.take(7), 7u);
  EXPECT_FALSE(pool.take_all(4));
  EXPECT_EQ(pool.take(7), 3u);
  EXPECT_EQ(pool.take(1), 0u);
  pool.put(5);
  EXPECT_TRUE(pool.take_all(5));
}

/// One account with a stream each way, against plain 64-bit counts, past the wrap of the totals.
TEST(Credit, AgreesWithPlainCounts) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  constexpr uint16_t kShare = 20;
  SendAccount sender(kShare);
  RecvAccount receiver(kShare);
  uint64_t allowed = kShare;
  uint64_t sent = 0;
  uint64_t flying = 0;
  uint64_t held = 0;
  uint64_t lent = 0;
  std::deque<uint16_t> totals;
  std::deque<uint64_t> plain;
  uint64_t limit = kShare;
  for (int i = 0; i < 2'000'000; ++i) {
    switch (random() % 5) {
      case 0:
        ASSERT_EQ(sender.available(), allowed - sent);
        if (sender.take()) {
          ++sent;
          ++flying;
        }
        break;
      case 1:
        if (flying > 0) {
          --flying;
          ++held;
          ASSERT_EQ(receiver.arrive(), 0);
        }
        break;
      case 2:
        if (held > 0) {
          --held;
          ASSERT_EQ(receiver.free(), lent > 0);
          lent > 0 ? --lent : ++limit;
        }
        break;
      case 3:
        if (receiver.due() || random() % 8 == 0) {
          totals.push_back(receiver.tell());
          plain.push_back(limit);
        } else if (random() % 1000 == 0 && receiver.committed() < 1000) {
          receiver.lend(3);
          lent += 3;
          limit += 3;
        }
        break;
      case 4:
        if (!totals.empty()) {
          ASSERT_EQ(sender.on_limit(totals.front()), 0);
          allowed = plain.front();
          totals.pop_front();
          plain.pop_front();
        }
        break;
    }
    ASSERT_EQ(receiver.held(), held);
    ASSERT_EQ(receiver.committed(), limit - sent + flying + held);
  }
  EXPECT_GT(sent, 100'000u);
}

}  // namespace
}  // namespace rio::msg
