// Stop and reset with traffic in flight. card.md: "only then may memory be freed"
#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::RingState;
using regs::Status;

class Stop : public CardTest {
 protected:
  void SetUp() override {
    CardTest::SetUp();
    buffer_ = std::make_unique<Buffer>(card(), 4096);
  }
  void post(TestRing& ring, uint32_t mbox, uint32_t length, uint32_t cookie) {
    ring.put(message(mbox, length, buffer_->iova(), cookie));
    ring.post();
  }
  std::unique_ptr<Buffer> buffer_;
};
RIO_CONFORMANCE(Stop);

// R13, R14, R15
TEST_P(Stop, TransmitWaitsForMessagesInFlightAndFlushesTheRest) {
  TestRing& ring = tx();
  for (uint32_t i = 0; i < 6; ++i) {
    post(ring, 1, 8, i);
  }
  const std::vector<Packet> flying = sent();
  ASSERT_EQ(flying.size(), 4u);
  ring.request_stop();
  card().run();
  EXPECT_EQ(ring.status().state, RingState::kStopping);
  EXPECT_EQ(ring.status().gen, ring.gen());
  auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(code_of(done[0].status), Status::kFlushed);
  EXPECT_EQ(done[0].cookie, 4u);
  answer_all(flying);
  card().run();
  EXPECT_EQ(ring.status().state, RingState::kStopped);
  done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 4u);
  EXPECT_EQ(code_of(done[0].status), Status::kOk);
  EXPECT_TRUE(sent().empty());
}

// R17
TEST_P(Stop, TransmitWithADeadPeerIsBounded) {
  TestRing& ring = tx();
  post(ring, 1, 700, 1);
  post(ring, 2, 8, 2);
  EXPECT_FALSE(sent().empty());
  ring.request_stop();
  card().advance_us(kResponseUs * 5 / 4);
  EXPECT_EQ(ring.status().state, RingState::kStopped);
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(code_of(done[0].status), Status::kResponseTimeout);
}

// R14
TEST_P(Stop, ARetryAfterTheStopIsNotSentAgain) {
  TestRing& ring = tx();
  post(ring, 1, 8, 1);
  const std::vector<Packet> flying = sent();
  ring.request_stop();
  card().run();
  answer_all(flying, Answer::kRetry);
  card().advance_us(100);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(ring.status().state, RingState::kStopped);
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(code_of(done[0].status), Status::kRetryExpired);
}

TEST_P(Stop, AWaitingRetryEndsWithTheStop) {
  TestRing& ring = tx();
  card().write32(regs::id::retry_delay_us(), 10 * kResponseUs);
  card().run();
  post(ring, 1, 8, 1);
  answer_all(sent(), Answer::kRetry);
  card().run();
  ring.request_stop();
  card().advance_us(kResponseUs * 5 / 4);
  EXPECT_EQ(ring.status().state, RingState::kStopped);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(ring.take_all<regs::TxCpl>().size(), 1u);
}

// R17
TEST_P(Stop, AStopEndsThoughTheMemoryWentMeanwhile) {
  TestRing& ring = tx();
  post(ring, 1, 8, 1);
  const std::vector<Packet> flying = sent();
  ring.request_stop();
  card().run();
  ASSERT_EQ(ring.status().state, RingState::kStopping);
  card().unmap(ring.completions);
  card().run();
  EXPECT_EQ(ring.status().state, RingState::kStopping);
  answer_all(flying);
  card().run();
  EXPECT_EQ(ring.status().state, RingState::kStopped);
  EXPECT_EQ(ring.status().gen, ring.gen());
}

// R16
TEST_P(Stop, NothingIsWrittenAfterTheStatus) {
  TestRing& ring = tx();
  TestRing& receive = shared();
  const Buffer a(card(), 4096);
  post_shared(receive, a);
  const std::vector<uint8_t> bytes = pattern(768);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kDone);
  post(ring, 0, 8, 1);
  const std::vector<Packet> late = sent();
  ring.request_stop();
  card().advance_us(kResponseUs * 5 / 4);
  receive.stop();
  ASSERT_EQ(ring.status().state, RingState::kStopped);
  // From now on the memory is the host's: it is unmapped, so that each access counts.
  const uint64_t before = card().refused_accesses();
  card().unmap(a.memory());
  card().unmap(ring.completions);
  card().unmap(ring.entries);
  card().unmap(receive.completions);
  card().unmap(receive.entries);
  answer_all(late);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 2)), Answer::kError);
  EXPECT_EQ(exchange(segment(0, 1, bytes, 2)), Answer::kError);
  card().advance_us(3 * kReceiveUs);
  EXPECT_EQ(card().refused_accesses(), before);
}

// R15
TEST_P(Stop, PartialMessagesAreAnsweredErrorAndTheirBufferComesBack) {
  TestRing& ring = shared();
  const Buffer a(card(), 4096);
  const Buffer b(card(), 4096);
  post_shared(ring, a);
  post_shared(ring, b);
  const std::vector<uint8_t> bytes = pattern(768);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kDone);
  ring.stop();
  EXPECT_EQ(ring.take_all<regs::SharedCpl>().size(), 2u);
  ring.start();
  const Buffer c(card(), 4096);
  post_shared(ring, c);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  EXPECT_EQ(c.touched_outside(0), 0u);
}

// R16
TEST_P(Stop, TheRingRestartsAfterATailErrorWithTrafficInFlight) {
  TestRing& ring = tx({.log2 = 3});
  post(ring, 0, 8, 1);
  const std::vector<Packet> flying = sent();
  ring.tail += 100;
  ring.post();
  card().run();
  ASSERT_EQ(ring.status().state, RingState::kError);
  ring.request_stop();
  card().run();
  answer_all(flying);
  card().run();
  ASSERT_EQ(ring.status().state, RingState::kStopped);
  EXPECT_EQ(ring.take_all<regs::TxCpl>().size(), 1u) << "the message in flight, and no garbage";
  ring.start();
  post(ring, 0, 8, 2);
  answer_all(sent());
  EXPECT_EQ(ring.take_all<regs::TxCpl>().size(), 1u);
}

// G4
TEST_P(Stop, AnswersFromBeforeAResetMatchNothing) {
  TestRing& ring = tx();
  for (uint32_t i = 0; i < 4; ++i) {
    post(ring, 0, 8, i);
  }
  const std::vector<Packet> late = sent();
  ASSERT_EQ(late.size(), 4u);
  reset();
  TestRing& fresh = tx();
  post(fresh, 0, 8, 9);
  std::vector<Packet> all = sent();
  answer_all(late);
  EXPECT_TRUE(fresh.take_all<regs::TxCpl>().empty());
  for (int i = 0; all.empty() && i < 8; ++i) {
    card().advance_us(kResponseUs / 2);  // the letters rest
    all = sent();
  }
  ASSERT_EQ(all.size(), 1u);
  answer_all(all);
  const auto done = fresh.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].cookie, 9u);
  EXPECT_EQ(code_of(done[0].status), Status::kOk);
}

// G1
TEST_P(Stop, AResetDropsPartialMessagesSilently) {
  TestRing& ring = shared();
  const Buffer a(card(), 4096);
  post_shared(ring, a);
  const std::vector<uint8_t> bytes = pattern(768);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kDone);
  reset();
  const uint64_t before = card().refused_accesses();
  card().unmap(a.memory());
  card().unmap(ring.completions);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  card().advance_us(3 * kReceiveUs);
  EXPECT_EQ(card().refused_accesses(), before);
}

TEST_P(Stop, ARingRestartsManyTimes) {
  for (uint32_t life = 0; life < 50; ++life) {
    TestRing& ring = tx({.log2 = 3, .start = life * 7});
    post(ring, life % 64, 8, life);
    const std::vector<Packet> all = sent();
    ASSERT_EQ(all.size(), 1u) << life;
    answer_all(all);
    ring.stop();
    const auto done = ring.take_all<regs::TxCpl>();
    ASSERT_EQ(done.size(), 1u) << life;
    EXPECT_EQ(done[0].index, life * 7);
  }
}

}  // namespace
}  // namespace rio::test
