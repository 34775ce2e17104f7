// Blocks, capabilities, reset. regs: ID, RX_MAP, PORT, QP, WINDOW
#include <map>

#include "fpga/regs/gen/rio_names.hpp"
#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

class Discovery : public CardTest {
 protected:
  /// The words of one writer, in the first instance of each block, by offset.
  static std::map<uint32_t, uint32_t> words(CardUnderTest& card, bool host) {
    std::map<uint32_t, uint32_t> all;
    for (const regs::names::RegName& reg : regs::names::kRegisters) {
      for (uint32_t i = 0; reg.host == host && i < reg.count; ++i) {
        const uint32_t at = reg.offset + i * reg.stride;
        all[at] = at == regs::id::heartbeat() ? 0 : card.read32(at);
      }
    }
    return all;
  }
};
RIO_CONFORMANCE(Discovery);

// B3, B4, B5, P4
TEST_P(Discovery, MagicAndChainOfBlocksAreRight) {
  make({.queue_pairs = 3});
  EXPECT_EQ(card().read32(regs::id::magic()), 0x52494F43u);
  std::map<uint32_t, std::vector<uint32_t>> found;  // instances by type
  uint32_t base = 0;
  uint32_t header = card().read32(4);
  uint32_t next = card().read32(8);
  found[header & 0xFF].push_back(header >> 16 & 0xFF);
  for (int hops = 0; next != 0 && hops < 200; ++hops) {
    ASSERT_EQ(next & 0xFFF, 0u) << "blocks begin on pages";
    ASSERT_GT(next, base) << "no loops";
    base = next;
    header = card().read32(base);
    const uint32_t qp_base = 0x10000 * ((header >> 16 & 0xFF) + 1);
    const std::map<uint32_t, uint32_t> places = {
        {2, 0x2000}, {3, 0x4000}, {4, qp_base}, {5, qp_base + 0x4000}};
    if (const auto place = places.find(header & 0xFF); place != places.end()) {
      EXPECT_EQ(base, place->second);
    }
    EXPECT_GE(header >> 8 & 0xFF, 2u) << "edition";
    found[header & 0xFF].push_back(header >> 16 & 0xFF);
    next = card().read32(base + 4);
  }
  const std::vector<uint32_t> each{0, 1, 2};
  EXPECT_EQ(found[1], std::vector<uint32_t>{0});  // id
  EXPECT_EQ(found[2], std::vector<uint32_t>{0});  // receive map
  EXPECT_EQ(found[3], std::vector<uint32_t>{0});  // port
  EXPECT_EQ(found[4], each);                      // queue pairs
  EXPECT_EQ(found[5], each);                      // windows
}

TEST_P(Discovery, CapabilitiesAreWithinTheirLimits) {
  using namespace regs::id;
  const uint32_t queues = card().read32(cap_queues());
  EXPECT_EQ(CapQueues::qps.get(queues), 1u);
  EXPECT_GE(CapQueues::ring_log2_min.get(queues), 1u);
  EXPECT_GE(CapQueues::ring_log2_max.get(queues), CapQueues::ring_log2_min.get(queues));
  const uint32_t messages = card().read32(cap_messages());
  EXPECT_EQ(CapMessages::letters.get(messages), 4u);
  EXPECT_GE(CapMessages::tx_contexts.get(messages), 1u);
  EXPECT_GE(CapMessages::rx_contexts.get(messages), 1u);
  EXPECT_EQ(CapMessages::inline_bytes.get(messages), 16u);
  const uint32_t align = card().read32(cap_align());
  EXPECT_EQ(CapAlign::tx_addr_log2.get(align), 3u);
  EXPECT_EQ(CapAlign::shared_addr_log2.get(align), 8u);
  EXPECT_EQ(CapAlign::dedicated_addr_log2.get(align), 12u);
  EXPECT_EQ(CapAlign::dedicated_size_log2.get(align), 8u);
  EXPECT_NE(CapTimers::tick_ns.get(card().read32(cap_timers())), 0u);
  EXPECT_GE(card().read32(cap_dma_bytes()), 256u);
}

// B2, B7
TEST_P(Discovery, APageHasOneWriterAndATailACacheLine) {
  std::map<uint32_t, bool> host_writes;  // by page
  for (const regs::names::RegName& reg : regs::names::kRegisters) {
    for (uint32_t i = 0; i < reg.count; ++i) {
      const uint32_t page = (reg.offset + i * reg.stride) / regs::kPageBytes;
      EXPECT_EQ(host_writes.emplace(page, reg.host).first->second, reg.host) << reg.name;
    }
  }
  for (uint32_t ring = 1; ring < regs::kRingsPerQp; ++ring) {
    EXPECT_EQ(regs::qp::tail(0, ring) - regs::qp::tail(0, ring - 1), 64u);
  }
  tx();
  const auto before = words(card(), true);
  const Buffer buffer(card(), 512);
  tx_->put(message(0, 512, buffer.iova()));
  tx_->post();
  answer_all(sent());
  EXPECT_EQ(exchange(segment(0, 0, pattern(8))), Answer::kError);
  auto after = words(card(), true);
  after[regs::qp::tail(0, 0)] = before.at(regs::qp::tail(0, 0));  // the host's own write
  EXPECT_EQ(after, before) << "the card wrote a word of the host";
}

// B1
TEST_P(Discovery, ReadsAndRepeatedWritesMeanNothing) {
  TestRing bells(card(), {.ring = 2, .irq = true, .vector = 5});
  bells.start();
  EXPECT_EQ(exchange(doorbell(1, 1)), Answer::kDone);
  EXPECT_EQ(card().interrupts(5), 1u);
  const Buffer buffer(card(), 64);
  open_window(0, buffer, 0, 64, regs::window::Control::write.put(1));
  tx().put(message(0, 8, buffer.iova()));
  tx_->post();
  ASSERT_EQ(sent().size(), 1u) << "in flight";
  const auto before = words(card(), false);
  for (const auto& [offset, value] : words(card(), true)) {
    card().write32(offset, value);
  }
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(words(card(), false), before);
  EXPECT_EQ(card().interrupts(5), 0u);
}

// R1
TEST_P(Discovery, OnlyQueuePairZeroHasMaintenance) {
  make({.queue_pairs = 2});
  EXPECT_EQ(card().read32(regs::qp::rings(0)), 0xFF7Fu);
  EXPECT_EQ(card().read32(regs::qp::rings(1)), 0xFF6Fu);
}

TEST_P(Discovery, HeartbeatMoves) {
  const uint32_t before = card().read32(regs::id::heartbeat());
  card().run();
  card().run();
  EXPECT_NE(card().read32(regs::id::heartbeat()), before);
}

TEST_P(Discovery, IdentityTakesEffectAndIsEchoed) {
  EXPECT_EQ(card().read32(regs::qp::dest_id(0)), kOwnId);
  card().write32(regs::id::qp_dest_id(0), 0x77);
  card().run();
  EXPECT_EQ(card().read32(regs::qp::dest_id(0)), 0x77u);
}

// G1
TEST_P(Discovery, ResetStopsRings) {
  TestRing& ring = tx();
  const uint32_t gen = card().read32(regs::id::gen_ack());
  card().write32(regs::id::gen_req(), gen + 5);
  card().run();
  EXPECT_EQ(card().read32(regs::id::gen_ack()), gen + 5);
  EXPECT_EQ(ring.status().state, regs::RingState::kStopped);
  ring.start();
}

// G2
TEST_P(Discovery, EntriesPostedBeforeTheAnswerAreDropped) {
  const Buffer buffer(card(), 64);
  TestRing& ring = tx();
  card().write32(regs::id::gen_req(), card().read32(regs::id::gen_ack()) + 1);
  ring.put(message(0, 8, buffer.iova()));
  ring.post();
  while (card().read32(regs::id::gen_ack()) != card().read32(regs::id::gen_req())) {
    card().work();
  }
  for (Packet before; card().receive(&before);) {  // the card may have seen the entry first
    answer(before);
  }
  EXPECT_TRUE(sent().empty());
  regs::TxCpl cpl;
  EXPECT_FALSE(ring.take(&cpl));
}

// G3
TEST_P(Discovery, ResetIgnoresEarlierRunBits) {
  // A run bit written before the reset must not start the ring after it.
  tx();
  reset();
  card().run();
  EXPECT_EQ(tx_->status().state, regs::RingState::kStopped);
}

// G1, G3
TEST_P(Discovery, ResetClosesWindows) {
  namespace w = regs::window;
  const uint32_t open = w::Control::gen.put(3) | w::Control::enable.put(1) |
                        w::Control::read.put(1) | w::Control::write.put(1);
  const Buffer buffer(card(), 256);
  card().write32(w::size_lo(0, 0), 256);
  card().write32(w::bus_lo(0, 0), static_cast<uint32_t>(buffer.iova()));
  card().write32(w::bus_hi(0, 0), static_cast<uint32_t>(buffer.iova() >> 32));
  card().write32(w::control(0, 0), open);
  card().run();
  ASSERT_EQ(card().read32(w::status(0, 0)), open);
  // As the driver does: stop writes first.
  card().write32(w::control(0, 0), 0);
  reset();
  EXPECT_EQ(w::Control::enable.get(card().read32(w::status(0, 0))), 0u);
  Packet read;
  read.kind = Packet::kRequest;
  read.source = kRemoteId;
  read.dest = kOwnId;
  read.length = 8;
  EXPECT_EQ(exchange(read), Answer::kError);
}

// G5
TEST_P(Discovery, LostStateShowsInTheGeneration) {
  TestRing& ring = tx();
  card().lose_state();
  card().run();
  // The host's own words are lost with the card's, so the loss is visible.
  EXPECT_EQ(card().read32(regs::id::gen_ack()), 0u);
  EXPECT_EQ(ring.status().state, regs::RingState::kStopped);
  EXPECT_EQ(card().read32(regs::id::magic()), regs::kMagic);
  reset();
  tx();
}

// P7, P8
TEST_P(Discovery, AFunctionLevelResetLeavesIdentityLinkAndResting) {
  const std::unique_ptr<CardUnderTest> fresh = GetParam().make(options_);
  fresh->run();
  const Buffer buffer(card(), 64);
  TestRing bells(card(), {.ring = 2, .irq = true, .vector = 5});
  bells.start();
  open_window(0, buffer, 0, 64, regs::window::Control::write.put(1));
  tx();
  for (uint32_t i = 0; i < 4; ++i) {
    tx_->put(message(0, 8, buffer.iova(), i));
  }
  tx_->post();
  ASSERT_EQ(sent().size(), 4u);
  const uint32_t packets = card().read32(regs::port::tx_packets());
  card().lose_state();
  card().run();
  EXPECT_EQ(words(card(), true), words(*fresh, true)) << "reset values";
  auto told = words(*fresh, false);
  told[regs::port::tx_packets()] = packets;  // counts on
  EXPECT_EQ(words(card(), false), told);
  EXPECT_EQ(exchange(doorbell(1, 1)), Answer::kError);
  EXPECT_EQ(card().interrupts(5), 0u);
  reset();
  tx().put(message(0, 8, buffer.iova(), 9));
  tx_->post();
  EXPECT_TRUE(sent().empty()) << "the letters rest";
  card().advance_us(5 * kResponseUs);
  EXPECT_EQ(sent().size(), 1u);
}

// G6
TEST_P(Discovery, CardGoneReadsAllOnesAndDoesNothing) {
  TestRing& ring = tx();
  const Buffer buffer(card(), 256);
  card().vanish();
  ring.put(message(0, 8, buffer.iova()));
  card().run();
  EXPECT_EQ(card().read32(regs::id::magic()), 0xFFFFFFFFu);
  EXPECT_EQ(card().read32(regs::id::heartbeat()), 0xFFFFFFFFu);
  regs::TxCpl cpl;
  EXPECT_FALSE(ring.take(&cpl));
  EXPECT_TRUE(sent().empty());
}

TEST_P(Discovery, LinkStateIsReported) {
  EXPECT_EQ(card().read32(regs::port::link()) & 1, 1u);
  card().set_link(false);
  card().run();
  EXPECT_EQ(card().read32(regs::port::link()) & 1, 0u);
  card().set_link(true);
  card().run();
  EXPECT_EQ(card().read32(regs::port::link()) & 1, 1u);
  card().write32(regs::port::control(), 0);
  card().run();
  EXPECT_EQ(card().read32(regs::port::link()) & 1, 0u);
}

}  // namespace
}  // namespace rio::test
