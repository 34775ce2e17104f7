// The receiver of a transfer: windows, grants, and how an attempt ends.
#include "tests/unit/lib/msg/grant_fixture.hpp"

namespace rio::msg::test {
namespace {

TEST(RecvGrant, KeepsAWindowAndReportsHalves) {
  RecvGrant receiver;
  EXPECT_EQ(receiver.may_post(), 0u);
  EXPECT_EQ(grant(receiver, 10, 4), 4u);
  receiver.completed(1);
  receiver.posted(1);
  EXPECT_FALSE(receiver.extend_due());
  receiver.completed(1);
  receiver.posted(1);
  EXPECT_TRUE(receiver.extend_due());
  EXPECT_EQ(receiver.tell(), 6u);
  receiver.completed(4);
  EXPECT_EQ(receiver.may_post(), 4u);
  receiver.posted(4);
  EXPECT_EQ(receiver.tell(), 10u);
  receiver.completed(3);
  EXPECT_EQ(receiver.state(), RecvState::kReceiving);
  receiver.completed(1);
  EXPECT_EQ(receiver.state(), RecvState::kDone);
}

TEST(RecvGrant, ReportsTheLastMessagesHoweverFew) {
  RecvGrant receiver;
  grant(receiver, 8, 7);
  receiver.completed(1);
  receiver.posted(1);
  EXPECT_TRUE(receiver.extend_due());
}

TEST(RecvGrant, LetsTheLastMessagesExceedTheWindow) {
  RecvGrant whole;
  EXPECT_EQ(grant(whole, 144, 128), 144u);
  RecvGrant receiver;
  EXPECT_EQ(grant(receiver, 145, 128), 128u);
  EXPECT_EQ(receiver.may_post(), 0u);
  receiver.completed(1);
  EXPECT_EQ(receiver.may_post(), 17u);
  receiver.posted(17);
  EXPECT_TRUE(receiver.extend_due());
  EXPECT_EQ(receiver.tell(), 145u);
  receiver.completed(144);
  EXPECT_EQ(receiver.state(), RecvState::kDone);
}

TEST(RecvGrant, RefusesMessagesThatNoHonestSenderSends) {
  RecvGrant receiver;
  EXPECT_EQ(receiver.on_closed(0, 1, kFailed), -EPROTO);  // sent without a grant
  EXPECT_EQ(receiver.on_closed(0, 0, kAgain), -EPROTO);
  grant(receiver, 4, 2);
  EXPECT_EQ(receiver.on_closed(0, 3, kFailed), -EPROTO);
  EXPECT_EQ(receiver.on_closed(1, 0, kFailed), -EPROTO);
  EXPECT_EQ(receiver.state(), RecvState::kReceiving);
  for (int i = 0; i + 1 < kAttemptsMax; ++i) {
    ASSERT_EQ(receiver.on_closed(receiver.attempt(), 0, kAgain), 0);
    receiver.start(4, 2);
  }
  EXPECT_EQ(receiver.on_closed(receiver.attempt(), 0, kAgain), -EPROTO);
}

/// The entry of a message that was refused may hold the message behind it.
TEST(RecvGrant, KeepsMessagesThatBothSidesSaw) {
  RecvGrant receiver;
  grant(receiver, 8, 4);
  receiver.completed(3);
  ASSERT_EQ(receiver.on_closed(0, 2, kAgain), 0);
  EXPECT_EQ(receiver.kept(), 2u);
  grant(receiver, 6, 4);
  receiver.completed(1);
  ASSERT_EQ(receiver.on_closed(1, 4, kAgain), 0) << "entries that the card has not completed yet";
  EXPECT_EQ(receiver.kept(), 1u);
}

TEST(RecvGrant, StopsAndIsClosed) {
  RecvGrant receiver;
  grant(receiver, 4, 2);
  EXPECT_TRUE(receiver.stop(kFailed));
  EXPECT_FALSE(receiver.stop(kFailed));
  EXPECT_EQ(receiver.may_post(), 0u);
  EXPECT_FALSE(receiver.extend_due());
  ASSERT_EQ(receiver.on_closed(0, 1, kAgain),
            0);  // CLOSED crossed with ABORT: the sender does not go on
  EXPECT_EQ(receiver.state(), RecvState::kEnded);
  EXPECT_EQ(receiver.cause().reason, 7);
}

TEST(RecvGrant, TheSenderMayRequestAgainAndGiveUpBeforeItHearsOfTheEnd) {
  RecvGrant done;
  grant(done, 1, 1);
  done.completed(1);
  EXPECT_EQ(done.on_closed(0, 1, kAgain), 0);
  EXPECT_EQ(done.on_closed(1, 0, kFailed), 0);
  EXPECT_EQ(done.state(), RecvState::kDone);
  EXPECT_EQ(done.on_closed(2, 0, kFailed), -EPROTO);
}

TEST(RecvGrant, AParkedTransferWaitsAgain) {
  RecvGrant receiver;
  receiver.told_by_offer(2);
  EXPECT_TRUE(receiver.stop(kAgain));
  EXPECT_EQ(receiver.state(), RecvState::kParked);
  ASSERT_EQ(receiver.on_closed(0, 2, kAgain), 0);
  EXPECT_EQ(receiver.state(), RecvState::kWaiting);
  EXPECT_EQ(receiver.attempt(), 1);
  EXPECT_EQ(receiver.on_closed(0, 2, kAgain), 0);  // CLOSED of an attempt that is over
  EXPECT_EQ(receiver.state(), RecvState::kWaiting);
}

}  // namespace
}  // namespace rio::msg::test
