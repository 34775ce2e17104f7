// Letters, contexts, retries, time-outs, quarantine, order. RIO Part 2 §4.2.5
#include <algorithm>
#include <set>
#include <tuple>

#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::Status;
using C = regs::tx_desc::Control;

class Letters : public CardTest {
 protected:
  void post(TestRing& ring, uint32_t mbox, uint32_t length, uint32_t cookie, uint32_t more = 0,
            uint32_t dest = kRemoteId) {
    regs::TxDesc desc = message(mbox, length, buffer().iova(), cookie, kSsize256, more);
    desc.dest_id = dest;
    ring.put(desc);
    ring.post();
  }
  const Buffer& buffer() {
    if (buffer_ == nullptr || &card() != buffer_of_) {
      buffer_ = std::make_unique<Buffer>(card(), 4096);
      buffer_of_ = &card();
    }
    return *buffer_;
  }
  static std::vector<Packet> first_segments(const std::vector<Packet>& all) {
    std::vector<Packet> firsts;
    std::copy_if(all.begin(), all.end(), std::back_inserter(firsts),
                 [](const Packet& p) { return p.segment == 0; });
    return firsts;
  }
  void expect_one(TestRing& ring, uint32_t cookie, Status status) {
    const auto done = ring.take_all<regs::TxCpl>();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].cookie, cookie);
    EXPECT_EQ(code_of(done[0].status), status);
  }

  std::unique_ptr<Buffer> buffer_;
  CardUnderTest* buffer_of_ = nullptr;
};
RIO_CONFORMANCE(Letters);

// T4
TEST_P(Letters, FourAreInFlightForEachDestinationAndMailbox) {
  TestRing& ring = tx({.log2 = 5});
  for (uint32_t i = 0; i < 6; ++i) {
    post(ring, 1, 2000, i);
  }
  std::vector<Packet> first = first_segments(sent());
  ASSERT_EQ(first.size(), 4u);
  std::set<uint32_t> letters;
  for (const Packet& packet : first) {
    letters.insert(packet.letter);
  }
  EXPECT_EQ(letters.size(), 4u);
}

TEST_P(Letters, OtherMailboxesAndDestinationsDoNotWait) {
  TestRing& ring = tx({.log2 = 9});
  for (uint32_t i = 0; i < 256; ++i) {
    post(ring, i % 64, 8, i);
  }
  for (uint32_t i = 0; i < 8; ++i) {
    post(ring, 0, 8, 256 + i, 0, kRemoteId + 1 + i / 4);
  }
  const std::vector<Packet> all = sent();
  EXPECT_EQ(all.size(), 264u);
  std::set<std::tuple<uint32_t, uint32_t, uint32_t>> places;
  for (const Packet& packet : all) {
    EXPECT_TRUE(places.emplace(packet.dest, packet.mbox, packet.letter).second);
  }
  answer_all(all);
  EXPECT_EQ(ring.take_all<regs::TxCpl>().size(), 264u);
}

// T5
TEST_P(Letters, SeveralSegmentsShareNamesWithSingleOnes) {
  // A single-segment message to mailbox 4*x+m has the {letter, mbox, msgseg} of segment x of a long
  // message in mailbox m.
  TestRing& ring = tx({.log2 = 6});
  for (uint32_t i = 0; i < 4; ++i) {
    post(ring, 1, 4096, i);
  }
  post(ring, 5, 8, 4);
  std::vector<Packet> all = sent();
  EXPECT_EQ(first_segments(all).size(), 4u) << "mailbox 5 has to wait for mailbox 1's letters";
  answer_all(all);
  all = sent();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].mbox, 5u);
  post(ring, 1, 4096, 5);
  all = first_segments(sent());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_NE(all[0].letter, 0u) << "letter 0 is taken in mailbox 5";
}

TEST_P(Letters, ALowerLimitOfLettersIsKept) {
  make({.letters = 2});
  TestRing& ring = tx({.log2 = 5});
  for (uint32_t i = 0; i < 5; ++i) {
    post(ring, 40, 8, i);
  }
  const std::vector<Packet> two = sent();
  ASSERT_EQ(two.size(), 2u);
  answer_all(two);
  EXPECT_EQ(sent().size(), 2u);
}

TEST_P(Letters, TransmitContextsLimitLongMessages) {
  make({.tx_contexts = 2});
  TestRing& ring = tx({.log2 = 5});
  for (uint32_t i = 0; i < 3; ++i) {
    post(ring, i, 512, i);
  }
  std::vector<Packet> all = sent();
  EXPECT_EQ(first_segments(all).size(), 2u);
  answer_all(all);
  EXPECT_EQ(first_segments(sent()).size(), 1u);
}

// T8
TEST_P(Letters, RetryIsSentAgainAndCounted) {
  TestRing& ring = tx();
  post(ring, 0, 600, 3);
  std::vector<Packet> all = sent();
  for (uint32_t i = 0; i < 3; ++i) {
    answer(all[0], Answer::kRetry);
    EXPECT_TRUE(sent().empty()) << "a pause comes first";
    card().advance_us(5);
    const std::vector<Packet> again = sent();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].segment, all[0].segment);
    EXPECT_EQ(again[0].letter, all[0].letter);
    EXPECT_EQ(again[0].data, all[0].data);
  }
  answer_all(all);
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(code_of(done[0].status), Status::kOk);
  EXPECT_EQ(retries_of(done[0].status), 3u);
}

// T8, T11
TEST_P(Letters, RetryLimitRefuses) {
  // Completions count up to 255 of them. The third uses a letter a second time.
  for (const uint32_t limit : {3u, 300u, 257u}) {
    reset(limit);
    TestRing& ring = tx();
    post(ring, 0, 8, 3);
    for (uint32_t i = 0; i < limit; ++i) {
      const std::vector<Packet> all = sent();
      ASSERT_EQ(all.size(), 1u) << i;
      answer(all[0], Answer::kRetry);
      card().advance_us(5);
    }
    EXPECT_TRUE(sent().empty());
    const auto done = ring.take_all<regs::TxCpl>();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(code_of(done[0].status), Status::kRetryExpired);
    EXPECT_EQ(retries_of(done[0].status), std::min(limit, 255u));
  }
}

// T8
TEST_P(Letters, WithoutALimitRetriesGoOn) {
  TestRing& ring = tx();
  post(ring, 0, 8, 3);
  for (uint32_t i = 0; i < 300; ++i) {
    const std::vector<Packet> all = sent();
    ASSERT_EQ(all.size(), 1u) << i;
    answer(all[0], Answer::kRetry);
    card().advance_us(5);
  }
  answer_all(sent());
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(retries_of(done[0].status), 255u);
}

// T9, T11
TEST_P(Letters, ErrorRefuses) {
  TestRing& ring = tx();
  post(ring, 0, 8, 3);
  answer_all(sent(), Answer::kError);
  expect_one(ring, 3, Status::kErrorResponse);
}

// T10, T11
TEST_P(Letters, SilenceLeavesTheMessageInDoubtWithoutResending) {
  TestRing& ring = tx();
  post(ring, 0, 700, 3);
  EXPECT_FALSE(sent().empty());
  card().advance_us(kResponseUs * 9 / 10);
  EXPECT_TRUE(ring.take_all<regs::TxCpl>().empty());
  card().advance_us(latest_us(kResponseUs) - kResponseUs * 9 / 10);
  expect_one(ring, 3, Status::kResponseTimeout);
  card().advance_us(kResponseUs * 5);
  EXPECT_TRUE(sent().empty());
}

TEST_P(Letters, OneMissingAnswerOfManyLeavesItInDoubt) {
  if (!card().segmented()) {
    GTEST_SKIP() << "messages travel as units";
  }
  TestRing& ring = tx();
  post(ring, 0, 4096, 3);
  std::vector<Packet> all = sent();
  ASSERT_EQ(all.size(), 16u);
  all.erase(all.begin() + 7);
  answer_all(all);
  card().advance_us(kResponseUs * 5 / 4);
  expect_one(ring, 3, Status::kResponseTimeout);
}

// T10
TEST_P(Letters, ALateAnswerChangesNothing) {
  TestRing& ring = tx();
  post(ring, 0, 8, 3);
  const std::vector<Packet> late = sent();
  card().advance_us(kResponseUs * 5 / 4);
  expect_one(ring, 3, Status::kResponseTimeout);
  answer_all(late);
  EXPECT_TRUE(ring.take_all<regs::TxCpl>().empty());
  post(ring, 0, 8, 4);
  const std::vector<Packet> next = sent();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_NE(next[0].letter, late[0].letter);
  answer_all(late);  // repeated: still nothing
  EXPECT_TRUE(ring.take_all<regs::TxCpl>().empty());
}

/// After a time-out or an ERROR the letter rests for two response time-outs, and as long as a
/// receiver may be late.
// T12, T13
TEST_P(Letters, DoubtAndErrorQuarantineTheLetter) {
  for (const bool doubt : {true, false}) {
    make({.letters = 1, .pass_over = 0});
    TestRing& ring = tx();
    post(ring, 0, 512, 1);
    post(ring, 0, 512, 2);
    post(ring, 1, 8, 3);
    const std::vector<Packet> first = sent();
    ASSERT_FALSE(first.empty());
    if (doubt) {
      card().advance_us(latest_us(kResponseUs));
      expect_one(ring, 1, Status::kResponseTimeout);
    } else {
      answer_all(first, Answer::kError);
      expect_one(ring, 1, Status::kErrorResponse);
    }
    card().advance_us(latest_us(2 * kResponseUs) - latest_us(kResponseUs) + kResponseUs * 9 / 10);
    EXPECT_TRUE(sent().empty()) << (doubt ? "doubt" : "error");
    card().advance_us(kRestUs - kResponseUs);
    const std::vector<Packet> next = first_segments(sent());
    ASSERT_EQ(next.size(), 2u) << (doubt ? "doubt" : "error");
    EXPECT_EQ(next[0].mbox, 0u);
  }
}

// T12
TEST_P(Letters, QuarantineAfterAnErrorWaitsForTheOtherSegments) {
  if (!card().segmented()) {
    GTEST_SKIP() << "messages travel as units";
  }
  make({.letters = 1});
  TestRing& ring = tx();
  post(ring, 0, 512, 1);
  post(ring, 0, 512, 2);
  const std::vector<Packet> first = sent();
  ASSERT_EQ(first.size(), 2u);
  answer(first[0], Answer::kError);  // the other segment gets no answer: it expires first
  expect_one(ring, 1, Status::kErrorResponse);
  card().advance_us(latest_us(2 * kResponseUs) + kResponseUs * 9 / 10);
  EXPECT_TRUE(sent().empty());
  card().advance_us(kRestUs - kResponseUs);
  EXPECT_FALSE(sent().empty());
}

// T7
TEST_P(Letters, OrderFlagWaitsForAllAnswersToTheSameMailbox) {
  TestRing& ring = tx();
  post(ring, 2, 1000, 1);
  post(ring, 2, 8, 2, C::order.put(1));
  std::vector<Packet> all = sent();
  EXPECT_EQ(first_segments(all).size(), 1u);
  const Packet last = all.back();
  all.pop_back();
  answer_all(all);
  EXPECT_TRUE(sent().empty());
  answer(last);
  all = sent();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].data.size(), 8u);
}

// T7
TEST_P(Letters, OrderFlagDoesNotWaitForOtherDestinations) {
  TestRing& ring = tx();
  post(ring, 2, 8, 1);
  post(ring, 2, 8, 2, C::order.put(1), kRemoteId + 1);
  post(ring, 3, 8, 3, C::order.put(1));
  EXPECT_EQ(sent().size(), 3u);
}

TEST_P(Letters, DoorbellsRetryAndExpireAndTimeOut) {
  reset(2);
  TestRing& ring = tx();
  const auto bell = [](uint32_t cookie) {
    return regs::TxDesc{C::op.put(1) | C::inline_.put(1), kRemoteId, cookie, 2, 7, 0};
  };
  ring.put(bell(1));
  ring.post();
  std::vector<Packet> all = sent();
  ASSERT_EQ(all.size(), 1u);
  respond(all[0], Answer::kRetry);
  card().advance_us(5);
  all = sent();
  ASSERT_EQ(all.size(), 1u);
  respond(all[0], Answer::kRetry);
  card().advance_us(5);
  EXPECT_TRUE(sent().empty());
  expect_one(ring, 1, Status::kRetryExpired);
  ring.put(bell(2));
  ring.post();
  respond(sent().at(0), Answer::kError);
  expect_one(ring, 2, Status::kErrorResponse);
  ring.put(bell(3));
  ring.post();
  const std::vector<Packet> late = sent();
  card().advance_us(kResponseUs * 6 / 5);
  expect_one(ring, 3, Status::kResponseTimeout);
  ring.put(bell(4));
  ring.post();
  EXPECT_NE(sent().at(0).tid, late.at(0).tid) << "the id rests";
  respond(late[0], Answer::kDone);
  EXPECT_TRUE(ring.take_all<regs::TxCpl>().empty());
}

TEST_P(Letters, TwoHundredAndFiftySixDoorbellsAreInFlight) {
  TestRing& ring = tx({.log2 = 9});
  for (uint32_t i = 0; i < 300; ++i) {
    ring.put(regs::TxDesc{C::op.put(1) | C::inline_.put(1), kRemoteId, i, 2, i, 0});
  }
  ring.post();
  std::vector<Packet> all = sent();
  ASSERT_EQ(all.size(), 256u);
  for (const Packet& packet : all) {
    respond(packet, Answer::kDone);
  }
  all = sent();
  EXPECT_EQ(all.size(), 44u);
  EXPECT_EQ(ring.take_all<regs::TxCpl>().size(), 256u);
}

/// Answers that arrived while the card was not stepped are answers: no message is in doubt.
TEST_P(Letters, WaitingAnswersCountBeforeTimeOuts) {
  TestRing& ring = tx();
  post(ring, 0, 8, 1);
  ring.put(regs::TxDesc{C::op.put(1) | C::inline_.put(1), kRemoteId, 2, 2, 7, 0});
  ring.post();
  for (const Packet& packet : sent()) {
    if (packet.kind == Packet::kDoorbell) {
      respond(packet, Answer::kDone);
    } else {
      answer(packet);
    }
  }
  card().sleep_us(10 * kResponseUs);
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(code_of(done[0].status), Status::kOk);
  EXPECT_EQ(code_of(done[1].status), Status::kOk);
}

/// A message sent after a long sleep has its full time.
TEST_P(Letters, TheClockOfAMessageStartsWhenItIsSent) {
  TestRing& ring = tx();
  card().run();
  card().sleep_us(10 * kResponseUs);
  post(ring, 0, 8, 1);
  ring.put(regs::TxDesc{C::op.put(1) | C::inline_.put(1), kRemoteId, 2, 2, 7, 0});
  ring.post();
  const std::vector<Packet> all = sent();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_TRUE(ring.take_all<regs::TxCpl>().empty());
  card().advance_us(kResponseUs / 2);
  EXPECT_TRUE(ring.take_all<regs::TxCpl>().empty());
}

/// A card that is stepped only now and then still gives up.
TEST_P(Letters, SilenceEndsEvenIfTheCardMostlySleeps) {
  TestRing& ring = tx();
  post(ring, 0, 8, 1);
  ring.put(regs::TxDesc{C::op.put(1) | C::inline_.put(1), kRemoteId, 2, 2, 7, 0});
  ring.post();
  EXPECT_EQ(sent().size(), 2u);
  for (int i = 0; i < 8; ++i) {
    card().sleep_us(kResponseUs / 4);
    card().run();
  }
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(code_of(done[0].status), Status::kResponseTimeout);
  EXPECT_EQ(code_of(done[1].status), Status::kResponseTimeout);
}

}  // namespace
}  // namespace rio::test
