// Push mode: what is written into the card's slots, and when the doorbell is.
#include "pmd/dev/pusher.hpp"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/log_capture.hpp"
#include "tests/support/push_slot.hpp"
#include "tests/unit/pmd/dev/tx_queue_fixture.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kSlotsLog2 = 2;
constexpr uint32_t kSlots = 1u << kSlotsLog2;

class PusherTest : public TxQueueTest {
 protected:
  void SetUp() override { open_push(0); }
  void open_push(uint32_t start) {
    open_ring({.ring = 0,
               .log2 = 4,
               .start = start,
               .entry_bytes = 32,
               .cpl_bytes = 16,
               .format = 0x10,
               .push_slots = kSlots},
              caps());
    next_ = 0;
  }
  static Caps caps() {
    Caps caps = test::full_caps();
    caps.push_slots = kSlots;
    return caps;
  }
  /// Expects the next slot: an entry's words, and its index.
  void expect_slot(uint32_t index, const std::array<uint32_t, 15>& entry) {
    uint32_t at = 0x1C000 + next_ % kSlots * 64;
    for (const uint32_t word : test::slot_words(entry, index, next_, kSlotsLog2)) {
      bar_.expect_write(at, word);
      at += 4;
    }
    ++next_;
  }
  /// A message whose address tells its index.
  static TxMessage numbered(uint32_t index) { return message(index, iova_of(index)); }
  static uint32_t iova_of(uint32_t index) { return 0x1000 + index % 256 * 8; }
  /// Expects the slot of numbered(index): segments of 256 bytes, and the mark.
  void expect_pushed(uint32_t index) { expect_slot(index, {0x403800, 7, 0, 64, iova_of(index)}); }
  void push_one(uint32_t index) {
    expect_pushed(index);
    if (next_ % kSlots == 0) {
      expect_tail(index + 1);  // once a lap
    }
    ASSERT_EQ(send(numbered(index)), 1);
    bar_.verify();
  }

  uint32_t next_ = 0;
};

TEST_F(PusherTest, AnEntryIsWrittenIntoASlot) {
  bar_.expect_write(0x1C000, 0x80000000 | 1u << 4);  // the top bit of the address's low half
  bar_.expect_write(0x1C004, 0x80403800)
      .expect_write(0x1C008, 0x80000007)
      .expect_write(0x1C00C, 0x80000000)
      .expect_write(0x1C010, 0x80000040)
      .expect_write(0x1C014, 0x80001000)
      .expect_write(0x1C018, 0x80000012);
  for (uint32_t at = 0x1C01C; at < 0x1C040; at += 4) {
    bar_.expect_write(at, 0x80000000);
  }
  ASSERT_EQ(send(message(0xC1, 0x12'8000'1000)), 1);
  EXPECT_EQ(queue_->pushed(), 1u);
  EXPECT_EQ(entry(0)[2], 0x40) << "the ring has the entry, too, with its mark";
}

TEST_F(PusherTest, BytesOfTheMessageAreInTheSlot) {
  uint32_t data[11];
  for (uint32_t i = 0; i < 11; ++i) {
    data[i] = 0x80000000 | i;
  }
  expect_slot(0, {0x503804, 7, 0, 44, data[0], data[1], data[2], data[3], data[4], data[5], data[6],
                  data[7], data[8], data[9], data[10]});
  ASSERT_EQ(send(inline_message(data, 44)), 1);
  expect_slot(2, {0x403804, 7, 0, 4, 0x80000000});  // nothing of the entry behind it
  ASSERT_EQ(send(inline_message(data, 4)), 1);
}

/// Entries that do not fit, and bursts that the card fetches with one read, go by the doorbell.
/// Later entries still find their slot.
TEST_F(PusherTest, OtherEntriesGoByTheDoorbell) {
  const std::array<uint8_t, 48> data{};
  expect_tail(2);
  ASSERT_EQ(send(inline_message(data.data(), 45)), 1);
  const TxMessage five[5] = {message(2), message(3), message(4), message(5), message(6)};
  post(five, 7);
  push_one(7);
  // The first of this burst fits: it is in a slot, and TAIL covers it, too.
  expect_pushed(8);
  expect_tail(11);
  const TxMessage mixed[2] = {numbered(8), inline_message(data.data(), 45)};
  ASSERT_EQ(queue_->burst(mixed, 2), 2);
  EXPECT_EQ(queue_->pushed(), 2u);
  push_one(11);
}

TEST_F(PusherTest, ASlotIsFreeWhenItsEntryHasCompleted) {
  for (uint32_t i = 0; i < kSlots; ++i) {
    push_one(i);
  }
  expect_tail(5);
  ASSERT_EQ(send(message(4)), 1);
  complete(0, 0);
  EXPECT_EQ(reap(), (Cookies{0}));
  push_one(5);
  expect_tail(7);
  ASSERT_EQ(send(message(6)), 1);
  EXPECT_EQ(queue_->pushed(), 5u);
}

TEST_F(PusherTest, IndicesAndLapsWrap) {
  for (const uint32_t start : {0xFFFFFFFAu, 0xFFFAu}) {
    open_push(start);
    for (uint32_t index = start; index != start + 20; ++index) {
      push_one(index);
      complete(index, index);
      EXPECT_EQ(reap(), (Cookies{index}));
    }
    EXPECT_EQ(queue_->pushed(), 20u);
  }
}

TEST_F(PusherTest, MessagesInPlacesOfTheRingArePushed) {
  std::vector<uint8_t> memory(16ul * 4096);
  ASSERT_EQ(queue_->use_slots(memory.data(), 0x10000, 4096), 0);
  expect_slot(0, {0x403800, 7, 0, 24, 0x10000});
  bus_->polls = 0;
  queue_->send_slot(queue_->slot_va(), TxQueue::slot_words(7, 0), 24);
  EXPECT_EQ(bus_->polls, 1u);
}

TEST_F(PusherTest, ARestartBeginsWithTheFirstSlot) {
  push_one(0);
  bar_.expect_read(script_.control_offset(), 0x10001)
      .expect_read(script_.status_offset(), 0x10001)
      .expect_write(script_.control_offset(), 2)
      .expect_read(script_.status_offset(), 2);
  queue_->begin_stop();
  ASSERT_EQ(queue_->stopped(), 1);
  complete(0, 0, 6);
  EXPECT_EQ(reap(), (Cookies{0}));
  for (uint32_t i = 0; i < kSlots * 16; ++i) {
    bar_.expect_write(0x1C000 + 4 * i, 0);
  }
  bar_.expect_write(script_.config_offset() + 0x14, 1)
      .expect_write(script_.tail_offset(), 1)
      .expect_read(script_.control_offset(), 2)
      .expect_read(script_.status_offset(), 2)
      .expect_write(script_.control_offset(), 0x10003)
      .expect_read(script_.status_offset(), 0x10003);
  ASSERT_EQ(queue_->restart(), 0);
  next_ = 0;
  push_one(1);
  bar_.expect_read(script_.control_offset(), 0x10003)
      .expect_read(script_.status_offset(), 0x10003)
      .expect_write(script_.control_offset(), 4)
      .expect_read(script_.status_offset(), 4);
  queue_.reset();
}

TEST_F(PusherTest, WithoutSlotsOrWithALongRingItIsRefused) {
  test::LogCapture log;
  SharedPtr<TxQueue> none;
  RingConfig config{.log2 = 4, .push = true};
  EXPECT_EQ(TxQueue::create(*bus_, test::full_caps(), config, &none), -ENOTSUP);
  EXPECT_TRUE(test::LogCapture::one_line_with({"the card has 0 slots", "open it without push"}));
  config.log2 = 16;
  EXPECT_EQ(TxQueue::create(*bus_, caps(), config, &none), -ENOTSUP);
}

}  // namespace
}  // namespace rio::pmd
