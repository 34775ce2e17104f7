// Doorbells, a full ring, completions in any order, wraps, stops.
#include "tests/unit/pmd/dev/tx_queue_fixture.hpp"

#include <gtest/gtest.h>

namespace rio::pmd {
namespace {

TEST_F(TxQueueTest, ABurstTakesOneDoorbellAndNoReads) {
  const TxMessage three[3] = {message(1), message(2), message(3)};
  expect_tail(3);
  EXPECT_EQ(queue_->burst(three, 3), 3);
  EXPECT_EQ(queue_->mmio().writes, 1u);
  EXPECT_EQ(queue_->mmio().reads, 0u);
  EXPECT_EQ(bus_->polls, 1u);
}

TEST_F(TxQueueTest, AnEmptyBurstRingsNoDoorbell) {
  EXPECT_EQ(queue_->burst(nullptr, 0), 0);
  EXPECT_EQ(queue_->mmio().writes, 0u);
  EXPECT_EQ(bus_->polls, 1u);  // the card may still have work
}

TEST_F(TxQueueTest, AFullRingAcceptsWhatFits) {
  std::vector<TxMessage> six;
  for (uint64_t i = 0; i < 6; ++i) {
    six.push_back(message(i));
  }
  EXPECT_EQ(queue_->free_count(), 4);
  expect_tail(4);
  EXPECT_EQ(queue_->burst(six.data(), 6), 4);
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
  EXPECT_EQ(queue_->free_count(), 0);
  EXPECT_EQ(queue_->outstanding(), 4);
  EXPECT_EQ(queue_->burst(six.data(), 1), 0);
  EXPECT_EQ(queue_->stats().rejected, 0u);
}

TEST_F(TxQueueTest, ReapReturnsTheFateOfMessages) {
  const TxMessage three[3] = {message(0xAAAAAAAA00000001, 0x1000, 100), message(2), message(3)};
  post(three, 3);
  script_.complete(*bus_, 0, 0, 0x11223344, 0);
  script_.complete(*bus_, 1, 1, 0x55667788, 1 | 0xFE << 8);
  TxDone done[4];
  ASSERT_EQ(queue_->reap(done, 4), 2);
  EXPECT_EQ(done[0].cookie, 0xAAAAAAAA00000001u);
  EXPECT_EQ(done[0].time_ticks, 0x11223344u);
  EXPECT_EQ(done[0].status, Status::kOk);
  EXPECT_EQ(done[0].retries, 0);
  EXPECT_EQ(done[1].cookie, 2u);
  EXPECT_EQ(done[1].time_ticks, 0x55667788u);
  EXPECT_EQ(done[1].status, Status::kRetryExpired);
  EXPECT_EQ(done[1].retries, 0xFE);
  EXPECT_EQ(queue_->stats().messages, 1u);
  EXPECT_EQ(queue_->stats().bytes, 100u);
  EXPECT_EQ(queue_->stats().failed, 1u);
  EXPECT_EQ(queue_->outstanding(), 1);
}

TEST_F(TxQueueTest, RetriesOfADeliveredMessageAreReported) {
  expect_tail(1);
  ASSERT_EQ(send(message(9)), 1);
  script_.complete(*bus_, 0, 0, 0, 5 << 8);
  TxDone done;
  ASSERT_EQ(queue_->reap(&done, 1), 1);
  EXPECT_EQ(done.status, Status::kOk);
  EXPECT_EQ(done.retries, 5);
}

TEST_F(TxQueueTest, ReapTakesNoMoreThanAsked) {
  const TxMessage three[3] = {message(1), message(2), message(3)};
  post(three, 3);
  for (uint32_t i = 0; i < 3; ++i) {
    complete(i, i);
  }
  bus_->polls = 0;
  EXPECT_EQ(reap(0), Cookies{});
  EXPECT_EQ(bus_->polls, 0u);
  EXPECT_EQ(reap(2), (Cookies{1, 2}));
  EXPECT_EQ(reap(2), (Cookies{3}));
}

TEST_F(TxQueueTest, ReapPollsOnlyWhenThereIsNothingAndLooksAgain) {
  expect_tail(1);
  ASSERT_EQ(send(message(1)), 1);
  bus_->polls = 0;
  EXPECT_EQ(reap(), Cookies{});
  EXPECT_EQ(bus_->polls, 1u);
  bus_->on_poll = [this] { complete(0, 0); };
  EXPECT_EQ(reap(), (Cookies{1}));
  EXPECT_EQ(bus_->polls, 2u);
  expect_tail(2);
  bus_->on_poll = nullptr;
  ASSERT_EQ(send(message(2)), 1);
  complete(1, 1);
  bus_->polls = 0;
  EXPECT_EQ(reap(), (Cookies{2}));
  EXPECT_EQ(bus_->polls, 0u);
}

TEST_F(TxQueueTest, AStragglerMayLastALap) {
  const TxMessage four[4] = {message(10), message(11), message(12), message(13)};
  post(four, 4);
  complete(0, 3);
  complete(1, 1);
  complete(2, 2, 3);
  EXPECT_EQ(reap(), (Cookies{13, 11, 12}));
  EXPECT_EQ(queue_->outstanding(), 1);
  // Slots 1 to 3 are free, but the next entry needs the straggler's.
  EXPECT_EQ(queue_->free_count(), 0);
  EXPECT_EQ(send(message(14)), 0);
  complete(3, 0);
  EXPECT_EQ(reap(), (Cookies{10}));
  EXPECT_EQ(queue_->free_count(), 4);
  EXPECT_EQ(queue_->outstanding(), 0);
  post(four, 8);
  for (uint32_t i = 4; i < 8; ++i) {
    complete(i, i);
  }
  EXPECT_EQ(reap(), (Cookies{10, 11, 12, 13}));
  EXPECT_EQ(queue_->stats().bad_completions, 0u);
}

TEST_F(TxQueueTest, AStragglerBlocksOnlyItsOwnSlot) {
  const TxMessage four[4] = {message(10), message(11), message(12), message(13)};
  post(four, 4);
  complete(0, 0);
  complete(1, 1);
  complete(2, 3);
  EXPECT_EQ(reap(), (Cookies{10, 11, 13}));
  expect_tail(6);  // entry 6 would go into entry 2's slot
  EXPECT_EQ(queue_->burst(four, 4), 2);
  complete(3, 5);
  complete(4, 4);
  EXPECT_EQ(reap(), (Cookies{11, 10}));
  EXPECT_EQ(send(message(1)), 0);
  complete(5, 2);
  EXPECT_EQ(reap(), (Cookies{12}));
  EXPECT_EQ(queue_->free_count(), 4);
}

TEST_F(TxQueueTest, BadCompletionsAreCountedAndDropped) {
  const TxMessage three[3] = {message(20), message(21), message(22)};
  post(three, 3);
  complete(0, 3);           // not posted yet
  complete(1, 0xFFFFFFFF);  // before the first
  complete(2, 4);           // right slot, next lap
  EXPECT_EQ(reap(), Cookies{});
  EXPECT_EQ(queue_->stats().bad_completions, 3u);
  EXPECT_EQ(queue_->outstanding(), 3);
  complete(3, 1);
  complete(4, 1);  // twice, still behind a straggler
  complete(5, 0);
  EXPECT_EQ(reap(), (Cookies{21, 20}));
  complete(6, 0);  // twice, in order
  complete(7, 2);
  EXPECT_EQ(reap(), (Cookies{22}));
  EXPECT_EQ(queue_->stats().bad_completions, 5u);
  complete(8, 2);  // nothing is outstanding: noticed with the next entry
  EXPECT_EQ(reap(), Cookies{});
  EXPECT_EQ(queue_->stats().bad_completions, 5u);
  expect_tail(4);
  ASSERT_EQ(send(message(23)), 1);
  EXPECT_EQ(reap(), Cookies{});
  EXPECT_EQ(queue_->stats().bad_completions, 6u);
  EXPECT_EQ(queue_->stats().messages, 3u);
}

constexpr uint32_t more(uint32_t count) {
  return count << 16;
}

TEST_F(TxQueueTest, ACompletionMayReportSeveralMessages) {
  for (const uint32_t start : {0u, 0xFFFFFFFDu}) {
    open(3, start);
    std::vector<TxMessage> eight;
    for (uint32_t i = 0; i < 8; ++i) {
      eight.push_back(message(i, 0x1000, static_cast<uint16_t>(10 + i)));
    }
    expect_tail(start + 8);
    ASSERT_EQ(queue_->burst(eight.data(), 8), 8);
    complete(start, start + 5, more(5));
    EXPECT_EQ(reap(2), (Cookies{0, 1}));
    EXPECT_EQ(queue_->free_count(), 2);
    EXPECT_EQ(reap(1), (Cookies{2}));
    EXPECT_EQ(reap(), (Cookies{3, 4, 5}));
    EXPECT_EQ(queue_->stats().bytes, 75u);
    complete(start + 1, start + 7, more(1) | 3 << 8);  // the last one was sent again
    TxDone done[2];
    ASSERT_EQ(queue_->reap(done, 2), 2);
    EXPECT_EQ(done[0].retries, 0);
    EXPECT_EQ(done[1].retries, 3);
    EXPECT_EQ(done[1].cookie, 7u);
    EXPECT_EQ(queue_->stats().messages, 8u);
    EXPECT_EQ(queue_->outstanding(), 0);
  }
}

TEST_F(TxQueueTest, SeveralMessagesMayBeReportedBehindAStraggler) {
  open(3, 0);
  std::vector<TxMessage> seven;
  for (uint32_t i = 0; i < 7; ++i) {
    seven.push_back(message(i));
  }
  expect_tail(7);
  ASSERT_EQ(queue_->burst(seven.data(), 7), 7);
  complete(0, 4, more(2));  // 2 to 4
  EXPECT_EQ(reap(2), (Cookies{2, 3}));
  EXPECT_EQ(reap(2), (Cookies{4}));
  complete(1, 6, more(1));
  complete(2, 1, more(1));
  EXPECT_EQ(reap(), (Cookies{5, 6, 0, 1}));
  EXPECT_EQ(queue_->free_count(), 8);
  EXPECT_EQ(queue_->stats().bad_completions, 0u);
}

TEST_F(TxQueueTest, ACompletionOfTooManyMessagesIsDropped) {
  const TxMessage four[4] = {message(10), message(11), message(12), message(13)};
  post(four, 4);
  complete(0, 2, more(3));      // one more than there are
  complete(1, 2, more(1) | 2);  // several, but not delivered
  EXPECT_EQ(reap(), Cookies{});
  EXPECT_EQ(queue_->stats().bad_completions, 2u);
  complete(2, 1);
  complete(3, 2, more(1));  // 1 for the second time
  EXPECT_EQ(reap(), (Cookies{11}));
  EXPECT_EQ(queue_->stats().bad_completions, 3u);
  EXPECT_EQ(queue_->outstanding(), 3);
}

TEST_F(TxQueueTest, CompletionsWrapOnTheirOwn) {
  const TxMessage four[4] = {message(20), message(21), message(22), message(23)};
  post(four, 4);
  complete(0, 99);
  EXPECT_EQ(reap(), Cookies{});  // the completions are now one ahead of the entries
  complete(1, 0);
  complete(2, 1);
  complete(3, 2);
  complete(4, 3);
  // The words that a read beyond the end of the ring would find.
  const uint32_t decoy[4] = {0, 3, 0xBAD, 0x80000000};
  std::memcpy(script_.completion(*bus_, 3) + 16, decoy, sizeof decoy);
  TxDone done[4];
  ASSERT_EQ(queue_->reap(done, 4), 4);
  EXPECT_EQ(done[3].cookie, 23u);
  EXPECT_EQ(done[3].time_ticks, 1003u);
}

TEST_F(TxQueueTest, ABadCompletionBetweenGoodOnesCostsNothingElse) {
  const TxMessage three[3] = {message(20), message(21), message(22)};
  post(three, 3);
  complete(0, 0);
  complete(1, 77);
  complete(2, 1);
  complete(3, 2);
  EXPECT_EQ(reap(), (Cookies{20, 21, 22}));
}

TEST_F(TxQueueTest, StaleCompletionsOfTheLastLapDoNotCount) {
  for (uint32_t i = 0; i < 4; ++i) {
    expect_tail(i + 1);
    ASSERT_EQ(send(message(i)), 1);
    complete(i, i);
    ASSERT_EQ(reap(), (Cookies{i}));
  }
  expect_tail(5);
  ASSERT_EQ(send(message(4)), 1);
  EXPECT_EQ(reap(), Cookies{});  // slot 0 still holds completion 0, phase 1
  complete(4, 4);                // phase 0
  EXPECT_EQ(reap(), (Cookies{4}));
}

class TxQueueWrapTest : public TxQueueTest, public ::testing::WithParamInterface<uint32_t> {};

// Several laps from any start, in order and in swapped pairs.
TEST_P(TxQueueWrapTest, ManyLaps) {
  for (const bool turned : {false, true}) {
    const uint32_t start = GetParam();
    open(3, start);
    for (uint32_t step = 0; step < 40; ++step) {
      const uint32_t index = start + step * 2;
      const TxMessage two[2] = {message(step), message(step + 1000, 0x1000 + 8 * step)};
      expect_tail(index + 2);
      ASSERT_EQ(queue_->burst(two, 2), 2);
      EXPECT_EQ(entry(index + 1)[16], static_cast<uint8_t>(8 * step));
      EXPECT_EQ(reap(), Cookies{}) << step;
      complete(index, turned ? index + 1 : index);
      complete(index + 1, turned ? index : index + 1);
      ASSERT_EQ(reap(), turned ? (Cookies{step + 1000, step}) : (Cookies{step, step + 1000}));
    }
    EXPECT_EQ(queue_->stats().bad_completions, 0u);
    EXPECT_EQ(queue_->stats().messages, 80u);
  }
}

INSTANTIATE_TEST_SUITE_P(Starts, TxQueueWrapTest,
                         ::testing::Values(0, 3, 8, 13, 65536 - 21, 0x80000000 - 5, 0xFFFFFFFF - 33,
                                           0xFFFFFFF8, 0xFFFFFFFF));

TEST_F(TxQueueTest, EachArmWritesTheConsumedIndexAndAnotherNumber) {
  expect_tail(1);
  ASSERT_EQ(send(message(1)), 1);
  complete(0, 0);
  ASSERT_EQ(reap(), (Cookies{1}));
  for (uint32_t seq = 1; seq <= 4096; ++seq) {
    bar_.expect_write(script_.arm_offset(), 1 | seq << 20);  // the 4096th is 0 again
    queue_->arm();
  }
}

TEST_F(TxQueueTest, FlushedEntriesAreReapedAfterTheStop) {
  expect_tail(1);
  ASSERT_EQ(send(message(1)), 1);
  bus_->on_poll = [this] { complete(0, 0, 6); };
  bar_.verify();
  script_.expect_stop(bar_);
  complete(0, 0, 6);
  EXPECT_EQ(queue_->stop(), 0);
  EXPECT_EQ(queue_->stop(), 0);  // no further access to the BAR
  TxDone done;
  ASSERT_EQ(queue_->reap(&done, 1), 1);
  EXPECT_EQ(done.status, Status::kFlushed);
  EXPECT_EQ(bus_->live_blocks(), 1u);
  queue_.reset();
  EXPECT_EQ(bus_->live_blocks(), 0u);
}

/// A ring stopped without waiting, and restarted in place.
class TxQueueRestartTest : public TxQueueTest {
 protected:
  void TearDown() override {}

  void begin_stop() {
    bar_.expect_read(script_.control_offset(), 0x10001)
        .expect_read(script_.status_offset(), 0x10001)
        .expect_write(script_.control_offset(), 2);
    queue_->begin_stop();
    bar_.verify();
  }
  void expect_stopped(uint32_t status, int answer) {
    bar_.expect_read(script_.status_offset(), status);
    EXPECT_EQ(queue_->stopped(), answer);
  }
  void restart(uint32_t index) {
    bar_.expect_write(script_.config_offset() + 0x14, index)
        .expect_write(script_.tail_offset(), index)
        .expect_read(script_.control_offset(), 2)
        .expect_read(script_.status_offset(), 2)
        .expect_write(script_.control_offset(), 0x10003)
        .expect_read(script_.status_offset(), 0x10003);
    EXPECT_EQ(queue_->restart(), 0);
    bar_.verify();
  }
  void close_restarted() {
    bar_.expect_read(script_.control_offset(), 0x10003)
        .expect_read(script_.status_offset(), 0x10003)
        .expect_write(script_.control_offset(), 4)
        .expect_read(script_.status_offset(), 4);
    queue_.reset();
    bar_.verify();
  }
};

TEST_F(TxQueueRestartTest, LaterPostsContinueTheIndices) {
  for (const uint32_t start : {0u, 3u, 0xFFFFFFFEu}) {
    open(2, start);
    const TxMessage three[3] = {message(1), message(2), message(3)};
    post(three, start + 3);
    begin_stop();
    expect_stopped(0x10001, 0);  // not noticed yet
    expect_stopped(0x20002, 0);  // stopping
    complete(start, start + 1, 6);
    complete(start + 1, start + 2, 6);
    complete(start + 2, start, 3);
    expect_stopped(2, 1);
    EXPECT_EQ(queue_->restart(), -EBUSY);  // not reaped
    EXPECT_EQ(reap(), (Cookies{2, 3, 1}));
    restart(start + 3);
    EXPECT_EQ(queue_->next_index(), start + 3);
    EXPECT_EQ(queue_->free_count(), 4);
    post(three, start + 6);
    EXPECT_EQ(reap(), Cookies{}) << "they are from before the stop";
    for (uint32_t i = 3; i < 6; ++i) {
      complete(start + i, start + i);
    }
    EXPECT_EQ(reap(), (Cookies{1, 2, 3}));
    EXPECT_EQ(queue_->stats().bad_completions, 0u);
    close_restarted();
  }
}

TEST_F(TxQueueRestartTest, EntriesOfTwoSlotsHaveOneCompletion) {
  const TxGather pair = {.cookie = 5,
                         .iova = {0x1000, 0x2000, 0, 0},
                         .length_bytes = {8, 8, 0, 0},
                         .dest_id = 7,
                         .count = 2,
                         .mbox = 0,
                         .flags = 0};
  expect_tail(2);
  ASSERT_EQ(queue_->burst_gather(&pair, 1), 1);
  begin_stop();
  complete(0, 0, 6);
  EXPECT_EQ(reap(), (Cookies{5}));
  expect_stopped(2, 1);
  restart(2);
  expect_tail(3);
  ASSERT_EQ(send(message(6)), 1);
  complete(2, 2);  // counted from the ring's beginning
  EXPECT_EQ(reap(), (Cookies{6}));
  close_restarted();
}

TEST_F(TxQueueRestartTest, OnlyAStoppedRingRestarts) {
  EXPECT_EQ(queue_->restart(), -EBUSY);
  script_.expect_stop(bar_);
  queue_.reset();
}

TEST_F(TxQueueRestartTest, ACardThatIsGoneCountsAsStopped) {
  begin_stop();
  bar_.expect_read(script_.status_offset(), 0xFFFFFFFF).expect_read(0x0, 0xFFFFFFFF);
  EXPECT_EQ(queue_->stopped(), -ENODEV);
  queue_.reset();  // no further access to the BAR
  bar_.verify();
}

TEST_F(TxQueueRestartTest, ListsOutstandingEntries) {
  const TxMessage three[3] = {message(1), message(2), message(3)};
  post(three, 3);
  complete(0, 1);
  EXPECT_EQ(reap(), (Cookies{2}));
  EXPECT_EQ(queue_->oldest_index(), 0u);
  EXPECT_TRUE(queue_->is_out(0));
  EXPECT_FALSE(queue_->is_out(1));
  EXPECT_TRUE(queue_->is_out(2));
  script_.expect_stop(bar_);
  queue_.reset();
}

}  // namespace
}  // namespace rio::pmd
