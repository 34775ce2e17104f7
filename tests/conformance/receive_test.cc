// Messages that the card receives into the shared queue. regs: shared_desc; RIO Part 2 §4.2.5
#include "tests/conformance/card_test.hpp"

#include <algorithm>

namespace rio::test {
namespace {

using regs::Status;

class Receive : public CardTest {
 protected:
  static std::vector<uint8_t> padded(std::vector<uint8_t> bytes) {
    bytes.resize((bytes.size() + 7) & ~size_t{7});
    return bytes;
  }
  /// Sends segments of a message in this order; each must be answered DONE.
  void deliver(uint8_t mbox, uint8_t letter, const std::vector<uint8_t>& bytes, uint16_t ssize,
               const std::vector<uint32_t>& order) {
    for (const uint32_t k : order) {
      ASSERT_EQ(exchange(segment(mbox, letter, bytes, k, ssize)), Answer::kDone) << k;
    }
  }
  static std::vector<uint32_t> ascending(size_t len_bytes, uint32_t ssize = 256) {
    std::vector<uint32_t> order((len_bytes + ssize - 1) / ssize);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  void expect_bad(TestRing& ring, uint32_t index, Status status) {
    const auto done = ring.take_all<regs::SharedCpl>();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].index, index);
    EXPECT_EQ(code_of(done[0].status), status);
    EXPECT_EQ(done[0].length, 0u);
  }
};
RIO_CONFORMANCE(Receive);

// T1
TEST_P(Receive, MessagesOfEachLengthArrive) {
  TestRing& ring = shared({.log2 = 5});
  for (uint32_t length = 1; length <= 4096; length += length < 530 ? 1 : 127) {
    const Buffer buffer(card(), 4096);
    const std::vector<uint8_t> bytes = pattern(length, length);
    post_shared(ring, buffer);
    deliver(3, 2, bytes, 256, ascending(length));
    const auto done = ring.take_all<regs::SharedCpl>();
    ASSERT_EQ(done.size(), 1u) << length;
    EXPECT_EQ(code_of(done[0].status), Status::kOk);
    EXPECT_EQ(done[0].source, kRemoteId);
    EXPECT_EQ(done[0].dest_id, kOwnId);
    EXPECT_EQ(done[0].length, (length + 7) & ~7u);
    EXPECT_EQ(done[0].segments, (length + 255) / 256);
    EXPECT_EQ(done[0].place, 3u | 2u << 6);
    ASSERT_EQ(buffer.bytes((length + 7) & ~7u), padded(bytes));
    EXPECT_EQ(buffer.touched_outside((length + 255) & ~255u), 0u);
  }
}

// V9
TEST_P(Receive, EachSegmentSizeLandsInPlaceWithoutQuirks) {
  make({.quirks = false});
  TestRing& ring = shared();
  for (uint16_t ssize = 8; ssize <= 256; ssize = static_cast<uint16_t>(ssize * 2)) {
    for (const uint32_t length : {1u, ssize - 1u, ssize + 1u, 7u * ssize + 3, 16u * ssize}) {
      const Buffer buffer(card(), 4096);
      const std::vector<uint8_t> bytes = pattern(length, length);
      post_shared(ring, buffer);
      std::vector<uint32_t> order = ascending(length, ssize);
      std::reverse(order.begin(), order.end());
      deliver(0, 0, bytes, ssize, order);
      const auto done = ring.take_all<regs::SharedCpl>();
      ASSERT_EQ(done.size(), 1u);
      EXPECT_EQ(done[0].length, (length + 7) & ~7u);
      EXPECT_EQ(buffer.bytes((length + 7) & ~7u), padded(bytes));
      EXPECT_EQ(buffer.touched_outside((length + 7) & ~7u), 0u);
    }
  }
}

// V10
TEST_P(Receive, TheLastSegmentHasItsQuirks) {
  // It lands at base + 256 * (segments - 1), whatever ssize is, and as full 256 bytes. [S0]
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  const std::vector<uint8_t> bytes = pattern(64 * 3 - 20, 3);
  post_shared(ring, buffer);
  deliver(0, 0, bytes, 64, {2, 0, 1});
  ASSERT_EQ(ring.take_all<regs::SharedCpl>().size(), 1u);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.begin() + 128, buffer.va()));
  EXPECT_TRUE(std::equal(bytes.begin() + 128, bytes.end(), buffer.va() + 512));
  EXPECT_TRUE(
      std::all_of(buffer.va() + 512 + 48, buffer.va() + 768, [](uint8_t b) { return b == 0; }));
  EXPECT_EQ(buffer.va()[128], Buffer::kRed) << "its own place is not written";
  EXPECT_EQ(buffer.touched_outside(768), 0u);
}

TEST_P(Receive, SegmentsArriveInAnyOrder) {
  TestRing& ring = shared();
  uint32_t x = 12345;
  for (int round = 0; round < 50; ++round) {
    const uint32_t length = 257 + (x >> 8) % 3840;
    std::vector<uint32_t> order = ascending(length);
    for (size_t i = order.size(); i > 1; --i) {
      x = x * 1664525u + 1013904223u;
      std::swap(order[i - 1], order[(x >> 10) % i]);
    }
    const Buffer buffer(card(), 4096);
    const std::vector<uint8_t> bytes = pattern(length, x);
    post_shared(ring, buffer);
    deliver(1, 3, bytes, 256, order);
    const auto done = ring.take_all<regs::SharedCpl>();
    ASSERT_EQ(done.size(), 1u);
    ASSERT_EQ(buffer.bytes((length + 7) & ~7u), padded(bytes));
  }
}

TEST_P(Receive, MessagesInterleave) {
  TestRing& ring = shared({.log2 = 5});
  std::vector<Buffer> buffers;
  std::vector<std::vector<uint8_t>> messages;
  for (uint32_t i = 0; i < 16; ++i) {
    buffers.emplace_back(card(), 4096);
    messages.push_back(pattern(4096, i));
    post_shared(ring, buffers.back());
  }
  for (uint32_t k = 0; k < 16; ++k) {
    for (uint8_t i = 0; i < 16; ++i) {
      ASSERT_TRUE(card().send(segment(i / 4, i % 4, messages[i], k)));
    }
    for (const Packet& packet : sent()) {
      EXPECT_EQ(packet.answer, Answer::kDone);
    }
  }
  const auto done = ring.take_all<regs::SharedCpl>();
  ASSERT_EQ(done.size(), 16u);
  for (uint32_t i = 0; i < 16; ++i) {
    EXPECT_EQ(done[i].arrival, i) << "counted by first segments";
    EXPECT_EQ(buffers[done[i].index].bytes(4096),
              messages[(done[i].place & 63u) * 4 + (done[i].place >> 6)]);
  }
}

// V18
TEST_P(Receive, ShortCompletionsHaveAllFields) {
  using Place = regs::shared_short_cpl::Place;
  using Last = regs::shared_short_cpl::Status;
  constexpr uint32_t kEntry = 17;  // of the receive map
  map_entry(0, kOwnId, ~0ull & ~(1ull << 3), 0);
  map_entry(kEntry, kOwnId, ~0ull, 0);
  apply_map();
  TestRing ring(card(), {.ring = 1, .log2 = 4, .start = 0xFFFFFFF9, .format = 1});
  ring.start();
  uint32_t arrival = 0;
  for (uint32_t length = 1; length <= 4096; length += length < 40 ? 1 : 131) {
    const Buffer buffer(card(), 4096);
    const std::vector<uint8_t> bytes = pattern(length, length);
    const auto mbox = static_cast<uint8_t>(length % 4);
    const uint32_t index = ring.tail;
    post_shared(ring, buffer);
    deliver(mbox, 2, bytes, 256, ascending(length));
    const auto done = ring.take_all<regs::SharedShortCpl>();
    ASSERT_EQ(done.size(), 1u) << length;
    const auto& cpl = done[0];
    EXPECT_EQ(cpl.source, kRemoteId);
    EXPECT_EQ(cpl.index, index);
    EXPECT_EQ(code_of(cpl.status), Status::kOk);
    EXPECT_EQ(Last::arrival.get(cpl.status), arrival++);
    EXPECT_EQ(Place::length.get(cpl.place), (length + 7) & ~7u);
    EXPECT_EQ(Place::segments.get(cpl.place) + 1, (length + 255) / 256);
    EXPECT_EQ(Place::mbox.get(cpl.place), mbox);
    EXPECT_EQ(Place::letter.get(cpl.place), 2u);
    EXPECT_EQ(Place::map_entry.get(cpl.place), mbox == 3 ? kEntry : 0u);
    EXPECT_EQ(cpl.place >> 31, 0u);
    ASSERT_EQ(buffer.bytes((length + 7) & ~7u), padded(bytes));
  }
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  card().run();
  ring.stop();
  const auto flushed = ring.take_all<regs::SharedShortCpl>();
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(code_of(flushed[0].status), Status::kFlushed);
  EXPECT_EQ(Place::length.get(flushed[0].place), 0u);
}

// V19
// Whether they come one by one or several at once, each is whole, and none is held back.
TEST_P(Receive, ShortCompletionsComeAtOnceAndInOrder) {
  TestRing ring(card(), {.ring = 1, .log2 = 6, .start = 3, .format = 1});
  ring.start();
  const Buffer buffer(card(), 4096);
  const std::vector<uint8_t> bytes = pattern(8);
  uint32_t index = 3;
  for (uint32_t count = 1; count < 20; ++count) {
    for (uint32_t i = 0; i < count; ++i) {
      ring.put(regs::SharedDesc{buffer.iova()});
    }
    ring.post();
    card().run();
    for (uint32_t i = 0; i < count; ++i) {
      push(segment(static_cast<uint8_t>(4 + i), 0, bytes));
    }
    static_cast<void>(sent());
    const auto done = ring.take_all<regs::SharedShortCpl>();
    ASSERT_EQ(done.size(), count);
    for (const regs::SharedShortCpl& cpl : done) {
      EXPECT_EQ(cpl.index, index++);
    }
  }
}

TEST_P(Receive, EqualLettersOfOtherSourcesAreOtherMessages) {
  TestRing& ring = shared();
  const std::vector<uint8_t> bytes = pattern(512);
  const Buffer a(card(), 4096);
  const Buffer b(card(), 4096);
  post_shared(ring, a);
  post_shared(ring, b);
  for (const uint32_t k : {0u, 1u}) {
    for (const uint32_t source : {kRemoteId, kRemoteId + 1}) {
      Packet packet = segment(0, 0, bytes, k);
      packet.source = source;
      EXPECT_EQ(exchange(packet), Answer::kDone);
    }
  }
  const auto done = ring.take_all<regs::SharedCpl>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].source + done[1].source, 2 * kRemoteId + 1);
}

// V4, V5, V16
TEST_P(Receive, AFullQueueAnswersRetryAndLosesNothing) {
  TestRing& ring = shared();
  const std::vector<uint8_t> bytes = pattern(512);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kRetry);
  EXPECT_EQ(exchange(segment(60, 0, pattern(8))), Answer::kRetry);
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  deliver(0, 0, bytes, 256, {0});
  EXPECT_EQ(exchange(segment(0, 1, bytes, 0)), Answer::kRetry);
  deliver(0, 0, bytes, 256, {1});  // later segments are always taken
  EXPECT_EQ(ring.take_all<regs::SharedCpl>().size(), 1u);
}

// V4, V5
TEST_P(Receive, ContextsLimitLongMessagesOnly) {
  make({.rx_contexts = 2});
  TestRing& ring = shared();
  std::vector<Buffer> buffers;
  for (int i = 0; i < 4; ++i) {
    buffers.emplace_back(card(), 4096);
    post_shared(ring, buffers.back());
  }
  const std::vector<uint8_t> bytes = pattern(512);
  deliver(0, 0, bytes, 256, {0});
  deliver(0, 1, bytes, 256, {0});
  EXPECT_EQ(exchange(segment(0, 2, bytes, 0)), Answer::kRetry);
  EXPECT_EQ(exchange(segment(7, 0, pattern(8))), Answer::kDone);
  deliver(0, 0, bytes, 256, {1});
  deliver(0, 2, bytes, 256, {0, 1});
  EXPECT_EQ(ring.take_all<regs::SharedCpl>().size(), 3u);
}

// V6
TEST_P(Receive, ADuplicateDropsTheMessage) {
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  const std::vector<uint8_t> bytes = pattern(768);
  deliver(0, 0, bytes, 256, {0});
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kError);
  expect_bad(ring, 0, Status::kFormat);
  // Later segments are answered ERROR and start no message.
  const Buffer next(card(), 4096);
  post_shared(ring, next);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 2)), Answer::kError);
  card().advance_us(2 * kReceiveUs);
  EXPECT_TRUE(ring.take_all<regs::SharedCpl>().empty());
  EXPECT_EQ(next.touched_outside(0), 0u);
  deliver(0, 0, bytes, 256, {0, 1, 2});
  EXPECT_EQ(ring.take_all<regs::SharedCpl>().size(), 1u);
}

// V6
TEST_P(Receive, SegmentsOfWrongNumberOrShapeAreErrors) {
  TestRing& ring = shared({.log2 = 5});
  const std::vector<uint8_t> bytes = pattern(768);
  const Packet good = segment(0, 0, bytes, 1);
  std::vector<Packet> bad(8, good);
  bad[0].segment = 3;   // of three
  bad[1].segments = 4;  // changed length
  bad[2].ssize = 128;   // changed segment size
  bad[2].data.resize(128);
  bad[3].data.resize(248);  // short, but not the last
  bad[4].data.resize(264);  // oversize
  bad[5].segment = 2;       // the last, oversize
  bad[5].data.resize(300);
  bad[6].ssize = 100;   // a size without a code
  bad[7].data.clear();  // empty
  for (size_t i = 0; i < bad.size(); ++i) {
    const Buffer buffer(card(), 4096);
    post_shared(ring, buffer);
    bad[i].mbox = static_cast<uint8_t>(i % 4);
    bad[i].letter = static_cast<uint8_t>(i / 4);
    deliver(bad[i].mbox, bad[i].letter, bytes, 256, {0});
    EXPECT_EQ(exchange(bad[i]), Answer::kError) << i;
    expect_bad(ring, static_cast<uint32_t>(i), Status::kFormat);
    EXPECT_EQ(buffer.touched_outside(256), 0u);
  }
}

TEST_P(Receive, SeveralSegmentsInAHighMailboxAreAnError) {
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  EXPECT_EQ(exchange(segment(4, 0, pattern(512), 0)), Answer::kError);
  EXPECT_TRUE(ring.take_all<regs::SharedCpl>().empty());
}

// V7
TEST_P(Receive, SilenceInTheMiddleEndsTheMessage) {
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  const std::vector<uint8_t> bytes = pattern(768);
  deliver(0, 0, bytes, 256, {2, 0});
  card().advance_us(kReceiveUs * 9 / 10);
  EXPECT_TRUE(ring.take_all<regs::SharedCpl>().empty());
  card().advance_us(latest_us(kReceiveUs) - kReceiveUs * 9 / 10);
  expect_bad(ring, 0, Status::kReceiveTimeout);
}

/// The sender already has answers with DONE: it must not get them for all segments.
// V8
TEST_P(Receive, SegmentsAfterAReceiveTimeOutAreErrors) {
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  const Buffer next(card(), 4096);
  post_shared(ring, buffer);
  post_shared(ring, next);
  const std::vector<uint8_t> bytes = pattern(1024);
  deliver(0, 0, bytes, 256, {0, 2});
  card().advance_us(kReceiveUs * 6 / 5);
  expect_bad(ring, 0, Status::kReceiveTimeout);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kError);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 3)), Answer::kError);
  EXPECT_EQ(next.touched_outside(0), 0u);
  // The letter has rested, so this is another message.
  card().advance_us(2 * kReceiveUs);
  EXPECT_TRUE(ring.take_all<regs::SharedCpl>().empty());
  for (const uint32_t k : {1u, 3u, 0u, 2u}) {
    Packet packet = segment(0, 0, bytes, k);
    packet.address = 1;
    EXPECT_EQ(exchange(packet), Answer::kDone);
  }
  const auto done = ring.take_all<regs::SharedCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(code_of(done[0].status), Status::kOk);
  EXPECT_EQ(next.bytes(1024), bytes);
}

TEST_P(Receive, EachSegmentRenewsTheTime) {
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  const std::vector<uint8_t> bytes = pattern(4096);
  for (uint32_t k = 0; k < 16; ++k) {
    deliver(0, 0, bytes, 256, {k});
    card().advance_us(kReceiveUs / 2);
  }
  EXPECT_EQ(ring.take_all<regs::SharedCpl>().size(), 1u);
}

/// Segments that wait while the card is not stepped are not silence.
TEST_P(Receive, WaitingSegmentsCountBeforeTimeOuts) {
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  const std::vector<uint8_t> bytes = pattern(512);
  deliver(0, 0, bytes, 256, {0});
  ASSERT_TRUE(card().send(segment(0, 0, bytes, 1)));
  card().sleep_us(10 * kReceiveUs);
  const auto done = ring.take_all<regs::SharedCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(code_of(done[0].status), Status::kOk);
}

TEST_P(Receive, SegmentsBehindALongQueueCountBeforeTimeOuts) {
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  const std::vector<uint8_t> bytes = pattern(512);
  deliver(0, 0, bytes, 256, {0});
  for (int i = 0; i < 200; ++i) {
    ASSERT_TRUE(card().send(doorbell(1, 1)));
  }
  ASSERT_TRUE(card().send(segment(0, 0, bytes, 1)));
  card().sleep_us(10 * kReceiveUs);
  const auto done = ring.take_all<regs::SharedCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(code_of(done[0].status), Status::kOk);
}

TEST_P(Receive, AStoppedQueueAnswersError) {
  EXPECT_EQ(exchange(segment(0, 0, pattern(8))), Answer::kError);
}

// O9
TEST_P(Receive, AMessageForUnmappedMemoryIsLostAndCounted) {
  // A posted write: the card cannot notice.
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  card().unmap(buffer.memory());
  const uint64_t before = card().refused_accesses();
  EXPECT_EQ(exchange(segment(0, 0, pattern(100))), Answer::kDone);
  const auto done = ring.take_all<regs::SharedCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(code_of(done[0].status), Status::kOk);
  EXPECT_GT(card().refused_accesses(), before);
  EXPECT_EQ(buffer.touched_outside(0), 0u);
}

TEST_P(Receive, NothingPassesALinkThatIsDown) {
  TestRing& ring = shared();
  const Buffer buffer(card(), 4096);
  post_shared(ring, buffer);
  card().set_link(false);
  card().run();
  EXPECT_EQ(exchange(segment(0, 0, pattern(8))), std::nullopt);
  EXPECT_TRUE(ring.take_all<regs::SharedCpl>().empty());
}

}  // namespace
}  // namespace rio::test
