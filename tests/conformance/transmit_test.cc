// Messages that the card sends: sizes, forms, refusals by the card. regs: tx_desc; RIO Part 2
// §4.2.5
#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

using regs::Status;
using C = regs::tx_desc::Control;

class Transmit : public CardTest {
 protected:
  /// Assembles the message of these segments, padding included.
  static std::vector<uint8_t> assembled(const std::vector<Packet>& segments) {
    std::vector<uint8_t> all;
    for (const Packet& segment : segments) {
      const size_t at = static_cast<size_t>(segment.segment) * segment.ssize;
      all.resize(std::max(all.size(), at + segment.data.size()));
      std::copy(segment.data.begin(), segment.data.end(), all.begin() + static_cast<ptrdiff_t>(at));
    }
    return all;
  }
  static std::vector<uint8_t> padded(std::vector<uint8_t> bytes) {
    bytes.resize((bytes.size() + 7) & ~size_t{7});
    return bytes;
  }
  void expect_status(TestRing& ring, uint32_t cookie, Status status) {
    const auto done = ring.take_all<regs::TxCpl>();
    ASSERT_EQ(done.size(), 1u) << "cookie " << cookie;
    EXPECT_EQ(done[0].cookie, cookie);
    EXPECT_EQ(code_of(done[0].status), status) << "cookie " << cookie;
  }
  /// Posts a descriptor that the card must refuse without sending anything.
  void refused(const regs::TxDesc& desc, const regs::TxWide* wide = nullptr) {
    TestRing ring(card(), {});
    ring.start();
    ring.put(desc);
    if (wide != nullptr) {
      ring.put(*wide);
    }
    ring.post();
    EXPECT_TRUE(sent().empty());
    expect_status(ring, desc.cookie, Status::kBadDescriptor);
    ring.stop();
  }
};
RIO_CONFORMANCE(Transmit);

// T1
TEST_P(Transmit, EachLengthIsReadExactlyAndPadded) {
  TestRing& ring = tx({.log2 = 6});
  // The bytes end where mapped memory ends: reading one more would be a refused access.
  const Memory memory = card().map(8192);
  for (uint32_t length = 1; length <= 4096; length += length < 600 ? 1 : 61) {
    const uint32_t at = 8192 - ((length + 7) & ~7u);
    const std::vector<uint8_t> bytes = pattern(length, length);
    std::memset(memory.va, 0xEE, 8192);
    std::copy(bytes.begin(), bytes.end(), memory.va + at);
    ring.put(message(0, length, memory.iova + at, length));
    ring.post();
    const std::vector<Packet> segments = sent();
    ASSERT_FALSE(segments.empty()) << length;
    ASSERT_EQ(assembled(segments), padded(bytes)) << length;
    if (card().segmented()) {
      ASSERT_EQ(segments.size(), (length + 255) / 256);
    }
    for (const Packet& segment : segments) {
      EXPECT_EQ(segment.source, kOwnId);
      EXPECT_EQ(segment.segments, (length + 255) / 256);
      EXPECT_EQ(segment.ssize, 256u);
    }
    answer_all(segments);
    expect_status(ring, length, Status::kOk);
  }
  EXPECT_EQ(card().refused_accesses(), 0u);
}

// V1
TEST_P(Transmit, EachQueuePairSendsAsItself) {
  make({.queue_pairs = 2});
  const Buffer buffer(card(), 64);
  TestRing& first = tx();
  TestRing second(card(), {.qp = 1});
  second.start();
  for (TestRing* ring : {&second, &first}) {
    ring->put(message(0, 8, buffer.iova(), ring == &second ? 2 : 1));
    ring->post();
    const std::vector<Packet> segments = sent();
    ASSERT_EQ(segments.size(), 1u);
    EXPECT_EQ(segments[0].source, ring == &second ? kOwnId + 1 : kOwnId);
    answer_all(segments);
    expect_status(*ring, ring == &second ? 2 : 1, Status::kOk);
  }
}

// T2
TEST_P(Transmit, EachSegmentSizeIsUsed) {
  TestRing& ring = tx();
  const Buffer buffer(card(), 4096);
  const std::vector<uint8_t> bytes = pattern(4096, 5);
  buffer.fill(bytes);
  for (uint32_t code = 9; code <= 14; ++code) {
    const uint32_t ssize = 8u << (code - 9);
    for (const uint32_t length :
         {1u, 7u, ssize - 1, ssize, ssize + 1, 15 * ssize + 3, 16 * ssize}) {
      ring.put(message(1, length, buffer.iova(), length, code));
      ring.post();
      const std::vector<Packet> segments = sent();
      ASSERT_FALSE(segments.empty());
      EXPECT_EQ(segments[0].segments, (length + ssize - 1) / ssize);
      EXPECT_EQ(segments[0].ssize, ssize);
      EXPECT_EQ(assembled(segments), padded({bytes.begin(), bytes.begin() + length}));
      answer_all(segments);
      expect_status(ring, length, Status::kOk);
    }
  }
}

// T14
TEST_P(Transmit, InlineBytesAreSent) {
  TestRing& ring = tx({.log2 = 7});
  for (uint32_t length = 1; length <= 112; ++length) {
    const std::vector<uint8_t> bytes = pattern(length, length);
    const uint32_t units = length <= 16 ? 1 : 1 + (length - 16 + 31) / 32;
    uint8_t raw[112] = {};
    regs::TxDesc desc =
        message(63, length, 0, length, kSsize256, C::inline_.put(1) | C::units.put(units - 1));
    std::memcpy(raw, bytes.data(), length);
    std::memcpy(&desc.addr, raw, 16);
    while (128 - ring.tail % 128 < units) {
      ring.put(regs::TxDesc{C::op.put(2), 0, 0, 0, 0, 0});
    }
    ring.put(desc);
    for (uint32_t i = 1; i < units; ++i) {
      regs::TxWide unit;
      std::memcpy(static_cast<void*>(&unit), raw + 32 * i - 16, 32);
      ring.put(unit);
    }
    ring.post();
    const std::vector<Packet> segments = sent();
    ASSERT_EQ(segments.size(), 1u) << length;
    EXPECT_EQ(segments[0].mbox, 63u);
    EXPECT_EQ(assembled(segments), padded(bytes)) << length;
    answer_all(segments);
    expect_status(ring, length, Status::kOk);
  }
}

// T14
TEST_P(Transmit, UpToFourAddressesAreGathered) {
  TestRing& ring = tx();
  const Buffer buffer(card(), 8192);
  const std::vector<uint8_t> bytes = pattern(8192, 9);
  buffer.fill(bytes);
  const uint32_t lengths[][4] = {{8, 5, 0, 0},        {2048, 2048, 0, 0},       {8, 16, 24, 0},
                                 {264, 8, 1016, 777}, {1024, 1024, 1024, 1024}, {8, 8, 8, 1}};
  for (const auto& len : lengths) {
    const uint32_t count = len[2] == 0 ? 2 : len[3] == 0 ? 3 : 4;
    const uint32_t at[4] = {4096, 0, 1032, 2400};
    std::vector<uint8_t> whole;
    for (uint32_t i = 0; i < count; ++i) {
      whole.insert(whole.end(), bytes.begin() + at[i], bytes.begin() + at[i] + len[i]);
    }
    regs::TxDesc desc = message(2, static_cast<uint32_t>(whole.size()), buffer.iova() + at[0], 3,
                                kSsize256, C::units.put(1) | C::addrs.put(count));
    desc.aux = len[0];
    ring.put(desc);
    ring.put(regs::TxWide{buffer.iova() + at[1], buffer.iova() + at[2], buffer.iova() + at[3],
                          static_cast<uint16_t>(len[1]), static_cast<uint16_t>(len[2]),
                          static_cast<uint16_t>(len[3]), 0});
    ring.post();
    const std::vector<Packet> segments = sent();
    EXPECT_EQ(assembled(segments), padded(whole)) << whole.size();
    answer_all(segments);
    expect_status(ring, 3, Status::kOk);
  }
}

// T25
TEST_P(Transmit, AnEntryThatWrapsOrCrossesAPageIsRefused) {
  // Of 4 KiB and more: 128 units are a page.
  for (const uint32_t start : {255u, 253u, 127u, 125u}) {
    TestRing ring(card(), {.log2 = 8, .start = start});
    ring.start();
    ring.put(message(4, 100, 0, start, kSsize256, C::inline_.put(1) | C::units.put(3)));
    for (uint32_t i = 0; i < 3; ++i) {
      ring.put(regs::TxWide{});
    }
    ring.put(message(4, 8, 0, 5, kSsize256, C::inline_.put(1)));
    ring.post();
    const std::vector<Packet> segments = sent();
    ASSERT_EQ(segments.size(), 1u) << start;
    answer_all(segments);
    const auto done = ring.take_all<regs::TxCpl>();
    ASSERT_EQ(done.size(), 2u);
    EXPECT_EQ(code_of(done[0].status), Status::kBadDescriptor);
    EXPECT_EQ(done[0].index, start);
    EXPECT_EQ(code_of(done[1].status), Status::kOk);
    EXPECT_EQ(done[1].index, start + 4);
    ring.stop();
  }
}

// T26
TEST_P(Transmit, SkippedUnitsHaveNoCompletion) {
  TestRing& ring = tx({.log2 = 3, .start = 0xFFFFFFFD});
  const regs::TxDesc skip{C::op.put(2), 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, ~0ull, ~0ull};
  for (uint32_t i = 0; i < 3; ++i) {
    ring.put(skip);
  }
  ring.post();
  EXPECT_TRUE(sent().empty());
  uint8_t raw[112];
  std::iota(raw, raw + 112, static_cast<uint8_t>(1));
  regs::TxDesc desc = message(4, 112, 0, 5, kSsize256, C::inline_.put(1) | C::units.put(3));
  std::memcpy(&desc.addr, raw, 16);
  ring.put(desc);
  for (uint32_t i = 0; i < 3; ++i) {
    regs::TxWide unit;
    std::memcpy(static_cast<void*>(&unit), raw + 16 + 32 * i, 32);
    ring.put(unit);
  }
  ring.put(skip);
  ring.post();
  const std::vector<Packet> segments = sent();
  ASSERT_EQ(segments.size(), 1u);
  EXPECT_EQ(segments[0].data, std::vector<uint8_t>(raw, raw + 112));
  answer_all(segments);
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].index, 0u);
  card().set_link(false);  // nothing is flying: what is posted now is flushed
  ring.put(skip);
  ring.put(message(4, 8, 0, 6, kSsize256, C::inline_.put(1)));
  ring.post();
  const auto flushed = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(flushed.size(), 1u);
  EXPECT_EQ(flushed[0].cookie, 6u);
}

// T3
TEST_P(Transmit, BadDescriptorsAreRefusedAndNamed) {
  const Buffer b(card(), 4096);
  refused(message(0, 0, b.iova(), 1));
  refused(message(0, 4097, b.iova(), 2));
  refused(message(0, 0xFFFFFFFF, b.iova(), 3));
  refused(message(0, 8, b.iova() + 4, 4));  // misaligned
  refused(message(0, 8, b.iova(), 5, 8));   // reserved segment size
  refused(message(0, 8, b.iova(), 6, 15));
  refused(message(0, 8, b.iova(), 7, kSsize256, C::prio.put(3)));
  refused(message(0, 129, b.iova(), 8, 9));  // 17 segments
  refused(message(4, 257, b.iova(), 9));     // several segments, mailbox 4
  refused(message(0, 17, 0, 10, kSsize256, C::inline_.put(1)));
  refused(message(0, 8, b.iova(), 11, kSsize256, C::op.put(3)));
  refused(message(0, 8, b.iova(), 12, kSsize256, C::addrs.put(2)));  // needs the wide form
}

TEST_P(Transmit, BadWideDescriptorsAreRefused) {
  const Buffer b(card(), 4096);
  const uint64_t a = b.iova();
  const auto wide = C::units.put(1);
  const regs::TxWide second{a, a, a, 8, 8, 8, 0};
  refused(message(0, 49, 0, 1, kSsize256, wide | C::inline_.put(1)), &second);
  refused(message(0, 8, a, 2, kSsize256, wide), &second);  // neither inline nor addresses
  regs::TxDesc desc = message(0, 16, a, 3, kSsize256, wide | C::addrs.put(2));
  desc.aux = 16;  // 16 + 8 are not 16
  refused(desc, &second);
  desc.aux = 8;
  desc.cookie = 4;
  const regs::TxWide misaligned{a + 2, 0, 0, 8, 0, 0, 0};
  refused(desc, &misaligned);
  desc.aux = 4;  // every piece but the last must be of doublewords
  desc.length = 12;
  desc.cookie = 5;
  refused(desc, &second);
  desc.control = C::ssize.put(kSsize256) | wide | C::addrs.put(5);
  desc.cookie = 6;
  refused(desc, &second);
  desc.control = C::op.put(1) | wide;
  desc.cookie = 7;
  refused(desc, &second);  // a doorbell has no wide form
}

TEST_P(Transmit, ABadDescriptorDoesNotStopItsNeighbours) {
  const Buffer b(card(), 64);
  TestRing& ring = tx();
  ring.put(message(0, 8, b.iova(), 1));
  ring.put(message(0, 0, b.iova(), 2));
  ring.put(message(0, 8, b.iova(), 3));
  ring.post();
  const std::vector<Packet> segments = sent();
  EXPECT_EQ(segments.size(), 2u);
  answer_all(segments);
  EXPECT_EQ(ring.take_all<regs::TxCpl>().size(), 3u);
}

// T11
TEST_P(Transmit, UnmappedBytesAreNeverSentAndCounted) {
  const Buffer buffer(card(), 4096);
  card().unmap(buffer.memory());
  TestRing& ring = tx();
  ring.put(message(0, 4096, buffer.iova(), 1));
  ring.put(message(0, 8, buffer.iova(), 2));
  ring.post();
  EXPECT_TRUE(sent().empty());
  const auto done = ring.take_all<regs::TxCpl>();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(code_of(done[0].status), Status::kHostReadFailed);
  EXPECT_EQ(code_of(done[1].status), Status::kHostReadFailed);
  EXPECT_GE(card().refused_accesses(), 2u);
}

TEST_P(Transmit, AMessageThatEndsInUnmappedMemoryIsRefused) {
  const Memory memory = card().map(4096);
  TestRing& ring = tx();
  ring.put(message(0, 4096, memory.iova + 4096 - 1024, 1));
  ring.post();
  const std::vector<Packet> segments = sent();
  expect_status(ring, 1, Status::kHostReadFailed);
  EXPECT_LE(segments.size(), 4u);
  EXPECT_GE(card().refused_accesses(), 1u);
}

TEST_P(Transmit, ALinkThatIsDownIsReportedAtOnce) {
  const Buffer buffer(card(), 64);
  TestRing& ring = tx();
  card().set_link(false);
  ring.put(message(0, 8, buffer.iova(), 1));
  ring.post();
  EXPECT_TRUE(sent().empty());
  expect_status(ring, 1, Status::kLinkDown);
}

// T23, T24
// Each message is reported once, by a completion that was delivered if it reports several; the
// answers come in the order of `turn`, and one of them may be ERROR.
TEST_P(Transmit, CumulativeCompletionsReportEachMessageOnce) {
  using Last = regs::tx_cpl::Status;
  constexpr uint32_t kCount = 12;
  const Buffer buffer(card(), 64);
  for (const uint32_t turn : {1u, 5u, kCount - 1}) {
    for (const uint32_t bad : {kCount, 3u}) {
      TestRing ring(card(), {.start = 0xFFFFFFF8, .format = 1});
      ring.start();
      for (uint32_t i = 0; i < kCount; ++i) {
        ring.put(message(4 + i, 8, buffer.iova(), i));
      }
      ring.post();
      const std::vector<Packet> segments = sent();
      ASSERT_EQ(segments.size(), kCount);
      for (uint32_t i = 0; i < kCount; ++i) {
        const uint32_t at = i * turn % kCount;
        answer(segments[at], at == bad ? Answer::kError : Answer::kDone);
      }
      std::vector<Status> reported(kCount, Status::kFlushed);
      for (const regs::TxCpl& cpl : ring.take_all<regs::TxCpl>()) {
        const uint32_t more = Last::more.get(cpl.status);
        const uint32_t last = cpl.index - ring.config().start;
        ASSERT_LE(more, last);
        EXPECT_EQ(cpl.cookie, last);
        EXPECT_TRUE(more == 0 || code_of(cpl.status) == Status::kOk);
        for (uint32_t i = last - more; i <= last; ++i) {
          EXPECT_EQ(reported[i], Status::kFlushed) << "reported twice";
          reported[i] = code_of(cpl.status);
        }
      }
      for (uint32_t i = 0; i < kCount; ++i) {
        EXPECT_EQ(reported[i], i == bad ? Status::kErrorResponse : Status::kOk) << i;
      }
      ring.stop();
      card().advance_us(3 * kResponseUs);  // the letter of the refused message rests
    }
  }
}

TEST_P(Transmit, DoorbellsCarrySixteenBits) {
  TestRing& ring = tx();
  const regs::TxDesc desc{C::op.put(1) | C::inline_.put(1), kRemoteId, 42, 2, 0xBEEF, 0};
  ring.put(desc);
  ring.post();
  const std::vector<Packet> packets = sent();
  ASSERT_EQ(packets.size(), 1u);
  EXPECT_EQ(packets[0].kind, Packet::kDoorbell);
  EXPECT_EQ(packets[0].address, 0xBEEFu);
  EXPECT_EQ(packets[0].source, kOwnId);
  respond(packets[0], Answer::kDone);
  expect_status(ring, 42, Status::kOk);
}

}  // namespace
}  // namespace rio::test
