// Descriptors of messages, and refused messages.
#include "tests/unit/pmd/dev/tx_queue_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace rio::pmd {
namespace {

TEST_F(TxQueueTest, ADescriptorByAddressHasTheseBytes) {
  TxMessage one = {.iova = 0x1122334455667788,
                   .cookie = 0xA1A2A3A4B1B2B3B4,
                   .dest_id = 0x00C3C2C1,
                   .length_bytes = 0x0123,
                   .mbox = 3,
                   .flags = TxFlags::kOrder | 2};
  expect_tail(1);
  EXPECT_EQ(send(one), 1);
  // order 1 << 3, prio 2 << 5, ssize 14 << 10, mbox 3 << 14
  EXPECT_EQ(entry(0), (Bytes{0x48, 0xF8, 0x00, 0x00, 0xC1, 0xC2, 0xC3, 0x00,  //
                             0x00, 0x00, 0x00, 0x00, 0x23, 0x01, 0x00, 0x00,  //
                             0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  //
                             0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00}));
}

TEST_F(TxQueueTest, SlowAndFastPathWriteTheSame) {
  // The first entry after a wrap within a burst takes the slow path.
  open(1, 1);
  const TxMessage pair[2] = {message(5, 0x2000, 4096), message(5, 0x2000, 4096)};
  expect_tail(3);
  EXPECT_EQ(queue_->burst(pair, 2), 2);
  EXPECT_EQ(entry(1), entry(2));
  script_.complete(*bus_, 1, 1, 0, 0);
  script_.complete(*bus_, 2, 2, 0, 0);
  EXPECT_EQ(reap(), (Cookies{5, 5}));
  EXPECT_EQ(queue_->stats().bytes, 8192u);
}

TEST_F(TxQueueTest, ClearsTheWordThatInlineBytesLeft) {
  const uint8_t data[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  expect_tail(1);
  ASSERT_EQ(send(inline_message(data, 16)), 1);
  complete(0, 0);
  ASSERT_EQ(reap().size(), 1u);
  for (uint32_t i = 1; i <= 4; ++i) {
    expect_tail(i + 1);
    ASSERT_EQ(send(message(i)), 1);
    complete(i, i);
    ASSERT_EQ(reap().size(), 1u);
  }
  const Bytes last = entry(4);
  EXPECT_EQ(Bytes(last.begin() + 24, last.end()), Bytes(8));
}

TEST_F(TxQueueTest, RefusesLengths) {
  expect_refused(message(1, 0x1000, 0), Reject::kLength);
  expect_refused(message(1, 0x1000, 4097), Reject::kLength);
  TxMessage one = message(1, 0x1000, 129);
  one.flags = 1 << TxFlags::kSsizeShift;  // 8-byte segments: at most 128 bytes
  expect_refused(one, Reject::kLength);
  one.length_bytes = 128;
  expect_tail(1);
  EXPECT_EQ(send(one), 1);
}

TEST_F(TxQueueTest, AcceptsAllLengths) {
  open(13, 0);
  for (uint32_t length = 1; length <= 4096; ++length) {
    expect_tail(length);
    ASSERT_EQ(send(message(length, 0x1000, static_cast<uint16_t>(length))), 1);
  }
}

TEST_F(TxQueueTest, RefusesMisalignedAddresses) {
  for (const uint64_t offset : {1, 2, 4}) {
    expect_refused(message(1, 0x1000 + offset), Reject::kAlignment);
  }
  expect_tail(1);
  EXPECT_EQ(send(message(1, 0x1008)), 1);
}

TEST_F(TxQueueTest, RefusesMailboxes) {
  TxMessage one = message(1, 0x1000, 257);
  one.mbox = 4;  // several segments
  expect_refused(one, Reject::kMailbox);
  one.length_bytes = 256;
  one.mbox = 64;
  expect_refused(one, Reject::kMailbox);
  one.mbox = 255;
  expect_refused(one, Reject::kMailbox);
  one.flags = 5 << TxFlags::kSsizeShift;  // 128-byte segments
  one.mbox = 63;
  expect_refused(one, Reject::kMailbox);
  one.length_bytes = 128;
  expect_tail(1);
  EXPECT_EQ(send(one), 1);
  EXPECT_EQ(entry(0)[1], 13 << 2 | 0xC0);  // ssize 13, low bits of mailbox 63
  EXPECT_EQ(entry(0)[2], 0x0F);
}

TEST_F(TxQueueTest, RefusesPrioritiesAndSegmentSizes) {
  TxMessage one = message(1);
  one.flags = 3;
  expect_refused(one, Reject::kOperation);
  one.flags = 7 << TxFlags::kSsizeShift;
  expect_refused(one, Reject::kOperation);
  one.flags = TxFlags::kDoorbell | 3;
  one.info = 1;
  expect_refused(one, Reject::kOperation);
}

TEST_F(TxQueueTest, WritesSegmentSizeCodes) {
  open(3, 0);
  const uint8_t codes[7] = {14, 9, 10, 11, 12, 13, 14};
  for (uint32_t i = 0; i < 7; ++i) {
    TxMessage one = message(1, 0x1000, 8);
    one.flags = static_cast<uint8_t>(i << TxFlags::kSsizeShift);
    expect_tail(i + 1);
    ASSERT_EQ(send(one), 1);
    EXPECT_EQ(entry(i)[1] >> 2 & 0xF, codes[i]);
  }
}

TEST_F(TxQueueTest, StopsBeforeTheBadOne) {
  TxMessage four[4] = {message(1), message(2), message(3, 0x1001), message(4)};
  expect_tail(2);
  EXPECT_EQ(queue_->burst(four, 4), 2);
  EXPECT_EQ(queue_->last_reject(), Reject::kAlignment);
  EXPECT_EQ(queue_->stats().rejected, 1u);
  expect_tail(3);
  EXPECT_EQ(send(four[3]), 1);
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);  // of the last burst only
}

TEST_F(TxQueueTest, ABadMessageFirstRingsNoDoorbell) {
  const TxMessage two[2] = {message(1, 0x1000, 0), message(2)};
  EXPECT_EQ(queue_->burst(two, 2), 0);
  EXPECT_EQ(queue_->mmio().writes, 0u);
}

TEST_F(TxQueueTest, AMessageOfAllOnesIsRefused) {
  TxMessage one;
  std::memset(&one, 0xFF, sizeof one);
  expect_refused(one, Reject::kOperation);
}

TEST_F(TxQueueTest, AnEmptyMessageIsRefused) {
  TxMessage one;
  std::memset(&one, 0, sizeof one);
  expect_refused(one, Reject::kLength);
}

TEST_F(TxQueueTest, EachMessageOfABurstGetsItsOwnHeader) {
  TxMessage three[3] = {message(1, 0x1000, 8), message(2, 0x1000, 16), message(3, 0x1000, 8)};
  three[1].dest_id = 0xABCD;
  three[1].mbox = 1;
  expect_tail(3);
  ASSERT_EQ(queue_->burst(three, 3), 3);
  EXPECT_EQ(entry(0), (Bytes{0, 0x38, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0,  //
                             0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(entry(1), (Bytes{0, 0x78, 0, 0, 0xCD, 0xAB, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0,  //
                             0, 0x10, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0,  0, 0, 0}));
  EXPECT_EQ(entry(2), (Bytes{0, 0x38, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0,  //
                             0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  complete(0, 0);
  complete(1, 1);
  complete(2, 2);
  EXPECT_EQ(reap().size(), 3u);
  EXPECT_EQ(queue_->stats().bytes, 32u);
}

TEST_F(TxQueueTest, InlineBytesAreInTheDescriptor) {
  uint8_t data[17];
  std::iota(data, data + 17, uint8_t{0x81});
  for (uint32_t length = 1; length <= 16; ++length) {
    expect_tail(length);
    ASSERT_EQ(send(inline_message(data, static_cast<uint16_t>(length))), 1);
    Bytes want = {0x04, 0x38, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(length), 0, 0, 0};
    want.insert(want.end(), data, data + length);
    want.resize(32);  // padded with zeros
    EXPECT_EQ(entry(length - 1), want) << length;
    complete(length - 1, length - 1);
    ASSERT_EQ(reap(), (Cookies{0xC0}));
  }
}

TEST_F(TxQueueTest, WideInlineBytesAreInBothEntries) {
  uint8_t data[49];
  std::iota(data, data + 49, uint8_t{0x41});
  uint32_t index = 0;
  for (uint32_t length = 17; length <= 48; ++length, index += 2) {
    expect_tail(index + 2);
    ASSERT_EQ(send(inline_message(data, static_cast<uint16_t>(length))), 1);
    EXPECT_EQ(queue_->free_count(), 2);
    EXPECT_EQ(queue_->outstanding(), 1);
    Bytes want = {0x04, 0x38, 0x10, 0, 7, 0, 0, 0, 0, 0, 0, 0, static_cast<uint8_t>(length),
                  0,    0,    0};
    want.insert(want.end(), data, data + length);
    want.resize(64);
    Bytes got = entry(index);
    const Bytes second = entry(index + 1);
    got.insert(got.end(), second.begin(), second.end());
    EXPECT_EQ(got, want) << length;
    complete(index / 2, index);
    ASSERT_EQ(reap(), (Cookies{0xC0}));
    EXPECT_EQ(queue_->free_count(), 4);
  }
  expect_refused(inline_message(data, 49), Reject::kLength);
}

TEST_F(TxQueueTest, InlineBytesKeepToTheCardsLimit) {
  const uint8_t data[48] = {};
  Caps caps = test::full_caps();
  caps.inline_units = 1;
  caps.inline_bytes = 8;
  open(2, 0, caps);
  expect_refused(inline_message(data, 9), Reject::kLength);
  expect_refused(inline_message(data, 17), Reject::kLength);
  expect_tail(1);
  EXPECT_EQ(send(inline_message(data, 8)), 1);
  caps.inline_units = 2;
  open(2, 0, caps);
  expect_tail(2);
  EXPECT_EQ(send(inline_message(data, 9)), 1);
  EXPECT_EQ(entry(0)[2], 0x10);
}

TEST_F(TxQueueTest, InlineMessagesAreChecked) {
  const uint8_t data[48] = {};
  TxMessage one = inline_message(data, 0);
  expect_refused(one, Reject::kLength);
  one = inline_message(data, 16);
  one.mbox = 64;
  expect_refused(one, Reject::kMailbox);
}

// An entry of several units crosses neither the ring's end nor 4 KiB, which are 128 units.
TEST_F(TxQueueTest, UnitsBeforeAnEdgeAreSkipped) {
  Caps caps = test::full_caps();
  caps.inline_units = 4;
  uint8_t data[112];
  std::iota(data, data + 112, uint8_t{1});
  for (const uint32_t edge : {128u, 256u}) {
    for (uint32_t before = 1; before < 4; ++before) {
      const uint32_t start = edge - before;
      open(8, start, caps);
      expect_tail(edge + 4);
      ASSERT_EQ(send(inline_message(data, 112)), 1);
      for (uint32_t i = start; i != edge; ++i) {
        EXPECT_EQ(entry(i)[0], 2) << "SKIP";
      }
      EXPECT_EQ(entry(edge)[2], 0x30);
      EXPECT_EQ(entry(edge)[16], 1);
      EXPECT_EQ(entry(edge + 3)[31], 112);
      EXPECT_EQ(queue_->outstanding(), 1);
      complete(start, edge);
      ASSERT_EQ(reap(), (Cookies{0xC0}));
      EXPECT_EQ(queue_->free_count(), 256);
    }
  }
}

TEST_F(TxQueueTest, SkippedUnitsGoWithTheEntryBeforeThem) {
  open(3, 5);
  uint8_t data[48] = {};
  expect_tail(6);
  ASSERT_EQ(send(message(1)), 1);
  expect_tail(7);
  ASSERT_EQ(send(message(2)), 1);
  expect_tail(10);  // entry 7 is skipped
  ASSERT_EQ(send(inline_message(data, 48)), 1);
  EXPECT_EQ(queue_->free_count(), 3);
  complete(5, 8, 2 << 16);
  EXPECT_EQ(reap(1), (Cookies{1}));
  EXPECT_EQ(reap(), (Cookies{2, 0xC0}));
  EXPECT_EQ(queue_->free_count(), 8);
  EXPECT_EQ(queue_->outstanding(), 0);
}

TEST_F(TxQueueTest, WideFormNeedsTwoEntries) {
  const uint8_t data[48] = {};
  const TxMessage three[3] = {message(1), message(2), message(3)};
  expect_tail(3);
  ASSERT_EQ(queue_->burst(three, 3), 3);
  EXPECT_EQ(send(inline_message(data, 17)), 0);
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
  expect_tail(4);
  EXPECT_EQ(send(inline_message(data, 16)), 1);
}

TEST_F(TxQueueTest, SecondEntryOfTheWideFormHasNoCompletion) {
  const uint8_t data[48] = {};
  TxMessage two[2] = {inline_message(data, 48), message(2)};
  expect_tail(3);
  ASSERT_EQ(queue_->burst(two, 2), 2);
  complete(0, 1);  // not an entry of its own
  complete(1, 2);
  complete(2, 1);
  EXPECT_EQ(reap(), (Cookies{2}));
  EXPECT_EQ(queue_->stats().bad_completions, 2u);
  EXPECT_EQ(queue_->free_count(), 1);  // the wide entry is older
  complete(3, 0);
  EXPECT_EQ(reap(), (Cookies{0xC0}));
  EXPECT_EQ(queue_->free_count(), 4);
  EXPECT_EQ(queue_->outstanding(), 0);
}

TEST_F(TxQueueTest, PlainMessagesAfterAWideOneAreFastAgain) {
  const uint8_t data[48] = {};
  expect_tail(2);
  ASSERT_EQ(send(inline_message(data, 48)), 1);
  complete(0, 0);
  ASSERT_EQ(reap(), (Cookies{0xC0}));
  const TxMessage four[4] = {message(1), message(2), message(3), message(4)};
  expect_tail(6);
  ASSERT_EQ(queue_->burst(four, 4), 4);
  for (uint32_t i = 0; i < 4; ++i) {
    complete(1 + i, 2 + i);
  }
  EXPECT_EQ(reap(), (Cookies{1, 2, 3, 4}));
}

TEST_F(TxQueueTest, ADoorbellHasTheseBytes) {
  TxMessage one = message(0x99, 0, 5000);  // length and mailbox are ignored
  one.mbox = 200;
  one.flags = TxFlags::kDoorbell | 1;
  one.info = 0xBEEF;
  expect_tail(1);
  ASSERT_EQ(send(one), 1);
  EXPECT_EQ(entry(0), (Bytes{0x25, 0x38, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0,  //
                             0xEF, 0xBE, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  complete(0, 0);
  EXPECT_EQ(reap(), (Cookies{0x99}));
  EXPECT_EQ(queue_->stats().bytes, 2u);
  one.info = 0x10000;
  expect_refused(one, Reject::kLength);
}

TEST_F(TxQueueTest, AGatheredMessageHasTheseBytes) {
  const TxGather one = {.cookie = 0x1234567811223344,
                        .iova = {0x1000, 0x20008, 0xABCD00000000, 0x40},
                        .length_bytes = {8, 256, 16, 5},
                        .dest_id = 9,
                        .count = 4,
                        .mbox = 2,
                        .flags = TxFlags::kOrder};
  expect_tail(2);
  ASSERT_EQ(queue_->burst_gather(&one, 1), 1);
  // order 1 << 3, addrs 4 << 7, ssize 14 << 10, mbox 2 << 14, two units 1 << 20
  EXPECT_EQ(entry(0), (Bytes{0x08, 0xBA, 0x10, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0x1D, 1, 0, 0,
                             0,    0x10, 0,    0, 0, 0, 0, 0, 8, 0, 0, 0, 0,    0, 0, 0}));
  EXPECT_EQ(entry(1), (Bytes{8,    0, 2, 0, 0, 0, 0, 0, 0, 0, 0,  0, 0xCD, 0xAB, 0, 0,
                             0x40, 0, 0, 0, 0, 0, 0, 0, 0, 1, 16, 0, 5,    0,    0, 0}));
  complete(0, 0);
  EXPECT_EQ(reap(), (Cookies{0x1234567811223344}));
  EXPECT_EQ(queue_->stats().bytes, 285u);
}

TEST_F(TxQueueTest, TwoPlacesLeaveTheRestZero) {
  const TxGather one = {.cookie = 1,
                        .iova = {0x1000, 0x2000, 0x3001, 0x4001},
                        .length_bytes = {8, 3, 77, 77},
                        .dest_id = 9,
                        .count = 2,
                        .mbox = 0,
                        .flags = 0};
  expect_tail(2);
  ASSERT_EQ(queue_->burst_gather(&one, 1), 1);
  EXPECT_EQ(entry(0)[12], 11);
  EXPECT_EQ(entry(1), (Bytes{0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                             0, 0,    0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0}));
}

TEST_F(TxQueueTest, GatheredMessagesAreChecked) {
  const TxGather good = {.cookie = 1,
                         .iova = {0x1000, 0x2000, 0x3000, 0x4000},
                         .length_bytes = {8, 8, 8, 8},
                         .dest_id = 9,
                         .count = 4,
                         .mbox = 0,
                         .flags = 0};
  const auto refused = [this](const TxGather& one) {
    EXPECT_EQ(queue_->burst_gather(&one, 1), 0);
    EXPECT_EQ(queue_->outstanding(), 0);
    return queue_->last_reject();
  };
  TxGather bad = good;
  bad.count = 1;
  EXPECT_EQ(refused(bad), Reject::kOperation);
  bad.count = 5;
  EXPECT_EQ(refused(bad), Reject::kOperation);
  for (const uint8_t flags : {TxFlags::kInline, TxFlags::kDoorbell, uint8_t{3}}) {
    bad = good;
    bad.flags = flags;
    EXPECT_EQ(refused(bad), Reject::kOperation);
  }
  for (uint32_t i = 0; i < 4; ++i) {
    bad = good;
    bad.length_bytes[i] = 0;
    EXPECT_EQ(refused(bad), Reject::kLength) << i;
    bad = good;
    bad.iova[i] += 4;
    EXPECT_EQ(refused(bad), Reject::kAlignment) << i;
    bad = good;
    bad.length_bytes[i] = 4095;
    EXPECT_EQ(refused(bad), Reject::kLength) << i;
  }
  for (uint32_t i = 0; i < 3; ++i) {
    bad = good;
    bad.length_bytes[i] = 12;
    EXPECT_EQ(refused(bad), Reject::kLength) << i;
  }
  bad = good;
  bad.mbox = 64;
  EXPECT_EQ(refused(bad), Reject::kMailbox);
  EXPECT_EQ(queue_->stats().rejected, 21u);
  EXPECT_EQ(queue_->mmio().writes, 0u);
  TxGather two[2] = {good, good};
  two[1].length_bytes[3] = 7;
  expect_tail(4);
  EXPECT_EQ(queue_->burst_gather(two, 2), 2);
  EXPECT_EQ(queue_->burst_gather(two, 1), 0);  // the ring is full
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
}

TEST_F(TxQueueTest, ARingOfTwoHasNoRoomForSkippingBeforeAPair) {
  open(1, 1);
  const uint8_t data[17] = {};
  expect_refused(inline_message(data, 17), Reject::kLength);
  expect_no_gathering();
}

TEST_F(TxQueueTest, GatheringNeedsTheWideForm) {
  Caps caps = test::full_caps();
  caps.wide = false;
  open(2, 0, caps);
  expect_no_gathering();
}

}  // namespace
}  // namespace rio::pmd
