// Rails: the status that the card writes to host memory. card.md: Rails
#include "tests/conformance/rail_test.hpp"

namespace rio::test {
namespace {

namespace words = regs::rail;
using regs::DmaOp;

class Rails : public RailCardTest {
 protected:
  static regs::DmaDesc transfer(DmaOp op, uint32_t length, uint64_t iova) {
    return {regs::dma_desc::Control::op.put(static_cast<uint32_t>(op)),
            kRemoteId,
            length,
            1,
            0x1000,
            iova};
  }
};
RIO_CONFORMANCE(Rails);

// L1
TEST_P(Rails, ThePhysicalFunctionHasABlock) {
  make({.queue_pairs = 2, .vfs = 1});
  EXPECT_EQ(card().read32(regs::port::next()), words::kBase);
  EXPECT_EQ(card().read32(words::block()), words::kBlockReset);
  EXPECT_EQ(card().read32(words::next()), regs::vf::kBase);
  FunctionUnderTest& vf = card().vf(0);
  EXPECT_EQ(vf.read32(words::block()), 0u);
  const Buffer place(vf, sizeof(regs::RailStatus));
  vf.write32(words::base_lo(), static_cast<uint32_t>(place.iova()));
  vf.write32(words::base_hi(), static_cast<uint32_t>(place.iova() >> 32));
  vf.write32(words::period_us(), 1);
  vf.write32(words::control(), Control::gen.put(1) | Control::enable.put(1));
  card().advance_us(1000);
  EXPECT_EQ(vf.read32(words::status()), 0u);
  EXPECT_EQ(place.touched_outside(0), 0u);
}

// L1
TEST_P(Rails, ACardWithoutThemHasNoBlock) {
  make_with_place({.rail = false});
  EXPECT_EQ(card().read32(regs::port::next()), regs::qp::base(0));
  EXPECT_EQ(card().read32(words::block()), 0u);
  set_words(place_->iova(), 1);
  EXPECT_TRUE(is_silent());
  EXPECT_EQ(card().read32(words::status()), 0u);
}

/// STATUS is looked at after each moment of the card's work.
// L2
TEST_P(Rails, AStatusIsInMemoryOnceStatusSaysEnabled) {
  for (int round = 0; round < 20; ++round) {
    std::memset(place_->va(), 0, sizeof(regs::RailStatus));
    const uint32_t wanted = set_words(place_->iova(), kPeriodUs);
    for (int left = 5000; card().read32(words::status()) != wanted && left > 0; --left) {
      card().work();
    }
    ASSERT_EQ(card().read32(words::status()), wanted);
    EXPECT_EQ(seen().magic, regs::kMagic);
    EXPECT_NE(seen().sequence, 0u);
    EXPECT_EQ(seen().sequence, seen().sequence_end);
    disable();
  }
}

// L3
TEST_P(Rails, AMisalignedPlaceAndNoPeriodAreRefused) {
  const auto refused = [this](uint64_t iova, uint32_t period_us, bool enable) {
    const uint32_t wanted = set_words(iova, period_us, enable) & Control::gen.mask();
    card().advance_us(1000);
    return card().read32(words::status()) == wanted && place_->touched_outside(0) == 0;
  };
  EXPECT_TRUE(refused(place_->iova() + 32, kPeriodUs, true));
  EXPECT_TRUE(refused(place_->iova() + 4, kPeriodUs, true));
  EXPECT_TRUE(refused(place_->iova(), 0, true));
  EXPECT_TRUE(refused(place_->iova(), kPeriodUs, false));
  enable();
  set_words(place_->iova(), 0);
  card().run();
  EXPECT_TRUE(is_silent()) << "a refusal ends what was in force";
}

// L4
TEST_P(Rails, AWriteIsNeverEarlyAndSoonLate) {
  enable();
  const uint32_t first = seen().sequence;
  for (uint32_t i = 1; i <= 10; ++i) {
    card().sleep_us(kPeriodUs - 1);
    card().run();
    EXPECT_EQ(seen().sequence, first + i - 1);
    card().sleep_us(latest_us(kPeriodUs) - kPeriodUs + 1);
    card().run();
    EXPECT_EQ(seen().sequence, first + i);
  }
}

// L5
TEST_P(Rails, AStatusIsOneWriteOfItsBytes) {
  enable(1);
  regs::RailStatus before = seen();
  uint32_t whole = 0;
  for (int i = 0; i < 3000; ++i) {
    card().sleep_us(1);
    card().work();
    const regs::RailStatus now = seen();
    EXPECT_EQ(now.magic, regs::kMagic);
    EXPECT_EQ(now.link, before.link);
    EXPECT_EQ(std::count(std::begin(now.reserved), std::end(now.reserved), 0u), 8);
    if (now.sequence == now.sequence_end) {
      EXPECT_LE(before.sequence, now.sequence);
      EXPECT_LE(before.time, now.time);
      whole += now.sequence != before.sequence ? 1 : 0;
      before = now;
    }
  }
  EXPECT_GT(whole, 5u);
  EXPECT_EQ(place_->touched_outside(sizeof(regs::RailStatus)), 0u);
}

// L6
TEST_P(Rails, TheNumberGoesOnUntilAReset) {
  enable();
  EXPECT_EQ(seen().sequence, 1u);
  EXPECT_EQ(next().sequence, 2u);
  disable();
  card().advance_us(10 * kPeriodUs);
  enable();
  EXPECT_EQ(seen().sequence, 3u);
  reset();
  enable();
  EXPECT_EQ(seen().sequence, 1u);
}

// L7
TEST_P(Rails, NothingIsWrittenOnceTheBlockIsDisabledOrElsewhere) {
  enable();
  disable();
  EXPECT_TRUE(is_silent());
  enable();
  const Buffer other(card(), sizeof(regs::RailStatus));
  const uint32_t wanted = set_words(other.iova(), kPeriodUs);
  card().run();
  ASSERT_EQ(card().read32(words::status()), wanted);
  EXPECT_TRUE(is_silent());
  EXPECT_GT(other.touched_outside(0), 0u);
  disable();
  card().unmap(other.memory());
  card().advance_us(10 * kPeriodUs);
  EXPECT_EQ(card().refused_accesses(), 0u);
}

// L8
TEST_P(Rails, AResetDisables) {
  enable();
  reset();
  EXPECT_EQ(card().read32(words::status()), 0u);
  EXPECT_TRUE(is_silent()) << "CONTROL is as it was";
  enable();
  card().lose_state();
  card().run();
  EXPECT_EQ(card().read32(words::status()), 0u);
  EXPECT_EQ(card().read32(words::control()), 0u);
  EXPECT_TRUE(is_silent());
}

/// Four letters of a mailbox are in flight, the fifth message waits in the ring or inside the card.
// L9, L10
TEST_P(Rails, MessagesCountUntilTheyEnd) {
  enable();
  EXPECT_FALSE(reading(seen()));
  EXPECT_EQ(seen().tx_bytes, 0u);
  const Buffer buffer(card(), 4096);
  tx();
  for (uint32_t i = 0; i < 5; ++i) {
    tx_->put(message(0, 1000, buffer.iova(), i));
  }
  tx_->post();
  const std::vector<Packet> first = sent();
  const uint32_t fetched = next().tx_bytes;
  EXPECT_TRUE(fetched == 4000 || fetched == 5000) << fetched;
  EXPECT_TRUE(reading(next())) << "of the fifth nothing has been sent";
  answer_all(first);
  const std::vector<Packet> fifth = sent();
  EXPECT_FALSE(fifth.empty());
  EXPECT_EQ(next().tx_bytes, 1000u);
  EXPECT_FALSE(reading(next()));
  answer_all(fifth);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(next().tx_bytes, 0u);
  EXPECT_EQ(tx_->take_all<regs::TxCpl>().size(), 5u);
}

// L9, L10
TEST_P(Rails, EntriesThatAreNotFetchedHaveNoBytes) {
  make_with_place({.pass_over = 0});
  enable();
  const Buffer buffer(card(), 4096);
  tx();
  for (uint32_t i = 0; i < 6; ++i) {
    tx_->put(message(0, 200, buffer.iova(), i));
  }
  tx_->post();
  EXPECT_EQ(sent().size(), 4u);
  EXPECT_EQ(next().tx_bytes, 800u);
  EXPECT_TRUE(reading(seen()));
}

// L9, L10, L11
TEST_P(Rails, RemoteWritesAndReadsCount) {
  enable();
  const Buffer buffer(card(), 4096);
  std::unique_ptr<TestRing> dma;
  start(dma, regs::Ring::kDma);
  dma->put(transfer(DmaOp::kNwriteR, 64, buffer.iova()));
  dma->put(transfer(DmaOp::kNread, 96, buffer.iova()));
  dma->put(transfer(DmaOp::kAtomicInc, 4, buffer.iova()));
  dma->post();
  const std::vector<Packet> asked = sent();
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(next().tx_bytes, 64u);
  EXPECT_EQ(seen().rx_bytes, 96u);
  EXPECT_TRUE(receiving(seen()));
  EXPECT_FALSE(reading(seen()));
  respond(asked[0], Answer::kDone);
  respond(asked[1], Answer::kDone, pattern(96));
  respond(asked[2], Answer::kDone, pattern(4));
  EXPECT_EQ(dma->take_all<regs::EntryCpl>().size(), 3u);
  EXPECT_EQ(next().tx_bytes, 0u);
  EXPECT_EQ(seen().rx_bytes, 0u);
  EXPECT_FALSE(receiving(seen()));
}

// L11
TEST_P(Rails, SegmentsStillToComeCount) {
  enable();
  EXPECT_FALSE(receiving(seen()));
  if (!card().segmented()) {
    GTEST_SKIP() << "messages travel as units";
  }
  const Buffer buffer(card(), 4096);
  post_shared(shared(), buffer);
  const std::vector<uint8_t> bytes = pattern(600);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 1)), Answer::kDone);
  EXPECT_EQ(next().rx_bytes, 512u) << "the last one counts as a full one";
  EXPECT_TRUE(receiving(seen()));
  EXPECT_EQ(exchange(segment(0, 0, bytes, 2)), Answer::kDone);
  EXPECT_EQ(next().rx_bytes, 256u);
  EXPECT_EQ(exchange(segment(0, 0, bytes, 0)), Answer::kDone);
  EXPECT_EQ(next().rx_bytes, 0u);
  EXPECT_FALSE(receiving(seen()));
}

// L12
TEST_P(Rails, LinkTimeAndMagicAreThoseOfTheCard) {
  enable();
  EXPECT_EQ(seen().magic, 0x52494F43u);
  EXPECT_EQ(seen().link, card().read32(regs::port::link()));
  card().set_link(false);
  card().run();
  EXPECT_EQ(next().link, card().read32(regs::port::link()));
  EXPECT_EQ(regs::port::Link::up.get(seen().link), 0u);
  const uint32_t tick_ns = regs::id::CapTimers::tick_ns.get(card().read32(regs::id::cap_timers()));
  const uint32_t before = next().time;
  EXPECT_EQ(next().time - before, latest_us(kPeriodUs) * 1000 / tick_ns);
}

}  // namespace
}  // namespace rio::test
