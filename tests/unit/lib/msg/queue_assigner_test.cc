#include "lib/msg/queue_assigner.hpp"

#include <gtest/gtest.h>

namespace rio::msg {
namespace {

using Pair = QueueSource::Pair;

TEST(QueueAssigner, GivesASourceThreeQueuesAndNoFourth) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[4];
  for (QueueWaiter& waiter : waiters) {
    assigner.wait(source, waiter);
  }
  QueuePlace places[3];
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(assigner.assign(&places[i]), &waiters[i]);
    EXPECT_EQ(places[i].mailbox, i + 1);
    EXPECT_FALSE(places[i].open);
    EXPECT_FALSE(places[i].reopen);
  }
  QueuePlace none;
  EXPECT_EQ(assigner.assign(&none), nullptr);
  EXPECT_TRUE(waiters[3].waiting());
  assigner.release(source, places[1]);
  EXPECT_EQ(assigner.assign(&none), &waiters[3]);
  EXPECT_TRUE(none.open);  // still open, for another source
  EXPECT_EQ(none.queue, places[1].queue);
  EXPECT_EQ(none.mailbox, 2);
}

TEST(QueueAssigner, ServesSourcesInTurn) {
  QueueAssigner assigner(3);
  QueueSource sources[3];
  QueueWaiter waiters[3][3];
  for (int i = 0; i < 3; ++i) {
    for (QueueWaiter& waiter : waiters[i]) {
      assigner.wait(sources[i], waiter);
    }
  }
  for (int round = 0; round < 3; ++round) {
    QueuePlace places[3];
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(assigner.assign(&places[i]), &waiters[i][round]);
    }
    QueuePlace none;
    EXPECT_EQ(assigner.assign(&none), nullptr);
    for (int i = 0; i < 3; ++i) {
      assigner.release(sources[i], places[i]);
    }
  }
}

TEST(QueueAssigner, TakesAQueueThatIsOpenForAnotherOnlyIfThereIsNoOther) {
  QueueAssigner assigner(3);
  QueueSource first;
  QueueSource second;
  QueueWaiter waiters[4];
  QueuePlace place;
  assigner.wait(first, waiters[0]);
  ASSERT_NE(assigner.assign(&place), nullptr);
  assigner.release(first, place);
  const unsigned warm = place.queue;
  for (int i = 1; i < 4; ++i) {
    assigner.wait(second, waiters[i]);
    ASSERT_NE(assigner.assign(&place), nullptr);
    EXPECT_EQ(place.reopen, i == 3);
    EXPECT_EQ(place.queue == warm, i == 3);
  }
}

TEST(QueueAssigner, KeepsAPairInQuarantineUntilClosedAndStopped) {
  QueueAssigner assigner(3);
  QueueSource source;
  QueueWaiter waiters[4];
  QueuePlace places[3];
  for (int i = 0; i < 3; ++i) {
    assigner.wait(source, waiters[i]);
    ASSERT_NE(assigner.assign(&places[i]), nullptr);
  }
  assigner.wait(source, waiters[3]);
  assigner.quarantine(source, places[2]);
  QueuePlace place;
  assigner.stopped(places[2].queue);
  EXPECT_EQ(assigner.free_queues(), 1u);
  EXPECT_EQ(assigner.assign(&place), nullptr);  // a queue is free, but no mailbox
  assigner.closed(source, 3);
  assigner.closed(source, 3);  // a second call does nothing
  EXPECT_EQ(assigner.assign(&place), &waiters[3]);
  EXPECT_EQ(place.mailbox, 3);

  assigner.wait(source, waiters[0]);
  assigner.quarantine(source, places[0]);
  assigner.closed(source, 1);
  EXPECT_EQ(assigner.assign(&place), nullptr);  // its ring is still open for the source
  assigner.stopped(places[0].queue);
  EXPECT_EQ(assigner.assign(&place), &waiters[0]);

  assigner.wait(source, waiters[1]);
  assigner.close(source, places[1]);
  EXPECT_EQ(assigner.assign(&place), nullptr);
  assigner.stopped(places[1].queue);
  EXPECT_EQ(assigner.assign(&place), &waiters[1]);
  EXPECT_FALSE(place.open);
}

TEST(QueueAssigner, KeepsTheMailboxesOfAGoneSourceInQuarantine) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[5];
  QueuePlace places[3];
  for (int i = 0; i < 3; ++i) {
    assigner.wait(source, waiters[i]);
    ASSERT_NE(assigner.assign(&places[i]), nullptr);
  }
  assigner.wait(source, waiters[3]);
  assigner.quarantine(source, places[0]);
  assigner.release(source, places[1]);
  EXPECT_EQ(assigner.died(source, 1000), 1u << places[1].queue | 1u << places[2].queue);
  EXPECT_FALSE(waiters[3].waiting());

  assigner.wait(source, waiters[4]);  // the source has restarted
  QueuePlace place;
  EXPECT_EQ(assigner.assign(&place), nullptr);
  for (const QueuePlace& old : places) {
    assigner.stopped(old.queue);
  }
  EXPECT_FALSE(assigner.rested(source, 999));
  EXPECT_EQ(assigner.assign(&place), nullptr);
  assigner.closed(source, 1);  // a late message of the old session, which has no meaning any more
  EXPECT_EQ(assigner.assign(&place), nullptr);
  EXPECT_TRUE(assigner.rested(source, 1000));
  EXPECT_EQ(assigner.assign(&place), &waiters[4]);
}

TEST(QueueAssigner, AQuarantineDoesNotEndBeforeItsRingIsStopped) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiter;
  QueuePlace place;
  assigner.wait(source, waiter);
  ASSERT_NE(assigner.assign(&place), nullptr);
  EXPECT_EQ(assigner.died(source, 5), 1u << place.queue);
  EXPECT_FALSE(assigner.rested(source, 9));
  assigner.stopped(place.queue);
  EXPECT_TRUE(assigner.rested(source, 9));
}

TEST(QueueAssigner, APairWithMessagesInDoubtRestsAlone) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[2];
  QueuePlace places[2];
  for (int i = 0; i < 2; ++i) {
    assigner.wait(source, waiters[i]);
    ASSERT_NE(assigner.assign(&places[i]), nullptr);
  }
  assigner.close_and_rest(source, places[0], 100);
  assigner.stopped(places[0].queue);
  assigner.release(source, places[1]);
  EXPECT_EQ(source.count(Pair::kRest), 1u);
  EXPECT_EQ(source.count(Pair::kFree), 2u);
  EXPECT_FALSE(assigner.rested(source, 99));
  EXPECT_TRUE(assigner.rested(source, 100));
  EXPECT_EQ(source.count(Pair::kFree), 3u);
  EXPECT_EQ(assigner.free_queues(), QueueAssigner::kQueues);
}

TEST(QueueAssigner, ARequestMayGoFirst) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[3];
  assigner.wait(source, waiters[0]);
  assigner.wait(source, waiters[1]);
  assigner.wait_first(source, waiters[2]);
  QueuePlace place;
  EXPECT_EQ(assigner.assign(&place), &waiters[2]);
  EXPECT_EQ(assigner.assign(&place), &waiters[0]);
  EXPECT_EQ(assigner.assign(&place), &waiters[1]);
}

TEST(QueueAssigner, OffersLeaveTwoQueuesAndAMailbox) {
  QueueAssigner assigner;
  QueueSource sources[4];
  QueuePlace place;
  EXPECT_TRUE(assigner.offer(sources[0], &place));
  EXPECT_TRUE(assigner.offer(sources[0], &place));
  EXPECT_FALSE(assigner.offer(sources[0], &place));  // the third mailbox is kept for requests
  for (int i = 1; i < 3; ++i) {
    EXPECT_TRUE(assigner.offer(sources[i], &place));
    EXPECT_TRUE(assigner.offer(sources[i], &place));
  }
  EXPECT_EQ(assigner.free_queues(), 2u);
  EXPECT_FALSE(assigner.offer(sources[3], &place));
  EXPECT_FALSE(assigner.wants_revoke());

  QueueWaiter waiters[3];
  for (QueueWaiter& waiter : waiters) {
    assigner.wait(sources[3], waiter);
  }
  QueuePlace other;
  EXPECT_NE(assigner.assign(&other), nullptr);
  EXPECT_NE(assigner.assign(&other), nullptr);
  EXPECT_EQ(assigner.assign(&other), nullptr);
  EXPECT_TRUE(assigner.wants_revoke());
  assigner.release(sources[2], place);  // the offer was refused or revoked
  EXPECT_EQ(assigner.offers(), 5u);
  EXPECT_EQ(assigner.assign(&other), &waiters[2]);
  EXPECT_TRUE(other.reopen);
}

TEST(QueueAssigner, AnAcceptedOfferCountsAsATransfer) {
  QueueAssigner assigner;
  QueueSource source;
  QueuePlace first;
  QueuePlace second;
  ASSERT_TRUE(assigner.offer(source, &first));
  ASSERT_TRUE(assigner.offer(source, &second));
  assigner.accepted(source, first);
  EXPECT_EQ(assigner.offers(), 1u);
  EXPECT_EQ(assigner.died(source, 0), 1u << first.queue | 1u << second.queue);
  EXPECT_EQ(assigner.offers(), 0u);
}

TEST(QueueAssigner, UnwaitRemovesFromTheMiddle) {
  QueueAssigner assigner;
  QueueSource source;
  QueueWaiter waiters[3];
  for (QueueWaiter& waiter : waiters) {
    assigner.wait(source, waiter);
  }
  assigner.unwait(waiters[1]);
  assigner.unwait(waiters[1]);
  QueuePlace place;
  EXPECT_EQ(assigner.assign(&place), &waiters[0]);
  EXPECT_EQ(assigner.assign(&place), &waiters[2]);
  EXPECT_EQ(assigner.assign(&place), nullptr);
}

}  // namespace
}  // namespace rio::msg
