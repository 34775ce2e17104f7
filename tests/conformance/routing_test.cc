// Where the receive map leads messages and doorbells. regs: RX_MAP
#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

class ReceiveMap : public CardTest {};
RIO_CONFORMANCE(ReceiveMap);

/// Runs of short messages: for a dedicated queue, for no queue, and for another queue pair.
// V2
TEST_P(ReceiveMap, EachMessageOfARunGoesWhereItBelongs) {
  make({.queue_pairs = 2});
  map_entry(0, kOwnId, 0x0F, 0);
  map_entry(1, kOwnId, 0xF0, 1);
  apply_map();
  TestRing& ring = shared({.log2 = 6});
  TestRing other(card(), {.qp = 1, .ring = 1, .log2 = 6});
  TestRing dedicated(card(), {.ring = 9, .source = kRemoteId, .mbox = 2});
  other.start();
  dedicated.start();
  const Memory memory = card().map(64 * 4096);
  for (uint64_t i = 0; i < 32; ++i) {
    ring.put(regs::SharedDesc{memory.iova + i * 4096});
    other.put(regs::SharedDesc{memory.iova + (32 + i) * 4096});
  }
  const Buffer entry(card(), 4096);
  dedicated.put(regs::DedicatedDesc{entry.iova(), 256, 0});
  ring.post();
  other.post();
  dedicated.post();
  std::vector<uint8_t> left = {0, 1, 5, 0, 2, 3, 9, 7, 6, 0};
  std::vector<uint8_t> refused;
  for (int i = 0; i < 12 && !left.empty(); ++i) {
    for (const uint8_t mbox : left) {
      ASSERT_TRUE(card().send(segment(mbox, 0, pattern(256, mbox))));
    }
    left.clear();
    for (const Packet& packet : sent()) {
      if (packet.answer == Answer::kRetry) {  // the doorbell is still on its way
        left.push_back(packet.mbox);
      } else if (packet.answer == Answer::kError) {
        refused.push_back(packet.mbox);
      }
    }
  }
  EXPECT_EQ(refused, std::vector<uint8_t>{9}) << "nobody's";
  EXPECT_EQ(ring.take_all<regs::SharedCpl>().size(), 5u);
  EXPECT_EQ(other.take_all<regs::SharedCpl>().size(), 3u);
  EXPECT_EQ(dedicated.take_all<regs::EntryCpl>().size(), 1u);
  EXPECT_EQ(entry.bytes(256), pattern(256, 2));
}

// V3
TEST_P(ReceiveMap, AnUnmappedMailboxIsAnError) {
  make({.queue_pairs = 2});
  map_entry(0, kOwnId, 0xF, 0);
  map_entry(1, kOwnId, ~0ull << 32, 1);
  apply_map();
  TestRing& ring = shared();
  TestRing other(card(), {.qp = 1, .ring = 1});
  other.start();
  std::vector<Buffer> buffers;
  for (int i = 0; i < 4; ++i) {
    buffers.emplace_back(card(), 4096);
    post_shared(i < 2 ? ring : other, buffers.back());
  }
  const std::vector<uint8_t> bytes = pattern(8);
  EXPECT_EQ(exchange(segment(3, 0, bytes)), Answer::kDone);
  EXPECT_EQ(exchange(segment(32, 0, bytes)), Answer::kDone);
  EXPECT_EQ(exchange(segment(4, 0, bytes)), Answer::kError);
  Packet stranger = segment(0, 0, bytes);
  stranger.dest = 0x7777;
  EXPECT_EQ(exchange(stranger), Answer::kError);
  EXPECT_EQ(ring.take_all<regs::SharedCpl>().size(), 1u);
  EXPECT_EQ(other.take_all<regs::SharedCpl>().size(), 1u);
  EXPECT_EQ(card().read32(regs::port::rx_unmapped()), 2u);
}

// V2
TEST_P(ReceiveMap, TheFirstMatchingEntryOfTheMapCounts) {
  make({.queue_pairs = 3});
  map_entry(0, kOwnId, 1, 2, false, false);
  map_entry(1, kOwnId, 3, 1, false, false);
  map_entry(2, kOwnId, ~0ull, 0);
  apply_map();
  std::vector<std::unique_ptr<TestRing>> rings;
  std::vector<Buffer> buffers;
  for (uint32_t q = 0; q < 3; ++q) {
    rings.push_back(std::make_unique<TestRing>(card(), RingConfig{.qp = q, .ring = 1}));
    rings.back()->start();
    buffers.emplace_back(card(), 4096);
    post_shared(*rings.back(), buffers.back());
  }
  for (uint8_t mbox = 0; mbox < 3; ++mbox) {
    EXPECT_EQ(exchange(segment(mbox, 0, pattern(8))), Answer::kDone);
    regs::SharedCpl cpl;
    ASSERT_TRUE(rings[2u - mbox]->take(&cpl)) << +mbox;
    EXPECT_EQ(cpl.place, mbox);
  }
}

class Doorbells : public CardTest {};
RIO_CONFORMANCE(Doorbells);

// R10
TEST_P(Doorbells, ArriveInOrderAndGetRetryFromAFullQueue) {
  TestRing ring(card(), {.ring = 2, .log2 = 3});
  EXPECT_EQ(exchange(doorbell(1, 1)), Answer::kError) << "stopped";
  ring.start();
  for (uint16_t i = 0; i < 8; ++i) {
    EXPECT_EQ(exchange(doorbell(static_cast<uint16_t>(0xFF00 + i), 1)), Answer::kDone);
  }
  EXPECT_EQ(exchange(doorbell(99, 1)), Answer::kRetry);
  const auto bells = ring.take_all<regs::DoorbellCpl>();
  ASSERT_EQ(bells.size(), 8u);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(bells[i].status & 0xFFFF, 0xFF00 + i);
    EXPECT_EQ(bells[i].source, kRemoteId);
    EXPECT_EQ(bells[i].dest_id, kOwnId);
  }
  ring.give_back();
  EXPECT_EQ(exchange(doorbell(99, 1)), Answer::kDone);
}

// V2, V3
TEST_P(Doorbells, FollowTheMap) {
  make({.queue_pairs = 2});
  map_entry(0, kOwnId, ~0ull, 0, false, false);
  map_entry(1, kOwnId, 0, 1, true, false);
  apply_map();
  TestRing ring(card(), {.qp = 1, .ring = 2});
  ring.start();
  EXPECT_EQ(exchange(doorbell(5, 1)), Answer::kDone);
  EXPECT_EQ(ring.take_all<regs::DoorbellCpl>().size(), 1u);
}

}  // namespace
}  // namespace rio::test
