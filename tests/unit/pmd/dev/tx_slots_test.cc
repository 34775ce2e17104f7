// Entries with places of their own for messages' bytes.
#include <gtest/gtest.h>

#include "tests/unit/pmd/dev/tx_queue_fixture.hpp"

namespace rio::pmd {
namespace {

class TxQueueSlotsTest : public TxQueueTest {
 protected:
  static constexpr uint32_t kStride = 4352;
  static constexpr uint64_t kIova = 0x10000;

  void SetUp() override { open_slots(0); }
  void open_slots(uint32_t start) {
    open(2, start);
    ASSERT_EQ(queue_->use_slots(memory_.data(), kIova, kStride), 0);
  }
  void send_one(uint32_t index, uint32_t bytes = 24, uint32_t mbox = 40) {
    expect_tail(index + 1);
    queue_->send_slot(queue_->slot_va(), TxQueue::slot_words(0x77, mbox), bytes);
  }

  std::vector<uint8_t> memory_ = std::vector<uint8_t>(4ul * kStride);
};

TEST_F(TxQueueSlotsTest, BadSlotsAreRefused) {
  EXPECT_EQ(queue_->use_slots(nullptr, kIova, kStride), -EINVAL);
  EXPECT_EQ(queue_->use_slots(memory_.data(), kIova + 1, kStride), -EINVAL);
  EXPECT_EQ(queue_->use_slots(memory_.data(), kIova, kStride + 1), -EINVAL);
  EXPECT_EQ(queue_->use_slots(memory_.data(), kIova, 4096 - 8), -EINVAL);
  EXPECT_EQ(queue_->use_slots(memory_.data(), kIova, 4096), 0);
}

TEST_F(TxQueueSlotsTest, TheDescriptorNamesTheSlot) {
  ASSERT_EQ(queue_->slot_va(), memory_.data());
  send_one(0);
  ASSERT_EQ(queue_->slot_va(), memory_.data() + kStride);
  bus_->polls = 0;
  send_one(1, 0x1000, 0);
  EXPECT_EQ(bus_->polls, 1u);
  const Bytes first = entry(0);
  // mailbox 40, segments of 256 bytes; destination; cookie, length; address.
  EXPECT_EQ(Bytes(first.begin() + 4, first.end()),
            (Bytes{0x77, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0, 0, 0,
                   1,    0, 0, 0, 0, 0, 0, 0, 0,  0, 0, 0, 0, 0}));
  const Bytes second = entry(1);
  EXPECT_EQ(Bytes(second.begin() + 12, second.begin() + 20),
            (Bytes{0x00, 0x10, 0, 0, 0x00, 0x11, 1, 0}));
  EXPECT_EQ(queue_->slot_dest_id(0), 0x77u);
  EXPECT_EQ(queue_->slot_bytes(0), 24u);
  EXPECT_EQ(queue_->slot_bytes(1), 0x1000u);
}

TEST_F(TxQueueSlotsTest, ControlWordsEqualThoseOfABurst) {
  send_one(0, 64, 3);
  TxMessage same = message(0, kIova, 64);
  same.dest_id = 0x77;
  same.mbox = 3;
  expect_tail(2);
  ASSERT_EQ(send(same), 1);
  const Bytes slot = entry(0);
  const Bytes burst = entry(1);
  EXPECT_EQ(Bytes(slot.begin(), slot.begin() + 8), Bytes(burst.begin(), burst.begin() + 8));
}

TEST_F(TxQueueSlotsTest, RoomCountsFreeEntries) {
  for (uint32_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(queue_->has_room(3 - i));
    EXPECT_FALSE(queue_->has_room(4 - i));
    send_one(i);
  }
  EXPECT_FALSE(queue_->has_room(0));
}

TEST_F(TxQueueSlotsTest, SettleConsumesMessagesDeliveredInOrder) {
  for (uint32_t i = 0; i < 3; ++i) {
    send_one(i, 10 + i);
  }
  EXPECT_EQ(queue_->skip_delivered(), 0u);
  complete(0, 0);
  complete(1, 1);
  EXPECT_EQ(queue_->skip_delivered(), 2u);
  EXPECT_EQ(queue_->skip_delivered(), 0u);
  EXPECT_EQ(queue_->outstanding(), 1);
  EXPECT_EQ(queue_->stats().messages, 2u);
  EXPECT_EQ(queue_->stats().bytes, 21u);
  complete(2, 2);
  EXPECT_EQ(queue_->skip_delivered(), 1u);
  EXPECT_EQ(queue_->free_count(), 4);
}

TEST_F(TxQueueSlotsTest, SettleConsumesSeveralOfOneCompletion) {
  open_slots(2);
  for (uint32_t i = 2; i < 6; ++i) {
    send_one(i, 10 + i);
  }
  complete(2, 4, 2 << 16);
  complete(3, 5);
  EXPECT_EQ(reap(1), (Cookies{2}));
  EXPECT_EQ(queue_->skip_delivered(), 3u);
  EXPECT_EQ(queue_->stats().bytes, 54u);
  EXPECT_EQ(queue_->free_count(), 4);
}

TEST_F(TxQueueSlotsTest, SettleLeavesFailuresToReap) {
  for (uint32_t i = 0; i < 3; ++i) {
    send_one(i);
  }
  complete(0, 0);
  complete(1, 1, 2);
  complete(2, 2);
  EXPECT_EQ(queue_->skip_delivered(), 1u);
  TxDone done[4];
  ASSERT_EQ(queue_->reap(done, 4), 2);
  EXPECT_EQ(done[0].cookie, 1u);
  EXPECT_EQ(done[0].status, Status::kResponseTimeout);
  EXPECT_EQ(done[1].cookie, 2u);
  EXPECT_EQ(queue_->stats().failed, 1u);
}

TEST_F(TxQueueSlotsTest, SettleWaitsForStragglers) {
  for (uint32_t i = 0; i < 4; ++i) {
    send_one(i);
  }
  complete(0, 2);  // before 0 and 1
  EXPECT_EQ(queue_->skip_delivered(), 0u);
  EXPECT_EQ(reap(), (Cookies{2}));
  complete(1, 0);
  EXPECT_EQ(queue_->skip_delivered(), 0u);  // a mark is set: reap() has to handle it
  EXPECT_EQ(reap(), (Cookies{0}));
  EXPECT_EQ(queue_->free_count(), 1);
  complete(2, 1);
  EXPECT_EQ(reap(), (Cookies{1}));
  EXPECT_EQ(queue_->free_count(), 3);
  complete(3, 3);
  EXPECT_EQ(queue_->skip_delivered(), 1u);
  EXPECT_EQ(queue_->free_count(), 4);
}

/// Entries that the card passes over, on a ring of four.
class TxQueueAsideTest : public TxQueueSlotsTest {
 protected:
  void SetUp() override {
    memory_.resize(6ul * kStride);
    Caps caps = test::full_caps();
    caps.pass_over = 2;
    open(2, kFirst, caps);
    ASSERT_EQ(queue_->stragglers_max(), 2u);
    ASSERT_EQ(queue_->use_slots(memory_.data(), kIova, kStride, 2), 0);
  }
  /// Sends one message, marked with its index. Its cookie is the index.
  void send_marked(uint32_t index) {
    queue_->slot_va()[0] = static_cast<uint8_t>(index);
    expect_tail(index + 1);
    queue_->send_slot(queue_->slot_va(), TxQueue::slot_words(index, 40), 8 + (index & 0xFF));
  }
  void expect_in_place(uint32_t index) {
    EXPECT_EQ(queue_->slot_va(index)[0], static_cast<uint8_t>(index)) << index;
    EXPECT_EQ(queue_->slot_dest_id(index), index);
    EXPECT_EQ(queue_->slot_bytes(index), 8 + (index & 0xFF));
    EXPECT_TRUE(queue_->is_slot(index));
  }

  static constexpr uint32_t kFirst = 0xFFFFFFFD;
};

TEST_F(TxQueueAsideTest, AStragglerKeepsItsPlaceForLaps) {
  send_marked(kFirst);
  uint32_t cpl = kFirst;
  for (uint32_t index = kFirst + 1; index != kFirst + 20; ++index) {
    ASSERT_TRUE(queue_->has_room(0)) << index;
    send_marked(index);
    complete(cpl++, index);
    ASSERT_EQ(reap(), (Cookies{index}));
    expect_in_place(kFirst);
    expect_in_place(index);
  }
  EXPECT_EQ(queue_->outstanding(), 1);
  EXPECT_TRUE(queue_->is_straggler(kFirst));
  EXPECT_EQ(queue_->last_aside(), kFirst);
  complete(cpl, kFirst, 2);
  EXPECT_EQ(reap(), (Cookies{kFirst}));
  EXPECT_EQ(queue_->stats().bytes, 19 * 8 + (0xFE + 0xFF + 16 * 17 / 2));
  EXPECT_EQ(queue_->stats().failed, 1u);
  expect_in_place(kFirst);  // until the failure was handled
  EXPECT_FALSE(queue_->is_straggler(kFirst));
  EXPECT_EQ(queue_->free_count(), 4);
}

TEST_F(TxQueueAsideTest, NoMoreAreSetAsideThanThereAreSpares) {
  for (uint32_t i = 0; i < 4; ++i) {
    send_marked(kFirst + i);
  }
  uint32_t cpl = kFirst;
  complete(cpl++, kFirst + 3);
  EXPECT_EQ(reap().size(), 1u);
  uint32_t stragglers = 0;
  queue_->for_each_straggler([&](uint32_t index) {
    EXPECT_LT(index - kFirst, 2u);
    ++stragglers;
  });
  EXPECT_EQ(stragglers, 2u);
  EXPECT_EQ(queue_->free_count(), 0) << "the third is in the way";
  for (uint32_t i = 0; i < 4; ++i) {
    expect_in_place(kFirst + i);
  }
  complete(cpl++, kFirst);
  complete(cpl++, kFirst + 2);
  EXPECT_EQ(reap(), (Cookies{kFirst, kFirst + 2}));
  EXPECT_EQ(queue_->free_count(), 3);
  send_marked(kFirst + 4);
  expect_in_place(kFirst + 1);
}

TEST_F(TxQueueAsideTest, WithoutSparesNothingIsSetAside) {
  Caps caps = test::full_caps();
  caps.pass_over = 2;
  open(2, 0, caps);
  ASSERT_EQ(queue_->use_slots(memory_.data(), kIova, kStride), 0);
  EXPECT_EQ(queue_->stragglers_max(), 0u);
}

// Several completions are checked at once: settle() stops at one that is not plain.
TEST_F(TxQueueSlotsTest, SettleStopsAtOneThatIsNotPlain) {
  constexpr uint32_t kCount = 20;
  memory_.resize(32ul * kStride);
  for (uint32_t start : {0u, 25u}) {  // contiguous, and across the end of the rings
    for (uint32_t bad = 0; bad <= kCount; ++bad) {
      open(5, start);
      ASSERT_EQ(queue_->use_slots(memory_.data(), kIova, kStride), 0);
      for (uint32_t i = 0; i < kCount; ++i) {
        send_one(start + i, 8 + i);
        complete(start + i, start + i, i == bad ? 2 : 0);
      }
      uint64_t bytes = 0;
      for (uint32_t i = 0; i < bad; ++i) {
        bytes += 8 + i;
      }
      ASSERT_EQ(queue_->skip_delivered(), bad) << start;
      EXPECT_EQ(queue_->stats().bytes, bytes);
      EXPECT_EQ(reap().size(), kCount - bad);
      EXPECT_EQ(queue_->outstanding(), 0);
    }
  }
}

TEST_F(TxQueueSlotsTest, SettlePollsOnceAndEachSlotIsADoorbell) {
  send_one(0);
  bus_->polls = 0;
  EXPECT_EQ(queue_->skip_delivered(), 0u);
  EXPECT_EQ(bus_->polls, 1u);
  EXPECT_FALSE(queue_->ready());
  complete(0, 0);
  EXPECT_TRUE(queue_->ready());
  EXPECT_EQ(queue_->skip_delivered(), 1u);
  EXPECT_EQ(bus_->polls, 1u);
  EXPECT_EQ(queue_->mmio().writes, 1u);
}

TEST_F(TxQueueSlotsTest, SlotsAndCookiesWrap) {
  open_slots(0xFFFFFFFE);
  for (uint32_t i = 0; i < 12; ++i) {
    const uint32_t index = 0xFFFFFFFE + i;
    EXPECT_EQ(queue_->next_index(), index);
    EXPECT_EQ(queue_->slot_va(), memory_.data() + uint64_t{index % 4} * kStride);
    send_one(index);
    complete(index, index, i % 3 == 0 ? 1 : 0);
    if (i % 3 == 0 || index == 0xFFFFFFFF) {  // all ones may also be a word that is not there
      EXPECT_EQ(queue_->skip_delivered(), 0u);
      EXPECT_EQ(reap(), (Cookies{index}));
    } else {
      EXPECT_EQ(queue_->skip_delivered(), 1u);
    }
  }
}

}  // namespace
}  // namespace rio::pmd
