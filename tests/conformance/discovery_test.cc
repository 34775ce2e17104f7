// Blocks, capabilities, reset. regs: ID, RX_MAP, PORT, QP, WINDOW
#include <map>

#include "tests/conformance/card_test.hpp"

namespace rio::test {
namespace {

class Discovery : public CardTest {};
RIO_CONFORMANCE(Discovery);

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

TEST_P(Discovery, OnlyQueuePairZeroHasMaintenance) {
  make({.queue_pairs = 2});
  EXPECT_EQ(card().read32(regs::qp::rings(0)), 0xFF5Fu);
  EXPECT_EQ(card().read32(regs::qp::rings(1)), 0xFF4Fu);
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

TEST_P(Discovery, ResetStopsRings) {
  TestRing& ring = tx();
  const uint32_t gen = card().read32(regs::id::gen_ack());
  card().write32(regs::id::gen_req(), gen + 5);
  card().run();
  EXPECT_EQ(card().read32(regs::id::gen_ack()), gen + 5);
  EXPECT_EQ(ring.status().state, regs::RingState::kStopped);
  ring.start();
}

TEST_P(Discovery, ResetIgnoresEarlierRunBits) {
  // A run bit written before the reset must not start the ring after it.
  tx();
  reset();
  card().run();
  EXPECT_EQ(tx_->status().state, regs::RingState::kStopped);
}

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
