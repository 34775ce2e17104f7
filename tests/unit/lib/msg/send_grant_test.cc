// The sender of a transfer: GRANT, EXTEND, ABORT and CLOSED.
#include "lib/msg/large_burst.hpp"
#include "tests/unit/lib/msg/grant_fixture.hpp"

namespace rio::msg::test {
namespace {

TEST(SendGrant, SendsTheGrantedMessages) {
  SendGrant sender;
  EXPECT_EQ(sender.may_post(), 0u);
  ASSERT_EQ(sender.on_grant(0, 2, 10, 4), 0);
  EXPECT_EQ(sender.mailbox(), 2);
  EXPECT_EQ(sender.may_post(), 4u);
  sender.posted(3);
  EXPECT_EQ(sender.may_post(), 1u);
  ASSERT_EQ(sender.on_extend(0, 10), 0);
  EXPECT_EQ(sender.may_post(), 7u);
  sender.posted(7);
  sender.completed(9);
  EXPECT_EQ(sender.state(), SendState::kSending);
  sender.completed(1);
  EXPECT_EQ(sender.state(), SendState::kDone);
  EXPECT_TRUE(sender.over());
}

TEST(SendGrant, RefusesMessagesThatNoHonestReceiverSends) {
  SendGrant sender;
  EXPECT_EQ(sender.on_grant(1, 1, 4, 4), -EPROTO);  // a grant for an attempt that was not requested
  EXPECT_EQ(sender.on_grant(0, 1, 4, 5), -EPROTO);  // more messages than the transfer has
  EXPECT_EQ(sender.on_grant(0, 1, 4, 0), -EPROTO);
  EXPECT_EQ(sender.on_grant(0, 1, 0, 0), -EPROTO);
  EXPECT_EQ(sender.on_extend(0, 2), -EPROTO);      // there is no grant to extend
  EXPECT_EQ(sender.on_done(0), -EPROTO);           // and nothing was closed
  EXPECT_EQ(sender.on_abort(0, kAgain), -EPROTO);  // nothing was granted that could be again
  EXPECT_EQ(sender.state(), SendState::kRequested);
  ASSERT_EQ(sender.on_grant(0, 1, 4, 2), 0);
  EXPECT_EQ(sender.on_grant(0, 1, 4, 2), -EPROTO);  // a second grant
  EXPECT_EQ(sender.on_extend(0, 2), -EPROTO);       // an extension must grow the total
  EXPECT_EQ(sender.on_extend(0, 5), -EPROTO);       // more messages than the transfer has
  EXPECT_EQ(sender.on_extend(1, 3), -EPROTO);
  EXPECT_EQ(sender.on_abort(1, kFailed), -EPROTO);
  EXPECT_EQ(sender.state(), SendState::kSending);
  ASSERT_EQ(sender.on_extend(0, 4), 0);
  sender.posted(4);
  sender.completed(4);
  ASSERT_EQ(sender.state(), SendState::kDone);
  EXPECT_EQ(sender.on_abort(0, kAgain), -EPROTO);  // all has arrived
}

TEST(SendGrant, EndsOnceWhatItShowsWasRead) {
  SendGrant sender;
  sender.show();
  EXPECT_EQ(sender.on_done(1), -EPROTO);
  ASSERT_EQ(sender.on_done(0), 0);
  EXPECT_EQ(sender.state(), SendState::kDone);
  EXPECT_TRUE(sender.over());
  EXPECT_FALSE(sender.is_shown());
}

TEST(SendGrant, SendsWhatItShowsIfThatIsGranted) {
  SendGrant sender;
  sender.show();
  grant_all(sender, 2);
  EXPECT_FALSE(sender.is_shown());
  EXPECT_EQ(sender.on_done(0), -EPROTO);
  send(sender, 2);
  EXPECT_EQ(sender.state(), SendState::kDone);
}

TEST(SendGrant, KnowsWhetherWhatItShowsMayBeReadAfterItsEnd) {
  SendGrant cancelled;
  cancelled.show();
  cancelled.stop(kFailed);
  EXPECT_TRUE(cancelled.is_shown());
  ASSERT_TRUE(cancelled.closed_due(0));
  EXPECT_EQ(cancelled.take_closed().attempt, 0);
  EXPECT_EQ(cancelled.on_done(0), 0);  // it has crossed CLOSED
  EXPECT_EQ(cancelled.state(), SendState::kEnded);

  SendGrant refused;
  refused.show();
  ASSERT_EQ(refused.on_abort(0, kFailed), 0);
  EXPECT_FALSE(refused.is_shown());
}

/// The receiver has lost the queue of a transfer with its card.
TEST(SendGrant, AsksAgainIfTheReceiverWantsIt) {
  SendGrant sender;
  ASSERT_EQ(sender.on_grant(0, 1, 4, 4), 0);
  sender.posted(3);
  ASSERT_EQ(sender.on_abort(0, kAgain), 0);
  EXPECT_EQ(sender.may_post(), 0u);
  EXPECT_FALSE(sender.closed_due(0));
  sender.completed(3);
  ASSERT_TRUE(sender.closed_due(0));
  EXPECT_TRUE(sender.take_closed().cause.again);
  EXPECT_EQ(sender.state(), SendState::kRequested);
  EXPECT_EQ(sender.on_grant(1, 2, 4, 4), 0);
}

TEST(SendGrant, LeavesTheRestToTheReceiverIfItIsToAskAgain) {
  for (const bool again : {true, false}) {
    SendGrant sender;
    ASSERT_EQ(sender.on_grant(0, 1, 4, 4), 0);
    sender.posted(1);
    sender.stop(again ? kAgain : kFailed);
    sender.rest_until(100);
    sender.leave_rest_to_receiver();
    sender.completed(1);
    EXPECT_EQ(sender.closed_due(0), again);
    ASSERT_TRUE(sender.closed_due(100));
    EXPECT_EQ(sender.take_closed().is_doubtful, again);
  }
}

TEST(SendGrant, ClosesWhenAllIsAnsweredAndDoubtIsOver) {
  SendGrant sender;
  ASSERT_EQ(sender.on_grant(0, 1, 8, 4), 0);
  sender.posted(3);
  sender.stop(kAgain);
  sender.rest_until(1000);
  EXPECT_EQ(sender.may_post(), 0u);
  sender.completed(2);
  EXPECT_FALSE(sender.closed_due(2000));
  sender.completed(1);
  EXPECT_FALSE(sender.closed_due(999));
  ASSERT_TRUE(sender.closed_due(1000));
  const SendGrant::Closed closed = sender.take_closed();
  EXPECT_EQ(closed.attempt, 0);
  EXPECT_EQ(closed.arrived, 0u) << "completions behind the first failed message prove nothing";
  EXPECT_TRUE(closed.cause.again);
  EXPECT_EQ(sender.state(), SendState::kRequested);
  EXPECT_EQ(sender.attempt(), 1);
  EXPECT_FALSE(sender.closed_due(1000));
  // Late messages about the old attempt are ignored.
  EXPECT_EQ(sender.on_extend(0, 8), 0);
  EXPECT_EQ(sender.state(), SendState::kRequested);
  // DONE: the receiver had received all messages.
  EXPECT_EQ(sender.on_done(1), 0);
  EXPECT_EQ(sender.state(), SendState::kDone);
}

TEST(SendGrant, GivesUpAfterTooManyAttempts) {
  SendGrant sender;
  for (int i = 0; i + 1 < kFruitlessMax; ++i) {
    grant_all(sender, 2);
    sender.stop(kAgain);
    ASSERT_TRUE(sender.closed_due(0));
    EXPECT_TRUE(sender.take_closed().cause.again);
  }
  grant_all(sender, 2);
  sender.stop(kAgain);
  EXPECT_FALSE(sender.take_closed().cause.again);
  EXPECT_TRUE(sender.over());
}

TEST(SendGrant, GoesOnAsLongAsAttemptsMakeProgress) {
  SendGrant sender;
  for (int i = 0; i + 1 < kAttemptsMax; ++i) {
    grant_all(sender, 2);
    if (i % (kFruitlessMax - 1) == 0) {
      sender.brought_further();
    }
    sender.posted(2);
    sender.completed(1);
    sender.stop(kAgain);
    sender.completed(1);
    ASSERT_TRUE(sender.closed_due(0));
    const SendGrant::Closed closed = sender.take_closed();
    ASSERT_TRUE(closed.cause.again) << i;
    ASSERT_EQ(closed.arrived, 1u);
    ASSERT_LT(sender.fruitless(), kFruitlessMax);  // the rests grow with fruitless attempts only
  }
  grant_all(sender, 2);
  sender.brought_further();
  EXPECT_FALSE(sender.may_ask_again());
}

TEST(SendGrant, AnswersAbortOnceForEachAttempt) {
  SendGrant waiting;
  ASSERT_EQ(waiting.on_abort(0, kFailed), 0);
  ASSERT_TRUE(waiting.closed_due(0));
  EXPECT_EQ(waiting.take_closed().arrived, 0u);
  EXPECT_TRUE(waiting.over());
  EXPECT_EQ(waiting.on_abort(0, kFailed), 0);  // ABORT crossed with CLOSED
  EXPECT_FALSE(waiting.closed_due(0));

  SendGrant done;
  grant_all(done, 1);
  send(done, 1);
  ASSERT_EQ(done.on_abort(0, kFailed), 0);
  ASSERT_TRUE(done.closed_due(0));
  EXPECT_EQ(done.take_closed().arrived, 1u);
  EXPECT_TRUE(done.over());

  SendGrant again;  // ABORT crossed with its CLOSED
  grant_all(again, 2);
  again.stop(kAgain);
  static_cast<void>(again.take_closed());
  ASSERT_EQ(again.on_abort(0, kFailed), 0);
  EXPECT_EQ(again.state(), SendState::kEnded);
  EXPECT_EQ(again.cause().reason, 7);
  EXPECT_FALSE(again.closed_due(0));
}

TEST(SendGrant, AnAcceptedOfferIsDoneOnlyWhenTheReceiverHasTakenIt) {
  SendGrant sender;
  sender.accept(3, 2, 2);
  send(sender, 2);
  EXPECT_EQ(sender.state(), SendState::kSending);  // the messages may have been refused
  ASSERT_EQ(sender.on_abort(0, kAgain), 0);        // the receiver says that they were
  ASSERT_TRUE(sender.closed_due(0));
  static_cast<void>(sender.take_closed());
  grant_all(sender, 2);
  send(sender, 2);
  EXPECT_EQ(sender.state(), SendState::kDone);

  SendGrant taken;
  taken.accept(3, 2, 2);
  send(taken, 2);
  ASSERT_EQ(taken.on_extend(0, 2), 0);
  EXPECT_EQ(taken.state(), SendState::kDone);
}

TEST(SendGrant, AnAbortThatCrossedIsAcceptedForAParkedOffer) {
  SendGrant sender;
  sender.accept(1, 4, 2);
  sender.posted(1);
  sender.stop(kAgain);
  sender.completed(1);
  static_cast<void>(sender.take_closed());
  EXPECT_EQ(sender.on_abort(0, kAgain), 0);  // ABORT crossed with CLOSED
  EXPECT_EQ(sender.state(), SendState::kRequested);
}

/// A burst of a few, or one that leaves a few, waits for room; all that is due never waits.
TEST(LargeBurst, IsNotShortUnlessFewAreDue) {
  EXPECT_EQ(large_burst(1, 1, 16), 1u);
  EXPECT_EQ(large_burst(20, 20, 16), 20u);
  EXPECT_EQ(large_burst(129, 144, 16), 129u);
  EXPECT_EQ(large_burst(129, 128, 16), 113u);  // and 16 later
  EXPECT_EQ(large_burst(129, 16, 16), 16u);
  EXPECT_EQ(large_burst(129, 15, 16), 0u);
  EXPECT_EQ(large_burst(31, 16, 16), 15u);  // no other transfer may take such room for ever
  EXPECT_EQ(large_burst(32, 31, 16), 16u);
  EXPECT_EQ(large_burst(15, 14, 16), 0u);
  EXPECT_EQ(large_burst(5, 0, 1), 0u);
}

}  // namespace
}  // namespace rio::msg::test
