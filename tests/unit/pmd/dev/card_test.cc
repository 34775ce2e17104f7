#include "pmd/dev/card.hpp"

#include <gtest/gtest.h>

#include "pmd/dev/queue_pair.hpp"
#include "tests/support/fake_bus.hpp"
#include "tests/support/fake_card.hpp"
#include "tests/support/log_capture.hpp"

namespace rio::pmd {
namespace {

using test::FakeBus;
using test::FakeCard;
using test::LogCapture;

class CardTest : public ::testing::Test {
 protected:
  int open(const CardConfig& config) { return Card::open(bus_, config, &card_); }
  static CardConfig config() {
    CardConfig config;
    config.dest_ids = {0x11, 0x22};
    config.reset_timeout_ms = 2;
    return config;
  }
  [[nodiscard]] size_t at(uint32_t offset) const {
    size_t last = 0;
    for (size_t i = 0; i < fake_.log.size(); ++i) {
      last = fake_.log[i].offset == offset ? i : last;
    }
    return last;
  }

  LogCapture log_;
  FakeCard fake_;
  FakeBus bus_{&fake_};
  std::unique_ptr<Card> card_;
};

TEST_F(CardTest, OpenDecodesCapabilities) {
  ASSERT_EQ(open(config()), 0);
  const Caps& caps = card_->caps();
  EXPECT_EQ(caps.queue_pairs, 2u);
  EXPECT_EQ(caps.ring_log2_min, 1u);
  EXPECT_EQ(caps.ring_log2_max, 12u);
  EXPECT_EQ(caps.vectors, 8u);
  EXPECT_EQ(caps.tx_contexts, 64u);
  EXPECT_EQ(caps.rx_contexts, 32u);
  EXPECT_EQ(caps.letters, 4u);
  EXPECT_EQ(caps.order_depth, 0u);
  EXPECT_EQ(caps.inline_bytes, 16u);
  EXPECT_EQ(caps.push_slots, 0u);
  EXPECT_EQ(caps.tx_addr_align, 8u);
  EXPECT_EQ(caps.shared_addr_align, 256u);
  EXPECT_EQ(caps.dedicated_addr_align, 4096u);
  EXPECT_EQ(caps.dedicated_size_align, 256u);
  EXPECT_EQ(caps.dma_addr_align, 8u);
  EXPECT_EQ(caps.dma_bytes, 65536u);
  EXPECT_EQ(caps.tick_ns, 8u);
  EXPECT_TRUE(caps.quirk_last_at_256);
  EXPECT_TRUE(caps.quirk_last_full_256);
  EXPECT_TRUE(caps.wide);
  EXPECT_TRUE(caps.dma);
  EXPECT_TRUE(caps.maint);
  EXPECT_TRUE(caps.atomics);
  EXPECT_FALSE(caps.is_model);
}

TEST_F(CardTest, EachCapabilityFlagIsIndependent) {
  for (uint32_t bit = 0; bit < 8; ++bit) {
    fake_.words[0x24] = 1u << bit;
    fake_.words[0x10] = bit == 7 ? 0x80000000u : 0;
    ASSERT_EQ(open(config()), 0);
    const Caps& caps = card_->caps();
    const bool flags[8] = {caps.quirk_last_at_256,
                           caps.quirk_last_full_256,
                           caps.wide,
                           bit == 3,
                           caps.dma,
                           caps.maint,
                           caps.atomics,
                           caps.is_model};
    for (uint32_t i = 0; i < 8; ++i) {
      EXPECT_EQ(flags[i], i == bit);
    }
  }
}

TEST_F(CardTest, ImpossibleCapabilitiesAreRefused) {
  const struct {
    uint32_t offset;
    uint32_t value;
  } wrong[] = {{0x18, 0 | 1u << 8 | 12u << 12},   // no queue pair
               {0x18, 32 | 1u << 8 | 12u << 12},  // too many
               {0x18, 2 | 4u << 8 | 3u << 12},    // smallest ring above the largest
               {0x18, 2},                         // no ring at all
               {0x1C, 0},                         // no letter
               {0x1C, 5u << 20},
               {0x20, 13u << 12}};  // sizes in steps above 4096
  for (const auto& [offset, value] : wrong) {
    fake_ = FakeCard();
    fake_.words[offset] = value;
    EXPECT_EQ(open(config()), -EPROTO);
    EXPECT_TRUE(LogCapture::one_line_with({"capabilities"}));
    EXPECT_EQ(card_, nullptr);
    EXPECT_TRUE(fake_.log.empty());
  }
  fake_ = FakeCard();
  fake_.words[0x1C] = 64 | 4u << 20 | 31u << 27;
  ASSERT_EQ(open(config()), 0);
  EXPECT_EQ(card_->caps().inline_bytes, 16u);  // a descriptor has room for no more
}

TEST_F(CardTest, ResetComesAfterAllOtherWords) {
  fake_.words[0x1000] = 7;
  fake_.words[0x40] = 7;
  fake_.words[0x11024] = 0x10005;  // a ring that was running
  CardConfig with = config();
  with.response_timeout_us = 101;
  with.receive_timeout_us = 102;
  with.retry_limit = 103;
  with.retry_delay_us = 104;
  ASSERT_EQ(open(with), 0);
  EXPECT_EQ(fake_.words[0x1000], 8u);
  const size_t reset = at(0x1000);
  for (const uint32_t before : {0x1004, 0x1008, 0x100C, 0x1010, 0x1014, 0x1100, 0x1104, 0x11024,
                                0x21024, 0x113E4, 0x15024, 0x151E4}) {
    EXPECT_LT(at(before), reset) << std::hex << before;
  }
  EXPECT_EQ(fake_.words[0x1004], 1u);
  EXPECT_EQ(fake_.words[0x1008], 101u);
  EXPECT_EQ(fake_.words[0x100C], 102u);
  EXPECT_EQ(fake_.words[0x1010], 103u);
  EXPECT_EQ(fake_.words[0x1014], 104u);
  EXPECT_EQ(fake_.words[0x1100], 0x11u);
  EXPECT_EQ(fake_.words[0x1104], 0x22u);
  EXPECT_EQ(fake_.words[0x11024], 0u);
  EXPECT_GT(at(0x3000), reset);  // the map is applied afterwards
}

TEST_F(CardTest, TheBusLetsTheCardAccessMemoryOnceItHasAnsweredTheReset) {
  size_t started_at = 0;
  bus_.on_start_dma = [&] {
    started_at = fake_.log.size();
    return fake_.words[0x1000] == fake_.words[0x40] ? 0 : -EIO;
  };
  ASSERT_EQ(open(config()), 0);
  EXPECT_GT(started_at, at(0x1000));
  EXPECT_LT(started_at, at(0x3000)) << "before the card is told what to receive";
  bus_.on_start_dma = [] { return -EPERM; };
  EXPECT_EQ(open(config()), -EPERM);
}

TEST_F(CardTest, GenerationsAreNeverZeroNorAllOnes) {
  fake_.words[0x1000] = 0xFFFFFFFE;
  fake_.words[0x40] = 0xFFFFFFFE;
  ASSERT_EQ(open(config()), 0);
  EXPECT_EQ(fake_.words[0x1000], 1u);
  fake_.words[0x1000] = 4;  // a reset that was requested but not answered
  fake_.words[0x40] = 5;
  ASSERT_EQ(open(config()), 0);
  EXPECT_EQ(fake_.words[0x1000], 6u);
}

TEST_F(CardTest, DefaultMapGivesEachDestIdToItsQueuePair) {
  fake_.words[0x3400 + 16 * 5 + 12] = 1;  // left by an earlier owner
  ASSERT_EQ(open(config()), 0);
  EXPECT_EQ(fake_.words[0x3400], 0x11u);
  EXPECT_EQ(fake_.words[0x3404], 0xFFFFFFFFu);
  EXPECT_EQ(fake_.words[0x3408], 0xFFFFFFFFu);
  EXPECT_EQ(fake_.words[0x340C], 0x007u);
  EXPECT_EQ(fake_.words[0x3410], 0x22u);
  EXPECT_EQ(fake_.words[0x341C], 0x107u);
  EXPECT_EQ(fake_.words[0x342C], 0u);
  EXPECT_EQ(fake_.words[0x3400 + 16 * 5 + 12], 0u);
}

TEST_F(CardTest, QueuePairsWithoutDestIdAreNotInTheMap) {
  CardConfig with = config();
  with.dest_ids = {Card::kNoDestId, 0x22};
  ASSERT_EQ(open(with), 0);
  EXPECT_EQ(fake_.words[0x1100], 0xFFFFFFFFu);
  EXPECT_EQ(fake_.words[0x3400], 0x22u);
  EXPECT_EQ(fake_.words[0x340C], 0x107u);
}

TEST_F(CardTest, AMapMayBeGiven) {
  CardConfig with = config();
  with.rx_map = {{.dest_id = 0x11,
                  .mbox_mask = 0x0000000A0000000B,
                  .qp = 1,
                  .doorbells = false,
                  .requests = true}};
  ASSERT_EQ(open(with), 0);
  EXPECT_EQ(fake_.words[0x3404], 0x0Bu);
  EXPECT_EQ(fake_.words[0x3408], 0x0Au);
  EXPECT_EQ(fake_.words[0x340C], 0x105u);
  const RxMapEntry doorbells = {.dest_id = 0x12, .qp = 0, .doorbells = true, .requests = false};
  const uint32_t applied = fake_.words[0x2008];
  ASSERT_EQ(card_->set_rx_map({&doorbells, 1}), 0);
  EXPECT_EQ(fake_.words[0x340C], 0x003u);
  EXPECT_NE(fake_.words[0x2008], applied);
}

TEST_F(CardTest, ConfigIsCheckedBeforeAnythingIsWritten) {
  const auto refused = [this](auto&& change) {
    CardConfig bad = config();
    change(bad);
    EXPECT_EQ(open(bad), -EINVAL);
    EXPECT_EQ(LogCapture::lines().size(), 1u);
    LogCapture::lines().clear();
    EXPECT_TRUE(fake_.log.empty());
  };
  refused([](CardConfig& c) { c.dest_id_size = 3; });
  refused([](CardConfig& c) { c.dest_ids = {1, 2, 3}; });
  refused([](CardConfig& c) { c.response_timeout_us = c.receive_timeout_us = 0; });
  refused([](CardConfig& c) { c.receive_timeout_us = 2 * c.response_timeout_us + 1; });
  refused([](CardConfig& c) { c.dest_ids = {0x10000}; });
  refused([](CardConfig& c) {
    c.dest_id_size = 0;
    c.dest_ids = {0x100};
  });
  refused([](CardConfig& c) { c.rx_map = {{.dest_id = 1, .qp = 2}}; });
  refused([](CardConfig& c) { c.rx_map.assign(65, {.dest_id = 1, .qp = 0}); });
  fake_.chain({0x10000});
  refused([](CardConfig& c) { c.rx_map = {{.dest_id = 1, .qp = 0}}; });
}

TEST_F(CardTest, AMissingAnswerToTheResetTimesOut) {
  fake_.answers = false;
  bus_.on_start_dma = [] {
    ADD_FAILURE() << "it may still use what it was told of before";
    return 0;
  };
  EXPECT_EQ(open(config()), -ETIMEDOUT);
  EXPECT_TRUE(LogCapture::one_line_with({"reset", "2 ms"}));
  EXPECT_GT(bus_.polls, 0u);
  EXPECT_EQ(card_, nullptr);
}

TEST_F(CardTest, ACardMayGoDuringTheReset) {
  fake_.answers = false;
  bus_.on_poll = [this] { fake_.gone = true; };
  EXPECT_EQ(open(config()), -ENODEV);
  EXPECT_TRUE(LogCapture::one_line_with({"gone"}));
}

TEST_F(CardTest, AMissingAnswerToTheMapTimesOut) {
  ASSERT_EQ(open(config()), 0);
  fake_.answers = false;
  EXPECT_EQ(card_->set_rx_map({}), -ETIMEDOUT);
  EXPECT_TRUE(LogCapture::one_line_with({"receive map"}));
}

TEST_F(CardTest, CardsMayLackMapAndPort) {
  fake_.chain({0x10000});
  ASSERT_EQ(open(config()), 0);
  EXPECT_EQ(card_->set_rx_map({}), -ENOTSUP);
  EXPECT_FALSE(card_->link().up);
  EXPECT_EQ(card_->counters().tx_packets, 0u);
  for (const FakeCard::Write& write : fake_.log) {
    EXPECT_FALSE(write.offset >= 0x2000 && write.offset < 0x10000);
  }
}

TEST_F(CardTest, AttachChangesNothing) {
  EXPECT_EQ(Card::attach(bus_, &card_), -EAGAIN);  // no process has opened it
  EXPECT_TRUE(LogCapture::one_line_with({"owner"}));
  ASSERT_EQ(open(config()), 0);
  card_.reset();
  fake_.log.clear();
  ASSERT_EQ(Card::attach(bus_, &card_), 0);
  EXPECT_TRUE(fake_.log.empty());
  EXPECT_EQ(card_->dest_id(1), 0x22u);
  fake_.words[0x1000] = 99;  // its owner is resetting it
  std::unique_ptr<Card> other;
  EXPECT_EQ(Card::attach(bus_, &other), -EAGAIN);
  fake_.words[0] = 0;
  EXPECT_EQ(Card::attach(bus_, &other), -EPROTO);
}

TEST_F(CardTest, DestIdsAreSetAndChecked) {
  ASSERT_EQ(open(config()), 0);
  EXPECT_EQ(card_->dest_id(0), 0x11u);
  EXPECT_EQ(card_->set_dest_id(1, 0xFFFF), 0);
  EXPECT_EQ(card_->dest_id(1), 0xFFFFu);
  EXPECT_EQ(card_->set_dest_id(1, Card::kNoDestId), 0);
  EXPECT_EQ(card_->dest_id(2), Card::kNoDestId);
  EXPECT_EQ(card_->set_dest_id(2, 1), -ENOENT);
  EXPECT_EQ(card_->set_dest_id(1, 0x10000), -EINVAL);
  LogCapture::lines().clear();
  fake_.answers = false;
  EXPECT_EQ(card_->set_dest_id(1, 5), -ETIMEDOUT);
  EXPECT_TRUE(LogCapture::one_line_with({"destID"}));
}

TEST_F(CardTest, OnlyAMagicOfAllOnesMeansGone) {
  ASSERT_EQ(open(config()), 0);
  EXPECT_FALSE(card_->gone());
  fake_.words[0xC] = 0xFFFFFFFF;
  EXPECT_FALSE(card_->gone());
  fake_.words[0] = 0xFFFFFFFF;
  EXPECT_TRUE(card_->gone());
}

TEST_F(CardTest, AResetByAnotherOwnerIsNoticed) {
  ASSERT_EQ(open(config()), 0);
  EXPECT_FALSE(card_->was_reset());
  const uint32_t generation = fake_.words[0x40];
  fake_.words[0x40] = 0;  // lost together with all state
  EXPECT_TRUE(card_->was_reset());
  fake_.words[0x40] = generation + 1;  // reset by another owner
  EXPECT_TRUE(card_->was_reset());
  fake_.gone = true;  // a gone card was not reset
  EXPECT_FALSE(card_->was_reset());
}

TEST_F(CardTest, LinkAndCountersAreDecoded) {
  ASSERT_EQ(open(config()), 0);
  fake_.words[0x4008] = 1 | 2u << 4 | 4u << 8 | 6250u << 16;
  for (uint32_t i = 0; i < 8; ++i) {
    fake_.words[0x4010 + 4 * i] = 100 + i;
  }
  const LinkState link = card_->link();
  EXPECT_TRUE(link.up);
  EXPECT_EQ(link.lanes, 2u);
  EXPECT_EQ(link.lanes_max, 4u);
  EXPECT_EQ(link.lane_mbaud, 6250u);
  const PortCounters counters = card_->counters();
  EXPECT_EQ(counters.tx_packets, 100u);
  EXPECT_EQ(counters.rx_packets, 101u);
  EXPECT_EQ(counters.tx_retries, 102u);
  EXPECT_EQ(counters.rx_retries, 103u);
  EXPECT_EQ(counters.rx_errors, 104u);
  EXPECT_EQ(counters.tx_timeouts, 105u);
  EXPECT_EQ(counters.rx_timeouts, 106u);
  EXPECT_EQ(counters.rx_unmapped, 107u);
  fake_.gone = true;
  EXPECT_FALSE(card_->link().up);
  EXPECT_EQ(card_->counters().rx_packets, 0u);
}

TEST_F(CardTest, RegistersAreReadAndWritten) {
  ASSERT_EQ(open(config()), 0);
  uint32_t value = 77;
  EXPECT_EQ(card_->reg_read(0, &value), 0);
  EXPECT_EQ(value, 0x52494F43u);
  value = 77;
  EXPECT_EQ(card_->reg_read(2, &value), -EINVAL);
  EXPECT_EQ(card_->reg_read(2 << 20, &value), -ERANGE);
  EXPECT_EQ(card_->reg_read(0xFFFFFFFC, &value), -ERANGE);
  EXPECT_EQ(value, 77u);
  EXPECT_EQ(card_->reg_read((2 << 20) - 4, &value), 0);
  EXPECT_EQ(card_->reg_write(0x1008, 5), 0);
  EXPECT_EQ(fake_.words[0x1008], 5u);
  EXPECT_EQ(card_->reg_write(0x1009, 5), -EINVAL);
  EXPECT_EQ(card_->reg_write(2 << 20, 5), -ERANGE);
  EXPECT_EQ(card_->reg_write(0x0, 5), -EPERM);
  EXPECT_EQ(card_->reg_write(0x6000, 5), -EPERM);
  fake_.words[0xC] = 0xFFFFFFFF;  // a counter may be all ones
  EXPECT_EQ(card_->reg_read(0xC, &value), 0);
  fake_.gone = true;
  EXPECT_EQ(card_->reg_read(0xC, &value), -ENODEV);
}

TEST_F(CardTest, MissingQueuePairsAreRefused) {
  ASSERT_EQ(open(config()), 0);
  std::unique_ptr<QueuePair> pair;
  EXPECT_EQ(card_->open_queue_pair(2, {}, &pair), -ENOENT);
  EXPECT_TRUE(LogCapture::one_line_with({"queue pair 2"}));
  fake_.chain({0x10000});
  ASSERT_EQ(open(config()), 0);
  EXPECT_EQ(card_->open_queue_pair(1, {}, &pair), -ENOENT);
}

}  // namespace
}  // namespace rio::pmd
