#include "pmd/dev/block_list.hpp"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/support/fake_bus.hpp"
#include "tests/support/fake_card.hpp"
#include "tests/support/log_capture.hpp"

namespace rio::pmd {
namespace {

using test::FakeCard;
using test::LogCapture;
using Owner = BlockList::Owner;

class BlockListTest : public ::testing::Test {
 protected:
  int discover() {
    Mmio bar(&card_, 0x40000);
    return blocks_.discover(bar, "fake:0");
  }

  LogCapture log_;
  FakeCard card_;
  BlockList blocks_;
};

TEST_F(BlockListTest, FindsAllBlocks) {
  ASSERT_EQ(discover(), 0);
  EXPECT_TRUE(blocks_.has_rx_map());
  EXPECT_TRUE(blocks_.has_port());
  EXPECT_TRUE(blocks_.has_qp(0));
  EXPECT_TRUE(blocks_.has_qp(1));
  EXPECT_FALSE(blocks_.has_qp(2));
  EXPECT_FALSE(blocks_.has_qp(1000));
  EXPECT_TRUE(blocks_.has_window(1));
  EXPECT_FALSE(blocks_.has_window(31));
  EXPECT_TRUE(card_.log.empty());
}

TEST_F(BlockListTest, OptionalBlocksMayBeAbsent) {
  card_.chain({0x10000});
  ASSERT_EQ(discover(), 0);
  EXPECT_FALSE(blocks_.has_rx_map());
  EXPECT_FALSE(blocks_.has_port());
  EXPECT_TRUE(blocks_.has_qp(0));
  EXPECT_FALSE(blocks_.has_qp(1));
  EXPECT_FALSE(blocks_.has_window(0));
  card_.chain({});
  ASSERT_EQ(discover(), 0);
  EXPECT_FALSE(blocks_.has_qp(0));  // nothing remains of the last walk
}

TEST_F(BlockListTest, SkipsUnknownTypesAndTakesHigherVersions) {
  card_.words[0x8000] = 0x00000063;
  card_.words[0x9000] = 0x00000008;
  card_.words[0x10000] = 0x0000FF04;
  card_.words[0x4] = 0x0000FF01;
  card_.chain({0x8000, 0x10000, 0x9000});
  ASSERT_EQ(discover(), 0);
  EXPECT_TRUE(blocks_.has_qp(0));
}

TEST_F(BlockListTest, FindsABarrierEngine) {
  card_.add_barrier(0);
  ASSERT_EQ(discover(), 0);
  EXPECT_TRUE(blocks_.has_barrier(0));
  EXPECT_FALSE(blocks_.has_barrier(1));
  EXPECT_EQ(blocks_.owner_of(0x18040), Owner::kCard);
  EXPECT_EQ(blocks_.owner_of(0x1A000), Owner::kHost);
  card_.words[0x18000] = 0x00010206;  // of queue pair 1, in the place of queue pair 0
  EXPECT_EQ(discover(), -EPROTO);
}

TEST_F(BlockListTest, FindsRails) {
  ASSERT_EQ(discover(), 0);
  EXPECT_FALSE(blocks_.has_rail());
  EXPECT_EQ(blocks_.owner_of(0x6000), Owner::kNone);
  card_.add_rail();
  ASSERT_EQ(discover(), 0);
  EXPECT_TRUE(blocks_.has_rail());
  EXPECT_EQ(blocks_.owner_of(0x6008), Owner::kCard);
  EXPECT_EQ(blocks_.owner_of(0x700C), Owner::kHost);
  card_.words[0x6000] = 0x00000107;  // of the first edition
  EXPECT_EQ(discover(), -EPROTO);
}

TEST_F(BlockListTest, RefusesAWrongMagic) {
  card_.words[0] = 0x12345678;
  EXPECT_EQ(discover(), -EPROTO);
  EXPECT_TRUE(LogCapture::one_line_with({"fake:0", "0x12345678", "not a RapidIO"}));
  card_.words[0] = 0xFFFFFFFF;
  EXPECT_EQ(discover(), -ENODEV);
  EXPECT_TRUE(LogCapture::one_line_with({"all ones"}));
}

TEST_F(BlockListTest, RefusesAWrongFirstBlock) {
  card_.words[4] = 0x00000202;  // another type
  EXPECT_EQ(discover(), -EPROTO);
}

TEST_F(BlockListTest, RefusesAnEarlierEdition) {
  for (const uint32_t offset : {0x4, 0x2000, 0x4000, 0x10000, 0x14000}) {
    for (const uint32_t earlier : {0x100, 0x200}) {
      card_ = FakeCard();
      card_.words[offset] -= earlier;
      EXPECT_EQ(discover(), -EPROTO) << offset;
      EXPECT_TRUE(LogCapture::one_line_with({"fake:0", earlier == 0x100 ? "edition 1" : "edition 0",
                                             "needs edition 2", "update the gateware"}));
    }
  }
}

TEST_F(BlockListTest, RefusesLoops) {
  card_.words[0x4004] = 0x2000;
  EXPECT_EQ(discover(), -EPROTO);
  EXPECT_TRUE(LogCapture::one_line_with({"loops"}));
  card_.words[0x8000] = 0x63;
  card_.words[0x8004] = 0x8000;
  card_.words[0x8] = 0x8000;
  EXPECT_EQ(discover(), -EPROTO);
  EXPECT_LT(card_.reads, 2000u);
}

TEST_F(BlockListTest, RefusesOffsetsOutsideOfTheBar) {
  for (const uint32_t offset : {0x40000u, 0x3FFFCu, 0x2001u, 0x2002u, 0xFFFFFFFCu, 0xFFFFFFFFu}) {
    card_.words[0x8] = offset;
    EXPECT_EQ(discover(), -EPROTO) << offset;
    EXPECT_TRUE(LogCapture::one_line_with({"lies at"}));
  }
  card_.words[0x3FFF8] = 0x63;  // the last place that fits a header
  card_.chain({0x3FFF8});
  EXPECT_EQ(discover(), 0);
}

TEST_F(BlockListTest, RefusesKnownBlocksInTheWrongPlace) {
  const struct {
    uint32_t offset;
    uint32_t header;
  } wrong[] = {{0x8000, 0x202},    {0x8000, 0x203},    {0x8000, 0x204},     {0x8000, 0x205},
               {0x10000, 0x10204}, {0x14000, 0x10205}, {0x10000, 0x1F0204}, {0x14000, 0xFF0205}};
  for (const auto& [offset, header] : wrong) {
    card_ = FakeCard();
    card_.words[offset] = header;
    card_.chain({offset});
    EXPECT_EQ(discover(), -EPROTO) << std::hex << header;
    EXPECT_TRUE(LogCapture::one_line_with({"contract"}));
  }
}

TEST_F(BlockListTest, KnowsTheOwnerOfEachWord) {
  ASSERT_EQ(discover(), 0);
  EXPECT_EQ(blocks_.owner_of(0x0), Owner::kCard);
  EXPECT_EQ(blocks_.owner_of(0xFFC), Owner::kCard);
  EXPECT_EQ(blocks_.owner_of(0x1000), Owner::kHost);
  EXPECT_EQ(blocks_.owner_of(0x2008), Owner::kCard);
  EXPECT_EQ(blocks_.owner_of(0x3000), Owner::kHost);
  EXPECT_EQ(blocks_.owner_of(0x4008), Owner::kCard);
  EXPECT_EQ(blocks_.owner_of(0x5000), Owner::kHost);
  EXPECT_EQ(blocks_.owner_of(0x6000), Owner::kNone);
  EXPECT_EQ(blocks_.owner_of(0x20040), Owner::kCard);
  EXPECT_EQ(blocks_.owner_of(0x22000), Owner::kHost);
  EXPECT_EQ(blocks_.owner_of(0x24040), Owner::kCard);
  EXPECT_EQ(blocks_.owner_of(0x25000), Owner::kHost);
  EXPECT_EQ(blocks_.owner_of(0x26000), Owner::kNone);
  EXPECT_EQ(blocks_.owner_of(0x30000), Owner::kNone);
  card_.chain({});
  ASSERT_EQ(discover(), 0);
  EXPECT_EQ(blocks_.owner_of(0x3000), Owner::kNone);
  EXPECT_EQ(blocks_.owner_of(0x5000), Owner::kNone);
  EXPECT_EQ(blocks_.owner_of(0x22000), Owner::kNone);
}

}  // namespace
}  // namespace rio::pmd
