// Stores of the card that are full. card.md: Sending, Receiving
#include <algorithm>

#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::Status;

class Stores : public CardTest {
 protected:
  /// Makes a card with a transmit ring.
  TestRing& open(const CardOptions& options) {
    make(options);
    buffer_ = std::make_unique<Buffer>(card(), 4096);
    return tx({.log2 = 5});
  }
  void post(TestRing& ring, uint32_t mbox, uint32_t length = 8) {
    ring.put(message(mbox, length, buffer_->iova()));
    ring.post();
  }
  static void expect(TestRing& ring, size_t count, Status status) {
    const auto done = ring.take_all<regs::TxCpl>();
    EXPECT_EQ(done.size(), count);
    for (const regs::TxCpl& cpl : done) {
      EXPECT_EQ(code_of(cpl.status), status);
    }
  }
  /// Number of messages that the card has begun since the last call.
  size_t begun() {
    const std::vector<Packet> all = sent();
    return static_cast<size_t>(std::count_if(
        all.begin(), all.end(), [](const Packet& packet) { return packet.segment == 0; }));
  }
  /// Receives a message's first segment, then breaks the message.
  void poison(uint8_t letter) {
    const std::vector<uint8_t> bytes = pattern(512);
    EXPECT_EQ(exchange(segment(0, letter, bytes, 0)), Answer::kDone);
    EXPECT_EQ(exchange(segment(0, letter, bytes, 0)), Answer::kError);
  }
  /// Lets the card give up what it has sent, but not what it sends then.
  void time_out() { card().advance_us(latest_us(kResponseUs)); }

  std::unique_ptr<Buffer> buffer_;
};
RIO_CONFORMANCE(Stores);

// T20, T22, V4, V17
TEST_P(Stores, TheCapabilitiesSayHowLargeTheyAre) {
  make({.rx_contexts = 3, .flights = 5, .resting = 7, .poisoned = 9});
  const uint32_t stores = card().read32(regs::id::cap_stores());
  EXPECT_EQ(regs::id::CapStores::flights.get(stores), 5u);
  EXPECT_EQ(regs::id::CapStores::resting.get(stores), 7u);
  EXPECT_EQ(regs::id::CapWaits::poisoned.get(card().read32(regs::id::cap_waits())), 9u);
  EXPECT_EQ(regs::id::CapMessages::rx_contexts.get(card().read32(regs::id::cap_messages())), 3u);
}

// T20
TEST_P(Stores, WithoutAFlightAMessageWaits) {
  TestRing& ring = open({.flights = 3});
  for (uint32_t i = 0; i < 5; ++i) {
    post(ring, i);
  }
  const std::vector<Packet> three = sent();
  ASSERT_EQ(three.size(), 3u);
  post(ring, 3, 512);
  EXPECT_EQ(begun(), 0u) << "it needs no flight, but comes after one to the same mailbox";
  post(ring, 1, 512);
  EXPECT_EQ(begun(), 1u);
  answer(three[0]);
  EXPECT_EQ(begun(), 2u);
  answer(three[1]);
  EXPECT_EQ(begun(), 1u);
}

/// A letter that finds no place to rest keeps the place of its flight.
// T19, T22
TEST_P(Stores, WithoutARestingPlaceTheFlightIsKept) {
  TestRing& ring = open({.flights = 2, .resting = 1});
  for (uint32_t i = 0; i < 4; ++i) {
    post(ring, i);
  }
  EXPECT_EQ(begun(), 2u);
  time_out();
  expect(ring, 2, Status::kResponseTimeout);
  std::vector<Packet> next = sent();
  ASSERT_EQ(next.size(), 1u) << "one flight is kept";
  answer_all(next);
  next = sent();
  ASSERT_EQ(next.size(), 1u);
  answer_all(next);
  EXPECT_TRUE(sent().empty());
  expect(ring, 2, Status::kOk);
  card().advance_us(kRestUs);
  for (uint32_t i = 0; i < 3; ++i) {
    post(ring, i);
  }
  EXPECT_EQ(begun(), 2u) << "both flights are free again";
}

// T21, T22
TEST_P(Stores, WithoutARestingPlaceTheContextIsKept) {
  TestRing& ring = open({.tx_contexts = 2, .resting = 0});
  post(ring, 0, 512);
  post(ring, 1, 512);
  EXPECT_EQ(begun(), 2u);
  time_out();
  expect(ring, 2, Status::kResponseTimeout);
  post(ring, 2, 512);
  post(ring, 3, 8);
  const std::vector<Packet> passes = sent();
  ASSERT_EQ(passes.size(), 1u);
  EXPECT_EQ(passes[0].mbox, 3u);
  card().advance_us(kRestUs);
  EXPECT_EQ(begun(), 1u);
}

// T22
TEST_P(Stores, AReleasedRestingPlaceIsTaken) {
  TestRing& ring = open({.flights = 2, .resting = 1});
  post(ring, 0);
  EXPECT_EQ(begun(), 1u);
  card().advance_us(kResponseUs * 3 / 4);
  post(ring, 1);
  EXPECT_EQ(begun(), 1u);
  card().advance_us(latest_us(kResponseUs));
  expect(ring, 2, Status::kResponseTimeout);
  // The first letter's rest ends, and the second one gets its place.
  card().advance_us(latest_us(2 * kResponseUs) - kResponseUs / 2);
  for (uint32_t i = 2; i < 5; ++i) {
    post(ring, i);
  }
  EXPECT_EQ(begun(), 2u);
}

// G4, T22
TEST_P(Stores, AResetLeavesKeptFlightsTaken) {
  TestRing& ring = open({.flights = 2, .resting = 1});
  post(ring, 0);
  post(ring, 1);
  EXPECT_EQ(begun(), 2u);
  reset();
  TestRing& again = tx({.log2 = 5});
  post(again, 2);
  post(again, 3);
  const std::vector<Packet> one = sent();
  ASSERT_EQ(one.size(), 1u);
  answer_all(one);
  EXPECT_EQ(begun(), 1u);
}

// V6, V17
TEST_P(Stores, WithoutAPlaceForPoisonTheContextStaysTaken) {
  make({.rx_contexts = 2, .poisoned = 1});
  TestRing& ring = shared({.log2 = 4});
  const Buffer buffers(card(), 8 * 4096);
  for (uint32_t i = 0; i < 8; ++i) {
    ring.put(regs::SharedDesc{buffers.iova() + uint64_t{i} * 4096});
  }
  ring.post();
  poison(0);
  poison(1);
  const std::vector<uint8_t> bytes = pattern(512);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  EXPECT_EQ(exchange(segment(0, 1, bytes, 1)), Answer::kError);
  EXPECT_EQ(exchange(segment(0, 2, bytes, 0)), Answer::kDone) << "one context is left";
  EXPECT_EQ(exchange(segment(0, 3, bytes, 0)), Answer::kRetry);
  EXPECT_EQ(exchange(segment(0, 2, bytes, 1)), Answer::kDone);
  EXPECT_EQ(exchange(segment(0, 3, bytes, 0)), Answer::kDone);
  EXPECT_EQ(exchange(segment(0, 2, bytes, 0)), Answer::kRetry);
  card().advance_us(latest_us(kReceiveUs));
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kDone) << "the sender was silent";
}

/// A message that was given up is poisoned, too.
// V7, V17
TEST_P(Stores, MessagesGivenUpArePoisoned) {
  make({.rx_contexts = 1, .poisoned = 0});
  TestRing& ring = shared({.log2 = 4});
  const Buffer buffers(card(), 4 * 4096);
  for (uint32_t i = 0; i < 4; ++i) {
    ring.put(regs::SharedDesc{buffers.iova() + uint64_t{i} * 4096});
  }
  ring.post();
  const std::vector<uint8_t> bytes = pattern(512);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kDone);
  card().advance_us(latest_us(kReceiveUs));
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  EXPECT_EQ(exchange(segment(0, 1, bytes, 0)), Answer::kRetry);
  card().advance_us(latest_us(kReceiveUs));
  EXPECT_EQ(exchange(segment(0, 1, bytes, 0)), Answer::kDone);
}

/// A message that cannot be sent on was given up by its receiver: it ends, and is not sent on.
// T18
TEST_P(Stores, AMessageThatIsNotSentOnEnds) {
  if (!card().segmented()) {
    GTEST_SKIP() << "messages travel as units";
  }
  TestRing& ring = open({});
  card().write32(regs::id::retry_delay_us(), 10 * kResponseUs);
  card().run();
  post(ring, 0, 768);
  const std::vector<Packet> all = sent();
  ASSERT_EQ(all.size(), 3u);
  answer(all[0]);
  answer(all[1], Answer::kRetry);
  answer(all[2]);
  time_out();
  expect(ring, 1, Status::kLinkDown);
  card().advance_us(10 * kResponseUs);
  EXPECT_TRUE(sent().empty());
}

}  // namespace
}  // namespace rio::test
