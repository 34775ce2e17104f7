// Entries that wait for a letter, a context or an answer, and those that pass them. card.md:
// Sending
#include <algorithm>

#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::Status;
using C = regs::tx_desc::Control;

constexpr uint32_t kBusy = 9;    // mailbox whose letters are taken
constexpr uint32_t kOther = 10;  // another one

class Waiting : public CardTest {
 protected:
  /// Makes a card, and takes all letters of a mailbox. The letters' packets are in `flying_`.
  TestRing& take_letters(const CardOptions& options, RingConfig config = {.log2 = 5}) {
    make(options);
    buffer_ = std::make_unique<Buffer>(card(), 4096);
    TestRing& ring = tx(config);
    for (uint32_t i = 0; i < 4; ++i) {
      post(ring, kBusy, 8, i);
    }
    flying_ = sent();
    EXPECT_EQ(flying_.size(), 4u);
    return ring;
  }
  void post(TestRing& ring, uint32_t mbox, uint32_t length, uint32_t cookie, uint32_t more = 0,
            uint32_t dest = kRemoteId) {
    regs::TxDesc desc = message(mbox, length, buffer_->iova(), cookie, kSsize256, more);
    desc.dest_id = dest;
    ring.put(desc);
    ring.post();
  }
  /// Lets the entry of cookie 4 wait, and another pass it, whose packet is in `passed_`.
  TestRing& let_one_wait() {
    TestRing& ring = take_letters({});
    post(ring, kBusy, 16, 4);
    post(ring, kOther, 24, 5);
    passed_ = sent();
    EXPECT_EQ(passed_.size(), 1u);
    return ring;
  }
  /// The entry that waited has ended, and no other.
  static void expect_ended(TestRing& ring, Status status) {
    const auto done = ring.take_all<regs::TxCpl>();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].cookie, 4u);
    EXPECT_EQ(code_of(done[0].status), status);
  }
  static void expect(const std::vector<Packet>& all, const std::vector<size_t>& lengths) {
    std::vector<size_t> seen;
    for (const Packet& packet : all) {
      seen.push_back(packet.data.size());
    }
    EXPECT_EQ(seen, lengths);
  }

  std::unique_ptr<Buffer> buffer_;
  std::vector<Packet> flying_;
  std::vector<Packet> passed_;
};
RIO_CONFORMANCE(Waiting);

// T15
TEST_P(Waiting, TheCapabilitySaysHowManyArePassed) {
  make({.pass_over = 5});
  EXPECT_EQ(regs::id::CapWaits::pass_over.get(card().read32(regs::id::cap_waits())), 5u);
}

// T15
TEST_P(Waiting, OthersPassAndTheWaitingOneGoesWhenALetterIsFree) {
  TestRing& ring = take_letters({});
  post(ring, kBusy, 16, 4);
  post(ring, kOther, 24, 5);
  post(ring, kBusy, 32, 6, 0, kRemoteId + 1);
  const std::vector<Packet> passed = sent();
  expect(passed, {24, 32});
  answer_all(passed);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(ring.take_all<regs::TxCpl>().size(), 2u);
  answer(flying_[2]);
  const std::vector<Packet> last = sent();
  expect(last, {16});
  EXPECT_EQ(last.at(0).letter, flying_[2].letter);
}

// T6
TEST_P(Waiting, WithoutTheCapabilityTheHeadBlocksTheRing) {
  TestRing& ring = take_letters({.pass_over = 0});
  post(ring, kBusy, 16, 4);
  post(ring, kOther, 24, 5);
  EXPECT_TRUE(sent().empty());
  answer(flying_[2]);
  expect(sent(), {16, 24});
}

// T6, T15
TEST_P(Waiting, NoMoreArePassedThanTheCapabilitySays) {
  TestRing& ring = take_letters({.pass_over = 2});
  for (uint32_t i = 0; i < 3; ++i) {
    post(ring, kBusy, 16, 4 + i);
  }
  post(ring, kOther, 24, 7);
  EXPECT_TRUE(sent().empty());
  answer(flying_[0]);
  expect(sent(), {16, 24});
}

/// Entries of one destination and mailbox leave in the order of the ring.
// T16
TEST_P(Waiting, WaitingEntriesKeepTheirOrder) {
  TestRing& ring = take_letters({});
  for (uint32_t i = 0; i < 3; ++i) {
    post(ring, kBusy, 16 + 8 * i, 4 + i);
    post(ring, kOther + i, 8, 7 + i);
  }
  EXPECT_EQ(sent().size(), 3u);
  answer(flying_[0]);
  expect(sent(), {16});
  answer(flying_[1]);
  answer(flying_[2]);
  expect(sent(), {24, 32});
}

// T15, T16
TEST_P(Waiting, AnOrderedMessageIsPassed) {
  TestRing& ring = take_letters({});
  post(ring, kOther, 16, 4);
  const std::vector<Packet> first = sent();
  ASSERT_EQ(first.size(), 1u);
  post(ring, kOther, 24, 5, C::order.put(1));
  post(ring, kOther, 32, 6);
  post(ring, kOther + 1, 40, 7);
  expect(sent(), {40});
  answer_all(first);
  expect(sent(), {24, 32});
}

// T15
TEST_P(Waiting, ADoorbellThatWaitsForAnIdIsPassed) {
  make({});
  buffer_ = std::make_unique<Buffer>(card(), 4096);
  TestRing& ring = tx({.log2 = 9});
  for (uint32_t i = 0; i < 260; ++i) {
    ring.put(regs::TxDesc{C::op.put(1) | C::inline_.put(1), kRemoteId, i, 2, i, 0});
  }
  ring.post();
  post(ring, kOther, 24, 260);
  const std::vector<Packet> all = sent();
  EXPECT_EQ(all.size(), 257u);
  EXPECT_EQ(std::count_if(all.begin(), all.end(),
                          [](const Packet& packet) { return packet.kind == Packet::kSegment; }),
            1);
}

/// A long message cannot be kept waiting by short ones that take the same letters one by one.
// T16
TEST_P(Waiting, ShortMessagesDoNotTakeTheLettersOfALongOne) {
  TestRing& ring = take_letters({});
  post(ring, kBusy % 4, 300, 4);
  post(ring, kBusy + 4, 16, 5);
  post(ring, kOther, 24, 6);
  expect(sent(), {24});
  answer(flying_[0]);
  const std::vector<Packet> next = sent();
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(next[0].mbox, kBusy % 4);
}

/// The card has copied an entry that waits: the host uses its place again, many times.
// T15, R7
TEST_P(Waiting, StragglersOutliveTheLapsOfTheRing) {
  TestRing& ring = take_letters({}, {.log2 = 3, .start = 0xFFFFFFF0});
  const uint32_t straggler = ring.tail;
  post(ring, kBusy, 16, 77);
  for (uint32_t i = 0; i < 40; ++i) {
    post(ring, kOther, 24, 100 + i);
    const std::vector<Packet> passed = sent();
    expect(passed, {24});
    answer_all(passed);
    card().run();
    ASSERT_EQ(ring.take_all<regs::TxCpl>().size(), 1u);
  }
  answer_all(flying_);
  answer_all(sent());
  card().run();
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 5u);
  EXPECT_EQ(done[4].cookie, 77u);
  EXPECT_EQ(done[4].index, straggler);
}

// T17
TEST_P(Waiting, AStopFlushesWhatWaits) {
  TestRing& ring = let_one_wait();
  answer_all(passed_);
  card().run();
  ASSERT_EQ(ring.take_all<regs::TxCpl>().size(), 1u);
  ring.request_stop();
  card().run();
  expect_ended(ring, Status::kFlushed);
  answer_all(flying_);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(ring.status().state, regs::RingState::kStopped);
}

// T17
TEST_P(Waiting, WithoutALinkWhatWaitsEnds) {
  TestRing& ring = let_one_wait();
  answer_all(passed_);
  card().run();
  ASSERT_EQ(ring.take_all<regs::TxCpl>().size(), 1u);
  card().set_link(false);
  card().run();
  expect_ended(ring, Status::kLinkDown);
}

// T17
TEST_P(Waiting, AResetForgetsWhatWaits) {
  TestRing& ring = let_one_wait();
  reset();
  EXPECT_TRUE(ring.take_all<regs::TxCpl>().empty());
  card().advance_us(4 * kResponseUs);
  EXPECT_TRUE(sent().empty());
  TestRing& again = tx({.log2 = 5});
  post(again, kBusy, 32, 6);
  expect(sent(), {32});
}

/// The first error of a ring ends its sending: what waits is not sent any more.
// T17
TEST_P(Waiting, ARingInErrorBeginsNothing) {
  TestRing& ring = let_one_wait();
  ring.tail += 100;
  ring.post();
  card().run();
  ASSERT_EQ(ring.status().state, regs::RingState::kError);
  answer_all(flying_);
  EXPECT_TRUE(sent().empty());
}

}  // namespace
}  // namespace rio::test
