// Dedicated receive queues. [S0]; regs: dedicated_desc
#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::RingError;
using regs::RingState;
using regs::Status;

class Dedicated : public CardTest {
 protected:
  struct Place {
    explicit Place(CardUnderTest& card) : buffer(card, 8192) {
      // Entries have 4 KiB-aligned addresses; the red zone in front preserves that.
      EXPECT_EQ(buffer.iova() & 0xFFF, 0u);
    }
    Buffer buffer;
  };
  TestRing& open(uint32_t queue, uint32_t mbox, uint32_t source = kRemoteId) {
    auto& ring = rings_[queue];
    ring = std::make_unique<TestRing>(
        card(), RingConfig{.ring = 8 + queue, .source = source, .mbox = mbox});
    ring->start();
    return *ring;
  }
  void post(TestRing& ring, const Buffer& buffer, uint32_t size, uint32_t cookie = 0) {
    ring.put(regs::DedicatedDesc{buffer.iova(), size, cookie});
    ring.post();
  }
  void expect_stopped(TestRing& ring, uint32_t entry) {
    EXPECT_EQ(ring.status().state, RingState::kError);
    EXPECT_EQ(ring.status().error, RingError::kMismatch);
    EXPECT_EQ(ring.status().entry, entry);
  }
  void expect_one(TestRing& ring, uint32_t cookie, Status status, uint32_t bytes) {
    const auto done = ring.take_all<regs::EntryCpl>();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].cookie, cookie);
    EXPECT_EQ(code_of(done[0].status), status);
    EXPECT_EQ(done[0].bytes, bytes);
  }
  std::unique_ptr<TestRing> rings_[8];
};
RIO_CONFORMANCE(Dedicated);

// V12
TEST_P(Dedicated, EachSizeLandsInPlace) {
  TestRing& ring = open(5, 2);
  for (uint32_t size = 256; size <= 4096; size += 256) {
    const Buffer buffer(card(), 4096);
    const std::vector<uint8_t> bytes = pattern(size, size);
    post(ring, buffer, size, size);
    for (uint32_t k = size / 256; k-- > 0;) {
      ASSERT_EQ(exchange(segment(2, 1, bytes, k)), Answer::kDone);
    }
    expect_one(ring, size, Status::kOk, size);
    EXPECT_EQ(buffer.bytes(size), bytes);
    EXPECT_EQ(buffer.touched_outside(size), 0u);
  }
}

// V11
TEST_P(Dedicated, TakesItsSourceAndMailboxOnly) {
  TestRing& ring = open(0, 1);
  TestRing& common = shared();
  const Buffer a(card(), 4096);
  const Buffer b(card(), 4096);
  const Buffer c(card(), 4096);
  post(ring, a, 256);
  post_shared(common, b);
  post_shared(common, c);
  const std::vector<uint8_t> bytes = pattern(256);
  EXPECT_EQ(exchange(segment(2, 0, bytes)), Answer::kDone);
  Packet other = segment(1, 0, bytes);
  other.source = kRemoteId + 1;
  EXPECT_EQ(exchange(other), Answer::kDone);
  EXPECT_EQ(common.take_all<regs::SharedCpl>().size(), 2u);
  EXPECT_EQ(exchange(segment(1, 0, bytes)), Answer::kDone);
  expect_one(ring, 0, Status::kOk, 256);
}

TEST_P(Dedicated, AllEightWorkAtOnce) {
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 8; ++i) {
    buffers.emplace_back(card(), 4096);
    post(open(i, i % 4, kRemoteId + i / 4), buffers[i], 512, i);
  }
  for (uint32_t k = 0; k < 2; ++k) {
    for (uint32_t i = 0; i < 8; ++i) {
      Packet packet = segment(static_cast<uint8_t>(i % 4), 0, pattern(512, i), k);
      packet.source = kRemoteId + i / 4;
      ASSERT_EQ(exchange(packet), Answer::kDone);
    }
  }
  for (uint32_t i = 0; i < 8; ++i) {
    expect_one(*rings_[i], i, Status::kOk, 512);
    EXPECT_EQ(buffers[i].bytes(512), pattern(512, i));
  }
}

// V13
TEST_P(Dedicated, AnOpenEmptyQueueAnswersRetry) {
  TestRing& ring = open(0, 0);
  TestRing& common = shared();
  const Buffer b(card(), 4096);
  post_shared(common, b);
  EXPECT_EQ(exchange(segment(0, 0, pattern(256))), Answer::kRetry);
  EXPECT_TRUE(common.take_all<regs::SharedCpl>().empty());
  const Buffer a(card(), 4096);
  post(ring, a, 256);
  EXPECT_EQ(exchange(segment(0, 0, pattern(256))), Answer::kDone);
}

// V14
TEST_P(Dedicated, AClosedQueueLeavesMessagesToTheSharedOne) {
  open(0, 0).stop();
  TestRing& common = shared();
  const Buffer b(card(), 4096);
  post_shared(common, b);
  EXPECT_EQ(exchange(segment(0, 0, pattern(256))), Answer::kDone);
  EXPECT_EQ(common.take_all<regs::SharedCpl>().size(), 1u);
}

// R8, V12
TEST_P(Dedicated, EntriesCompleteOutOfOrder) {
  TestRing& ring = open(0, 0);
  const Buffer a(card(), 4096);
  const Buffer b(card(), 4096);
  post(ring, a, 512, 1);
  post(ring, b, 512, 2);
  EXPECT_EQ(exchange(segment(0, 0, pattern(512, 1), 0)), Answer::kDone);
  EXPECT_EQ(exchange(segment(0, 1, pattern(512, 2), 0)), Answer::kDone);
  EXPECT_EQ(exchange(segment(0, 1, pattern(512, 2), 1)), Answer::kDone);
  EXPECT_EQ(exchange(segment(0, 0, pattern(512, 1), 1)), Answer::kDone);
  const auto done = ring.take_all<regs::EntryCpl>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].cookie, 2u);
  EXPECT_EQ(done[0].index, 1u);
  EXPECT_EQ(done[1].cookie, 1u);
  EXPECT_EQ(a.bytes(512), pattern(512, 1));
  EXPECT_EQ(b.bytes(512), pattern(512, 2));
}

// V15
TEST_P(Dedicated, AnotherNumberOfSegmentsStopsTheQueue) {
  TestRing& ring = open(0, 0);
  TestRing& told = events();
  const Buffer a(card(), 4096);
  const Buffer b(card(), 4096);
  post(ring, a, 512, 1);
  post(ring, b, 512, 2);
  EXPECT_EQ(exchange(segment(0, 0, pattern(768), 0)), Answer::kError);
  expect_one(ring, 1, Status::kSizeMismatch, 0);
  expect_stopped(ring, 0);
  const auto events = told.take_all<regs::EventCpl>();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].info, static_cast<uint32_t>(RingError::kMismatch));
  EXPECT_EQ(events[0].data1, 8u);
  // It stays stopped, and its messages do not go to the shared queue.
  TestRing& common = shared();
  const Buffer c(card(), 4096);
  post_shared(common, c);
  EXPECT_EQ(exchange(segment(0, 1, pattern(512), 0)), Answer::kError);
  ring.stop();
  expect_one(ring, 2, Status::kFlushed, 0);
  EXPECT_EQ(a.touched_outside(0) + b.touched_outside(0) + c.touched_outside(0), 0u);
}

// V12, V15
TEST_P(Dedicated, AShorterLastSegmentStopsTheQueue) {
  TestRing& ring = open(0, 0);
  const Buffer a(card(), 4096);
  post(ring, a, 512, 1);
  const std::vector<uint8_t> bytes = pattern(504);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kDone);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  expect_one(ring, 1, Status::kSizeMismatch, 0);
  expect_stopped(ring, 0);
}

// V12, V15
TEST_P(Dedicated, ASingleSegmentOfAnotherSizeStopsTheQueue) {
  TestRing& ring = open(0, 0);
  const Buffer a(card(), 4096);
  post(ring, a, 256, 1);
  EXPECT_EQ(exchange(segment(0, 0, pattern(248))), Answer::kError);
  expect_one(ring, 1, Status::kSizeMismatch, 0);
  expect_stopped(ring, 0);
  EXPECT_EQ(a.touched_outside(0), 0u);
}

TEST_P(Dedicated, BadEntriesAreNamed) {
  const Buffer a(card(), 8192);
  const regs::DedicatedDesc bad[] = {{a.iova() + 256, 256, 1},
                                     {a.iova(), 0, 2},
                                     {a.iova(), 4352, 3},
                                     {a.iova(), 250, 4},
                                     {a.iova(), 0xFFFFFF00, 5}};
  for (const regs::DedicatedDesc& desc : bad) {
    TestRing& ring = open(0, 0);
    ring.put(desc);
    ring.post();
    EXPECT_EQ(exchange(segment(0, 0, pattern(256))), Answer::kError);
    expect_one(ring, desc.cookie, Status::kBadDescriptor, 0);
    EXPECT_EQ(ring.status().state, RingState::kError);
    ring.stop();
    EXPECT_EQ(a.touched_outside(0), 0u);
  }
}

TEST_P(Dedicated, AStopInTheMiddleFlushesAndNothingLandsAfterwards) {
  TestRing& ring = open(0, 0);
  const Buffer a(card(), 4096);
  const Buffer b(card(), 4096);
  post(ring, a, 768, 1);
  post(ring, b, 768, 2);
  const std::vector<uint8_t> bytes = pattern(768);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kDone);
  ring.stop();
  const auto done = ring.take_all<regs::EntryCpl>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(code_of(done[0].status), Status::kFlushed);
  EXPECT_EQ(code_of(done[1].status), Status::kFlushed);
  EXPECT_EQ(done[0].cookie + done[1].cookie, 3u);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 2)), Answer::kError);
  EXPECT_EQ(a.touched_outside(256), 0u);
}

TEST_P(Dedicated, AReceiveTimeOutReturnsTheEntry) {
  TestRing& ring = open(0, 0);
  const Buffer a(card(), 4096);
  post(ring, a, 768, 1);
  EXPECT_EQ(exchange(segment(0, 0, pattern(768), 1)), Answer::kDone);
  card().advance_us(kReceiveUs * 5 / 4);
  expect_one(ring, 1, Status::kReceiveTimeout, 0);
  EXPECT_EQ(ring.status().state, RingState::kRunning);
}

TEST_P(Dedicated, ARestartMayChangeTheMailbox) {
  TestRing& ring = open(0, 0);
  ring.stop();
  ring.config().mbox = 3;
  ring.start();
  const Buffer a(card(), 4096);
  post(ring, a, 256, 1);
  EXPECT_EQ(exchange(segment(0, 0, pattern(256))), Answer::kError) << "the shared queue is stopped";
  EXPECT_EQ(exchange(segment(3, 0, pattern(256))), Answer::kDone);
}

}  // namespace
}  // namespace rio::test
