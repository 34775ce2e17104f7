#include "lib/msg/credit.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>

namespace rio::msg {
namespace {

/// Takes a credit, if there is one.
[[nodiscard]] bool take(SendAccount& account) {
  const bool has = account.available() != 0;
  if (has) {
    account.take_known();
  }
  return has;
}

TEST(SendAccount, TakesAvailableCredit) {
  SendAccount account(2);
  EXPECT_TRUE(take(account));
  EXPECT_TRUE(take(account));
  EXPECT_FALSE(take(account));
  EXPECT_EQ(account.on_limit(3), 0);
  EXPECT_EQ(account.available(), 1);
  EXPECT_TRUE(take(account));
  EXPECT_FALSE(take(account));
}

TEST(SendAccount, RefusesTotalsThatGoBackOrTooFar) {
  SendAccount account(100);
  EXPECT_EQ(account.on_limit(99), -EPROTO);
  EXPECT_EQ(account.on_limit(100 + kWindowMax), -EPROTO);
  EXPECT_EQ(account.on_limit(kWindowMax), 0);
  EXPECT_EQ(account.on_limit(kWindowMax + 1), -EPROTO);  // more than may be out at once
  EXPECT_EQ(account.available(), kWindowMax);
}

TEST(SendAccount, SplitsAndKeepsBack) {
  SendAccount account(10);
  SendAccount part = account.split(4);
  EXPECT_EQ(account.available(), 6);
  EXPECT_EQ(part.available(), 4);
  account.join(part);
  EXPECT_EQ(account.available(), 10);
  part = account.split(10);
  EXPECT_TRUE(take(part));
  EXPECT_FALSE(take(account));
  EXPECT_EQ(account.on_limit(13), 0);
  const uint16_t kept_back = account.take_all();
  EXPECT_EQ(kept_back, 3);
  EXPECT_EQ(account.on_limit(15), 0);  // arrived meanwhile
  EXPECT_EQ(account.available(), 2);
  account.put_back(kept_back);
  EXPECT_EQ(account.available(), 5);
}

TEST(RecvAccount, ClosesWithTheArrivedMessages) {
  RecvAccount account(6);
  account.arrive_known(4);
  account.free_known(1);
  EXPECT_EQ(account.held(), 3);
  EXPECT_EQ(account.close(), 3u);  // 7 may be sent, 4 have come
  EXPECT_EQ(account.limit(), 7);
  EXPECT_EQ(account.left(), 0);
}

TEST(RecvAccount, AMessageWithoutCreditIsRefused) {
  RecvAccount account(1);
  EXPECT_EQ(account.arrive(), 0);
  EXPECT_EQ(account.arrive(), -EPROTO);
  EXPECT_FALSE(account.free());
  EXPECT_EQ(account.arrive(), -EPROTO);  // the credit for it was not sent yet
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

TEST(SharePool, GivesNothingTwice) {
  SharePool pool(10);
  EXPECT_TRUE(pool.take_all(7));
  EXPECT_FALSE(pool.take_all(4));
  EXPECT_EQ(pool.free(), 3u);
  EXPECT_TRUE(pool.take_all(3));
  EXPECT_FALSE(pool.take_all(1));
  pool.put(5);
  EXPECT_TRUE(pool.take_all(5));
}

/// One account with a stream of messages each way, against plain 64-bit counts, past the wrap of
/// the 16-bit totals.
TEST(Credit, AgreesWithPlainCounts) {
  const uint32_t seed = rio::test::first_seed();
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
        if (take(sender)) {
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
