#include "pmd/dev/window_table.hpp"

#include <gtest/gtest.h>

#include "tests/support/caps.hpp"
#include "tests/support/fake_bus.hpp"
#include "tests/support/fake_card.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/mock_bar.hpp"

namespace rio::pmd {
namespace {

using test::FakeBus;
using test::FakeCard;
using test::LogCapture;

class WindowTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(WindowTable::create(bus_, test::full_caps(), 1, 2, &table_), 0);
    card_.log.clear();
  }
  static Window window() {
    return {.rio_addr = 0x1122334455667788,
            .size_bytes = 0x99AABBCCDD,
            .iova = 0x1020304050607080,
            .rights = WindowRights::kRead | WindowRights::kAtomic,
            .source = 0x55,
            .source_mask = 0xFFFF,
            .key = 0};
  }

  LogCapture log_;
  FakeCard card_;
  FakeBus bus_{&card_};
  std::unique_ptr<WindowTable> table_;
};

TEST_F(WindowTableTest, OpenWritesTheWordsThenTheCommand) {
  uint32_t index = 99;
  ASSERT_EQ(table_->open(window(), &index), 0);
  EXPECT_EQ(index, 0u);
  // The last one: enable, read, atomic, generation 1.
  const std::vector<FakeCard::Write> want = {
      {0x25000, 0x55667788}, {0x25004, 0x11223344}, {0x25008, 0xAABBCCDD}, {0x2500C, 0x99},
      {0x25010, 0x50607080}, {0x25014, 0x10203040}, {0x25018, 0x55},       {0x2501C, 0xFFFF},
      {0x25020, 0},          {0x25028, 0},          {0x25024, 0x000B0001}};
  EXPECT_EQ(card_.log, want);
  card_.log.clear();
  ASSERT_EQ(table_->close(0), 0);
  EXPECT_EQ(card_.log, (std::vector<FakeCard::Write>{{0x25024, 2}}));
  EXPECT_EQ(table_->close(0), -ENOENT);
  EXPECT_TRUE(LogCapture::one_line_with({"window 0", "not open"}));
  EXPECT_EQ(table_->close(8), -ENOENT);
}

TEST_F(WindowTableTest, EightWindowsCanBeOpenAtOnce) {
  uint32_t index;
  for (uint32_t i = 0; i < 8; ++i) {
    ASSERT_EQ(table_->open(window(), &index), 0);
    EXPECT_EQ(index, i);
  }
  EXPECT_EQ(table_->open(window(), &index), -ENOSPC);
  EXPECT_TRUE(LogCapture::one_line_with({"close one"}));
  ASSERT_EQ(table_->close(3), 0);
  ASSERT_EQ(table_->open(window(), &index), 0);
  EXPECT_EQ(index, 3u);
  card_.log.clear();
  table_.reset();
  EXPECT_EQ(card_.log.size(), 8u);
  for (uint32_t i = 0; i < 8; ++i) {
    EXPECT_EQ(card_.words[0x24040 + 4 * i] & 0x10000, 0u);
  }
}

TEST_F(WindowTableTest, OpensAGivenWindow) {
  ASSERT_EQ(table_->open_at(5, window()), 0);
  EXPECT_EQ(table_->open_at(5, window()), -EBUSY);
  EXPECT_TRUE(LogCapture::one_line_with({"window 5", "choose another"}));
  EXPECT_EQ(table_->open_at(8, window()), -EINVAL);
  uint32_t index;
  ASSERT_EQ(table_->open(window(), &index), 0);
  EXPECT_EQ(index, 0u);
  EXPECT_EQ(table_->close(5), 0);
  EXPECT_EQ(table_->open_at(5, window()), 0);
}

TEST_F(WindowTableTest, RefusesBadWindows) {
  uint32_t index = 99;
  const auto refused = [&](auto&& change) {
    Window bad = window();
    change(bad);
    EXPECT_EQ(table_->open(bad, &index), -EINVAL);
    EXPECT_EQ(LogCapture::lines().size(), 1u);
    LogCapture::lines().clear();
  };
  refused([](Window& w) { w.size_bytes = 0; });
  refused([](Window& w) { w.size_bytes = ~uint64_t{0} - w.rio_addr + 1; });
  refused([](Window& w) {
    w.rio_addr = 0;
    w.size_bytes = ~uint64_t{0};
  });  // iova wraps
  refused([](Window& w) { w.rights = 0; });
  refused([](Window& w) { w.rights = 8; });
  refused([](Window& w) { w.rio_addr += 4; });
  refused([](Window& w) { w.iova += 4; });
  refused([](Window& w) { w.key = 1; });  // address above 2^48
  refused([](Window& w) {
    w.key = 1;
    w.rio_addr = 0xFFFFFFFFFFF8;
    w.size_bytes = 9;
  });
  EXPECT_EQ(index, 99u);
  EXPECT_TRUE(card_.log.empty());
  Window keyed = window();
  keyed.key = 0xABCD;
  keyed.rio_addr = 0xFFFFFFFFFFF8;
  keyed.size_bytes = 8;
  keyed.rights = WindowRights::kWrite;
  ASSERT_EQ(table_->open(keyed, &index), 0);
  EXPECT_EQ(card_.words[0x25020], 0xABCDu);
  EXPECT_EQ(card_.words[0x25024], 0x00050001u);
}

TEST_F(WindowTableTest, ReportsAMissingAnswer) {
  card_.answers = false;
  uint32_t index = 99;
  EXPECT_EQ(table_->open(window(), &index), -ETIMEDOUT);
  EXPECT_EQ(index, 99u);
  EXPECT_TRUE(LogCapture::one_line_with({"qp 1", "window 0", "2 ms", "reset"}));
  EXPECT_GT(bus_.polls, 0u);
  // The card may still open it: the place is not reused, and the window is closed.
  card_.answers = true;
  EXPECT_EQ(table_->open(window(), &index), 0);
  EXPECT_EQ(index, 1u);
  EXPECT_EQ(table_->close(0), 0);
}

TEST_F(WindowTableTest, ReportsAGoneCard) {
  uint32_t index;
  ASSERT_EQ(table_->open(window(), &index), 0);
  card_.gone = true;
  EXPECT_EQ(table_->close(index), -ENODEV);
  EXPECT_TRUE(LogCapture::one_line_with({"gone"}));
  EXPECT_EQ(table_->close(index), -ENOENT);
}

TEST(WindowTableCreateTest, ClosesWindowsLeftOpen) {
  FakeCard card;
  FakeBus bus(&card);
  card.words[0x14040 + 4 * 5] = 0x00030007;
  card.words[0x15024 + 64 * 5] = 0x00030007;
  std::unique_ptr<WindowTable> table;
  ASSERT_EQ(WindowTable::create(bus, test::full_caps(), 0, 2, &table), 0);
  EXPECT_EQ(card.log, (std::vector<FakeCard::Write>{{0x15024 + 64 * 5, 8}}));
}

}  // namespace
}  // namespace rio::pmd
