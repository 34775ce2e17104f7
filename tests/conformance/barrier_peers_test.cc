// Barriers whose peers refuse, are silent, fail, or do not belong to them. card.md: Barriers
#include "tests/conformance/barrier_test.hpp"

namespace rio::test {
namespace {

namespace words = regs::barrier;
using regs::BarrierOp;

using Sent = std::vector<std::pair<uint32_t, uint16_t>>;

/// The cancellations of two_rounds().
[[nodiscard]] Sent cancels(uint32_t epoch = 0) {
  return {{kPeerA, cancel(epoch)}, {kPeerB, cancel(epoch)}};
}

class BarrierPeers : public BarrierCardTest {
 protected:
  /// The events of foreign notifications since the last call.
  std::vector<regs::EventCpl> foreign_events() {
    auto all = events_->take_all<regs::EventCpl>();
    events_->give_back();
    std::erase_if(all, [](const regs::EventCpl& event) {
      return event.type != static_cast<uint32_t>(regs::EventType::kBarrierForeign);
    });
    return all;
  }
};
RIO_CONFORMANCE(BarrierPeers);

// C12
TEST_P(BarrierPeers, ForeignNotificationsAreRefusedCountedAndReported) {
  events().give_back();
  barriers();
  post(two_rounds());
  const Sent foreign = {{kStranger, notice(0)}, {kPeerB, notice(0)},    {kPeerA, notice(1)},
                        {kPeerA, notice(2)},    {kPeerA, notice(21)},   {kPeerA, notice(31)},
                        {kStranger, cancel()},  {kPeerA, notice(0, 2)}, {kPeerA, notice(0, 5)}};
  for (const auto& [source, info] : foreign) {
    EXPECT_EQ(tell(source, info), Answer::kError) << source << ' ' << info;
    const auto seen = foreign_events();
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen[0].source, source);
    EXPECT_EQ(seen[0].info, info);
  }
  EXPECT_EQ(count(words::foreign), foreign.size());
  expect_no_end();
  take_part();
  expect_end(Status::kOk);
}

// C12
TEST_P(BarrierPeers, AForeignEarlyNotificationIsFoundLater) {
  events().give_back();
  barriers();
  EXPECT_EQ(tell(kStranger, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  EXPECT_TRUE(foreign_events().empty());
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  const auto seen = foreign_events();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].source, kStranger);
  EXPECT_EQ(seen[0].info, notice(0));
  EXPECT_EQ(count(words::foreign), 1u);
  expect_no_end();
}

/// No notification of a stranger, and none of a peer but the awaited ones, ends the barrier or
/// makes it send.
// C12
TEST_P(BarrierPeers, NoForgedNotificationCompletesABarrier) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const auto info = static_cast<uint16_t>(notice(0) | bits);
    tell(kStranger, info);
    if (info != cancel() && info != notice(1)) {
      tell(kPeerB, info);
    }
    if (info != cancel() && info != notice(0)) {
      tell(kPeerA, info);
    }
  }
  expect_notices({});
  expect_no_end();
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  respond_all(expect_notices({{kPeerB, notice(1)}}));
  expect_end(Status::kOk);
}

// C14
TEST_P(BarrierPeers, RefusedNotificationsAreSentAgainEachTimeLater) {
  constexpr uint32_t kDelayUs = 100;
  card().write32(regs::id::retry_delay_us(), kDelayUs);
  card().run();
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}), Answer::kRetry);
  for (uint32_t i = 0; i < 9; ++i) {
    const uint32_t delay_us = kDelayUs << std::min(i, 6u);
    card().advance_us(delay_us - 5);
    expect_notices({});
    card().advance_us(latest_us(delay_us + delay_us / 4) - delay_us + 10);
    respond_all(expect_notices({{kPeerA, notice(0)}}), i < 8 ? Answer::kRetry : Answer::kDone);
  }
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  respond_all(expect_notices({{kPeerB, notice(1)}}));
  EXPECT_EQ(retries_of(expect_end(Status::kOk).status), 9u);
  EXPECT_EQ(count(words::nacks_taken), 9u);
  EXPECT_EQ(count(words::resent), 0u);
}

// C15, C18, C30
TEST_P(BarrierPeers, ASilentPeerIsNamedAndAllAreTold) {
  barriers({}, 2);
  card().write32(words::resend_limit(0), 0);  // counts from the next start of the ring on
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  expect_notices({{kPeerB, notice(1)}});
  card().advance_us(kResponseUs - 100);
  expect_notices({});
  card().advance_us(latest_us(kResponseUs) - kResponseUs + 200);
  expect_notices({{kPeerB, notice(1)}});
  card().advance_us(latest_us(kResponseUs));
  expect_notices({{kPeerB, notice(1)}});
  expect_no_end();
  card().advance_us(latest_us(kResponseUs));
  const regs::BarrierCpl end = expect_end(Status::kResponseTimeout);
  EXPECT_EQ(place_of(end), 3u);
  EXPECT_EQ(regs::barrier_cpl::Where::resent.get(end.where), 2u);
  EXPECT_EQ(count(words::resent), 2u);
  // The peer that is not there cannot be told; after the same number of resends the card gives up.
  const auto first = expect_notices(cancels());
  respond(first[0].dest == kPeerA ? first[0] : first[1], Answer::kDone);
  for (uint32_t i = 0; i < 2; ++i) {
    card().advance_us(latest_us(kResponseUs));
    expect_notices({{kPeerB, cancel()}});
  }
  card().advance_us(10 * kResponseUs);
  expect_notices({});
  expect_no_end();
  ring_->stop();
  ring_->start();
  post(two_rounds(1));
  expect_notices({{kPeerA, notice(0, 1)}});
  card().advance_us(latest_us(kResponseUs));
  expect_end(Status::kResponseTimeout);
}

/// The answer was lost, not the notification: its copy must not count for another barrier.
// C16
TEST_P(BarrierPeers, AnEndAfterAResendIsHeldBack) {
  barriers({}, 1);
  post(two_rounds());
  expect_notices({{kPeerA, notice(0)}});
  card().advance_us(latest_us(kResponseUs));
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  respond_all(expect_notices({{kPeerB, notice(1)}}));
  card().advance_us(2 * kResponseUs - 100);
  expect_no_end();
  card().advance_us(latest_us(2 * kResponseUs) - 2 * kResponseUs + 200);
  EXPECT_EQ(regs::barrier_cpl::Where::resent.get(expect_end(Status::kOk).where), 1u);
}

// C17, C18
TEST_P(BarrierPeers, AnErrorAnswerEndsTheBarrier) {
  barriers({}, 3);
  post(two_rounds());
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  const auto both = expect_notices({{kPeerA, notice(0)}, {kPeerB, notice(1)}});
  respond(both[0].dest == kPeerB ? both[0] : both[1], Answer::kError);
  EXPECT_EQ(place_of(expect_end(Status::kErrorResponse)), 3u);
  respond_all(expect_notices(cancels()), Answer::kError);
  card().advance_us(10 * kResponseUs);
  expect_notices({});
}

// C18
TEST_P(BarrierPeers, ACancellationThatIsRefusedIsSentAgain) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}), Answer::kError);
  expect_end(Status::kErrorResponse);
  for (uint32_t i = 0; i < 3; ++i) {
    respond_all(expect_notices(cancels()), Answer::kRetry);
    card().advance_us(2000);
  }
  respond_all(expect_notices(cancels()));
  card().advance_us(10 * kResponseUs);
  expect_notices({});
}

// C19
TEST_P(BarrierPeers, ACancellationEndsTheBarrierAndIsPassedOnOnce) {
  barriers();
  post(two_rounds());
  expect_notices({{kPeerA, notice(0)}});
  EXPECT_EQ(tell(kPeerB, cancel()), Answer::kDone);
  EXPECT_EQ(place_of(expect_end(Status::kPeerFailed)), 3u);
  respond_all(expect_notices(cancels()));
  EXPECT_EQ(tell(kPeerA, cancel()), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, cancel()), Answer::kDone);
  expect_notices({});
  expect_no_end();
  EXPECT_EQ(count(words::cancelled), 1u);
  run_one(1);
}

// C19
TEST_P(BarrierPeers, ACancellationWaitsForItsDescriptor) {
  barriers();
  for (uint32_t epoch = 0; epoch < 2; ++epoch) {  // the second time the group is loaded
    EXPECT_EQ(tell(kPeerA, cancel(epoch)), Answer::kDone);
    post(two_rounds(epoch));
    EXPECT_EQ(place_of(expect_end(Status::kPeerFailed)), 0u);
    respond_all(expect_notices(cancels(epoch)));
    post(two_rounds(epoch + 1, BarrierOp::kLoad));
    expect_end(Status::kOk);
  }
  run_one(2);
}

/// An answer that was on its way when the barrier ended is not taken for one to a cancellation.
// C18
TEST_P(BarrierPeers, ALateAnswerIsNoAnswerToACancellation) {
  barriers({}, 1);
  post(two_rounds());
  const auto late = expect_notices({{kPeerA, notice(0)}});
  EXPECT_EQ(tell(kPeerB, cancel()), Answer::kDone);
  expect_end(Status::kPeerFailed);
  expect_notices(cancels());
  respond_all(late, Answer::kDone);
  card().advance_us(latest_us(kResponseUs));
  respond_all(expect_notices(cancels()));
}

// C20
TEST_P(BarrierPeers, AHostCancelsABarrierThatItHasPostedOrNot) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  post(two_rounds(0, BarrierOp::kCancel));
  auto ends = ring_->take_all<regs::BarrierCpl>();
  ASSERT_EQ(ends.size(), 2u);
  std::ranges::sort(ends, {}, &regs::BarrierCpl::index);
  EXPECT_EQ(code_of(ends[0].status), Status::kFlushed);
  EXPECT_EQ(code_of(ends[1].status), Status::kOk);
  respond_all(expect_notices(cancels()));
  post(two_rounds(1, BarrierOp::kCancel));
  expect_end(Status::kOk);
  respond_all(expect_notices(cancels(1)));
  EXPECT_EQ(tell(kPeerA, notice(0, 1)), Answer::kDone);
  EXPECT_EQ(count(words::stale), 1u);
  post(two_rounds(2));
  post(two_rounds(1, BarrierOp::kCancel));
  EXPECT_EQ(expect_end(Status::kOk).index, 4u) << "another epoch than that which runs";
  take_part(2);
  expect_end(Status::kOk);
}

/// Answers of a stranger come faster than the card looks at them.
// C15
TEST_P(BarrierPeers, AFloodOfAnswersStopsNoTimeOut) {
  barriers();
  post(two_rounds());
  Packet stray;
  stray.kind = Packet::kResponse;
  stray.source = kStranger;
  stray.dest = kOwnId;
  stray.tid = expect_notices({{kPeerA, notice(0)}})[0].tid;
  card().sleep_us(latest_us(kResponseUs));
  regs::BarrierCpl end{};
  for (uint32_t step = 0; step < 6000 && !ring_->take(&end); ++step) {
    while (card().send(stray)) {
    }
    card().work();
  }
  EXPECT_EQ(code_of(end.status), Status::kResponseTimeout);
}

/// Notifications of the epoch that the host cancels count for no other one.
// C11, C20
TEST_P(BarrierPeers, ACancelledEpochOfALoadedGroupIsForgotten) {
  barriers();
  post(two_rounds(0, BarrierOp::kLoad));
  expect_end(Status::kOk);
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, cancel()), Answer::kDone);
  post(two_rounds(0, BarrierOp::kCancel));
  expect_end(Status::kOk);
  respond_all(expect_notices(cancels()));
  post(two_rounds(1));
  respond_all(expect_notices({{kPeerA, notice(0, 1)}}));
  take_turns(1);
}

// C28
TEST_P(BarrierPeers, NotificationsWaitForTheLink) {
  barriers();
  card().set_link(false);
  card().run();
  post(two_rounds());
  expect_notices({});
  expect_no_end();
  card().set_link(true);
  take_part();
  expect_end(Status::kOk);
}

/// A barrier fails while the link is down: the notifications that it has not sent must not be sent
/// later, when the low bits of their epoch name another barrier.
// C28
TEST_P(BarrierPeers, ABarrierThatEndedSendsNoNotificationLater) {
  barriers();
  card().set_link(false);
  card().run();
  post(two_rounds());
  card().advance_us(latest_us(kResponseUs));
  expect_end(Status::kResponseTimeout);
  card().set_link(true);
  respond_all(expect_notices(cancels()));
  expect_notices({});
}

// C29
TEST_P(BarrierPeers, CountersCountSinceTheReset) {
  barriers();
  run_one(0);
  EXPECT_EQ(count(words::sent), 2u);
  EXPECT_EQ(count(words::received), 2u);
  ring_->stop();
  ring_->start();
  run_one(1);
  EXPECT_EQ(count(words::sent), 4u);
  EXPECT_EQ(count(words::received), 4u);
  reset();
  for (const auto word :
       {words::sent, words::received, words::early, words::nacks_given, words::nacks_taken,
        words::resent, words::stale, words::foreign, words::cancelled}) {
    EXPECT_EQ(count(word), 0u);
  }
  barriers();
  run_one(2);
  EXPECT_EQ(count(words::sent), 2u);
}

}  // namespace
}  // namespace rio::test
