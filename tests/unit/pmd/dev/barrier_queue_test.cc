#include "pmd/dev/barrier_queue.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "tests/support/log_capture.hpp"
#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

using regs::BarrierOp;
using test::Bytes;
using test::FakeBus;
using test::MockBar;

constexpr uint32_t kGo = 0x1A000;
constexpr uint32_t kSlot = 0x19000;
constexpr uint32_t kSlotBit = 0x80000000;

/// Two rounds: one peer that is sent to and one that is awaited, then a peer both ways.
regs::BarrierDesc two_rounds(BarrierOp op = BarrierOp::kRun) {
  regs::BarrierDesc desc{};
  desc.control = static_cast<uint32_t>(op) | 2u << 4 | 1u << 9;
  desc.group = 5;
  desc.epoch = 0xEEEEEEEE;   // does not count
  desc.cookie = 0xCCCCCCCC;  // does not count
  for (uint32_t& peer : desc.peers) {
    peer = ~0u;
  }
  desc.peers[0] = 0x101;
  desc.peers[1] = 0x102;
  desc.peers[2] = 0x103;
  desc.send = 0b101;
  desc.await = 0b110;
  return desc;
}

class BarrierQueueTest : public test::QueueFixture<BarrierQueue> {
 protected:
  void SetUp() override { open(0); }

  /// 4 entries and 16 slots: 32 completions.
  void open(uint32_t start, const Caps& caps = test::full_caps()) {
    open_ring(
        {.ring = 5, .log2 = 2, .start = start, .entry_bytes = 256, .cpl_bytes = 16, .more_log2 = 3},
        caps);
    arrived_ = start;
  }
  BarrierRequest request(uint64_t cookie, uint32_t epoch = 7) const {
    return {&desc_, cookie, epoch};
  }
  bool post(uint64_t cookie, uint32_t tail, uint32_t epoch = 7) {
    const BarrierRequest one = request(cookie, epoch);
    expect_tail(tail);
    return queue_->post(&one, 1) == 1;
  }
  void load(uint32_t slot, uint64_t cookie) {
    for (uint32_t i = 0; i < 64; ++i) {
      bar_.expect_write(kSlot + slot * 256 + i * 4, slot_word(i, cookie));
    }
    ASSERT_EQ(queue_->load(slot, desc_, cookie), 0);
    bar_.verify();
  }
  bool go(uint32_t slot, uint32_t epoch) {
    bar_.expect_write(kGo + slot * 64, epoch);
    return queue_->go(slot, epoch);
  }
  /// The card's next completion. Its cookie is garbage, as a hostile card's may be.
  void end(uint32_t index, uint32_t where = 0, uint32_t status = 0) {
    script_.complete(*bus_, arrived_++, index, where, status);
  }
  std::vector<BarrierDone> reap(uint16_t n = 8) {
    std::vector<BarrierDone> done(n);
    done.resize(queue_->reap(done.data(), n));
    return done;
  }
  uint64_t bad() const { return queue_->stats().bad_completions; }

  const regs::BarrierDesc desc_ = two_rounds();
  uint32_t arrived_ = 0;

 private:
  uint32_t slot_word(uint32_t i, uint64_t cookie) const {
    regs::BarrierDesc desc = desc_;
    desc.epoch = 0;
    desc.cookie = static_cast<uint32_t>(cookie);
    uint32_t words[64];
    std::memcpy(words, &desc, sizeof words);
    return words[i];
  }
};

TEST_F(BarrierQueueTest, EntryHasTheDescriptorWithEpochAndCookie) {
  ASSERT_TRUE(post(0xA1A2A3A4B1B2B3B4, 1, 0x01020304));
  const Bytes entry = this->entry(0);
  EXPECT_EQ(Bytes(entry.begin(), entry.begin() + 16),
            (Bytes{0x20, 0x02, 0, 0, 5, 0, 0, 0, 4, 3, 2, 1, 0xB4, 0xB3, 0xB2, 0xB1}));
  EXPECT_EQ(Bytes(entry.begin() + 16, entry.end()),
            Bytes(reinterpret_cast<const uint8_t*>(&desc_) + 16,
                  reinterpret_cast<const uint8_t*>(&desc_ + 1)));
  EXPECT_EQ(bus_->polls, 1u);
}

TEST_F(BarrierQueueTest, BarrierOfTheRingCostsOneWriteAndNoRead) {
  ASSERT_TRUE(post(11, 1, 9));
  EXPECT_EQ(queue_->outstanding(), 1);
  end(0);
  const auto done = reap();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].cookie, 11u);
  EXPECT_EQ(done[0].epoch, 9u);
  EXPECT_EQ(done[0].slot, kBarrierNoSlot);
  EXPECT_EQ(done[0].status, Status::kOk);
  EXPECT_EQ(queue_->mmio().writes, 1u);
  EXPECT_EQ(queue_->mmio().reads, 0u);
  EXPECT_EQ(queue_->outstanding(), 0);
  EXPECT_EQ(queue_->stats().messages, 1u);
}

TEST_F(BarrierQueueTest, BurstRingsOneDoorbell) {
  const std::vector<BarrierRequest> six(6, request(1));
  expect_tail(4);
  EXPECT_EQ(queue_->post(six.data(), 6), 4);
  EXPECT_EQ(queue_->post(six.data(), 6), 0);
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
  EXPECT_EQ(queue_->mmio().writes, 1u);
}

TEST_F(BarrierQueueTest, SlotCostsOneWriteAndNoRead) {
  load(3, 0x33);
  const MmioCounts before = queue_->mmio();
  for (uint32_t epoch = 1; epoch <= 100; ++epoch) {
    ASSERT_TRUE(go(3, epoch));
    EXPECT_TRUE(queue_->is_running(3));
    end(3 | kSlotBit);
    const auto done = reap();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].cookie, 0x33u);
    EXPECT_EQ(done[0].slot, 3);
    EXPECT_EQ(done[0].epoch, epoch);
  }
  EXPECT_EQ(queue_->mmio().writes - before.writes, 100u);
  EXPECT_EQ(queue_->mmio().reads, 0u);
  EXPECT_FALSE(queue_->is_running(3));
}

TEST_F(BarrierQueueTest, EpochThatGoAlreadyHoldsIsPostedInTheRing) {
  load(2, 0x22);
  expect_tail(1);
  ASSERT_TRUE(queue_->go(2, 0));  // GO is 0 since the start: writing it again starts nothing
  const Bytes posted = entry(0);
  EXPECT_EQ(Bytes(posted.begin() + 4, posted.begin() + 16),
            (Bytes{5, 0, 0, 0, 0, 0, 0, 0, 0x22, 0, 0, 0}));
  end(2 | kSlotBit);  // the card never ran the slot
  EXPECT_TRUE(reap().empty());
  EXPECT_EQ(bad(), 1u);
  end(0);
  const auto done = reap();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].slot, 2);
  EXPECT_EQ(done[0].cookie, 0x22u);
  ASSERT_TRUE(go(2, 1));
  end(2 | kSlotBit);
  EXPECT_EQ(reap().size(), 1u);
  load(2, 0x23);  // another group, whose first epoch is the one that GO holds
  expect_tail(2);
  ASSERT_TRUE(queue_->go(2, 1));
  end(1);
  ASSERT_EQ(reap().size(), 1u);
  EXPECT_EQ(queue_->outstanding(), 0);
}

TEST_F(BarrierQueueTest, EpochThatGoHoldsWaitsForRoomInTheRing) {
  load(0, 1);
  const std::vector<BarrierRequest> four(4, request(1));
  expect_tail(4);
  ASSERT_EQ(queue_->post(four.data(), 4), 4);
  EXPECT_FALSE(queue_->go(0, 0));
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
  EXPECT_FALSE(queue_->is_running(0));
  end(0);
  EXPECT_EQ(reap().size(), 1u);
  expect_tail(5);
  EXPECT_TRUE(queue_->go(0, 0));
}

TEST_F(BarrierQueueTest, SlotsAreRefusedUnlessLoadedAndIdle) {
  test::LogCapture log;
  EXPECT_FALSE(queue_->go(0, 1));
  EXPECT_EQ(queue_->last_reject(), Reject::kOperation);
  EXPECT_FALSE(queue_->go(16, 1));
  EXPECT_FALSE(queue_->go(~0u, 1));
  EXPECT_EQ(queue_->load(16, desc_, 1), -EINVAL);
  EXPECT_TRUE(test::LogCapture::one_line_with({"slot 16", "has 16"}));
  load(0, 1);
  ASSERT_TRUE(go(0, 1));
  EXPECT_FALSE(queue_->go(0, 2));
  EXPECT_EQ(queue_->load(0, desc_, 2), -EBUSY);
  EXPECT_TRUE(test::LogCapture::one_line_with({"slot 0", "reap"}));
  EXPECT_EQ(queue_->stats().rejected, 4u);
  EXPECT_EQ(queue_->outstanding(), 1);
}

TEST_F(BarrierQueueTest, ChecksDescriptors) {
  test::LogCapture log;
  const auto refused = [&](uint32_t control, uint32_t group) {
    regs::BarrierDesc desc = desc_;
    desc.control = control;
    desc.group = group;
    const BarrierRequest one{&desc, 1, 1};
    return queue_->post(&one, 1) == 0 && queue_->last_reject() == Reject::kOperation &&
           queue_->load(0, desc, 1) == -EINVAL;
  };
  EXPECT_TRUE(refused(3 | 2 << 4, 0));       // operation
  EXPECT_TRUE(refused(0, 0));                // no round
  EXPECT_TRUE(refused(21 << 4, 0));          // too many
  EXPECT_TRUE(refused(2 << 4 | 3 << 9, 0));  // priority
  EXPECT_TRUE(refused(2 << 4, 128));         // group
  EXPECT_EQ(queue_->stats().rejected, 5u);
  EXPECT_EQ(queue_->outstanding(), 0);
  Caps caps = test::full_caps();
  caps.barrier_rounds = 1;
  open(0, caps);
  EXPECT_TRUE(refused(2 << 4, 0));
}

TEST_F(BarrierQueueTest, TellsWhereABarrierFailed) {
  load(1, 21);
  ASSERT_TRUE(go(1, 4));
  ASSERT_TRUE(post(22, 1));
  // Failed at round 1, peer 1; 3 notifications sent again; PEER_FAILED; 9 RETRY answers.
  end(1 | kSlotBit, 1 | 1 << 5 | 3 << 16, 11 | 9 << 8);
  end(0, 19, 2);
  const auto done = reap();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, Status::kPeerFailed);
  EXPECT_EQ(done[0].round, 1);
  EXPECT_EQ(done[0].peer, 1);
  EXPECT_EQ(done[0].resent, 3);
  EXPECT_EQ(done[0].retries, 9);
  EXPECT_EQ(done[1].status, Status::kResponseTimeout);
  EXPECT_EQ(done[1].round, 19);
  EXPECT_EQ(done[1].peer, 0);
  EXPECT_EQ(queue_->stats().failed, 2u);
  EXPECT_EQ(queue_->stats().messages, 0u);
  EXPECT_EQ(bad(), 0u);
}

TEST_F(BarrierQueueTest, HostileCompletionsChangeNothing) {
  load(0, 1);
  ASSERT_TRUE(go(0, 1));
  ASSERT_TRUE(post(2, 1));
  end(1);  // an entry that was not posted
  end(0x7FFFFFFF);
  end(1 | kSlotBit);   // a slot that does not run
  end(16 | kSlotBit);  // a slot that is not there
  end(0xFFFFFFFF);
  EXPECT_TRUE(reap().empty());
  EXPECT_EQ(bad(), 5u);
  EXPECT_EQ(queue_->outstanding(), 2);
  end(0);
  end(0);  // twice
  end(0 | kSlotBit);
  EXPECT_EQ(reap().size(), 2u);
  end(0 | kSlotBit);  // twice: nothing is outstanding, so no completion is looked at
  EXPECT_TRUE(reap().empty());
  EXPECT_EQ(bad(), 6u);
  ASSERT_TRUE(post(3, 2));
  end(1);
  const auto done = reap();
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].cookie, 3u);
  EXPECT_EQ(bad(), 7u);
}

TEST_F(BarrierQueueTest, SlotThatIsNotThereIsNoEntry) {
  open(0x20);
  ASSERT_TRUE(post(1, 0x21));
  end(0x20 | kSlotBit);
  EXPECT_TRUE(reap().empty());
  EXPECT_EQ(bad(), 1u);
  EXPECT_EQ(queue_->outstanding(), 1);
}

TEST_F(BarrierQueueTest, CompletionOfAnotherLapIsNotThere) {
  ASSERT_TRUE(post(1, 1));
  const uint32_t words[4] = {0, 0, 0, 0};  // phase 0 in lap 0
  std::memcpy(script_.completion(*bus_, 0), words, sizeof words);
  EXPECT_TRUE(reap().empty());
  EXPECT_EQ(queue_->outstanding(), 1);
  end(0);
  EXPECT_EQ(reap().size(), 1u);
}

TEST_F(BarrierQueueTest, UnknownStatusAndRoundAreFailures) {
  ASSERT_TRUE(post(1, 1));
  ASSERT_TRUE(post(2, 2));
  end(0, 0, 0xFE);
  end(1, 20 | 1 << 5, 11);
  const auto done = reap();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, static_cast<Status>(0xFE));
  EXPECT_EQ(done[1].status, Status::kFormat);
  EXPECT_EQ(done[1].round, 0);
  EXPECT_EQ(done[1].peer, 0);
  EXPECT_EQ(queue_->stats().failed, 2u);
  EXPECT_EQ(bad(), 1u);
}

TEST_F(BarrierQueueTest, TornCompletionIsLookedAtAgain) {
  ASSERT_TRUE(post(1, 1));
  ASSERT_TRUE(post(2, 2));
  for (const uint32_t missing : {1u, 2u}) {
    const uint32_t index = arrived_;
    uint32_t words[4] = {0, index, 5u << 16, script_.last_word(index, 0)};
    words[missing] = ~0u;
    std::memcpy(script_.completion(*bus_, index), words, sizeof words);
    const uint64_t polls = bus_->polls;
    bus_->on_poll = [&] {
      if (bus_->polls == polls + 3) {
        end(index, 5u << 16);
      }
    };
    const auto done = reap();
    ASSERT_EQ(done.size(), 1u);
    EXPECT_EQ(done[0].cookie, index + 1);
    EXPECT_EQ(done[0].resent, 5);
    EXPECT_EQ(bus_->polls, polls + 3);
    bus_->on_poll = nullptr;
  }
  EXPECT_EQ(bad(), 0u);
}

TEST_F(BarrierQueueTest, LookingAgainIsBounded) {
  ASSERT_TRUE(post(1, 1));
  const uint64_t polls = bus_->polls;
  end(9);
  EXPECT_TRUE(reap(1).empty());
  EXPECT_EQ(bus_->polls, polls + kTornLooks);
  EXPECT_EQ(bad(), 1u);
}

TEST_F(BarrierQueueTest, IndicesWrap) {
  for (const uint32_t start : {0x7FFFFFFEu, 0xFFFFFFFEu}) {
    open(start);
    load(15, 99);
    for (uint32_t i = 0; i < 80; ++i) {  // completions wrap at 32, and their phase changes
      ASSERT_TRUE(post(i, start + i + 1, i));
      if (i % 2 == 0) {
        ASSERT_TRUE(go(15, i + 1));
        end(15 | kSlotBit);
      }
      end((start + i) & 0x7FFFFFFF);
      const auto done = reap();
      ASSERT_EQ(done.size(), i % 2 == 0 ? 2u : 1u) << i;
      EXPECT_EQ(done.back().cookie, i);
      EXPECT_EQ(done.back().epoch, i);
    }
    EXPECT_EQ(bad(), 0u);
  }
}

TEST_F(BarrierQueueTest, CompletionsOfAllEntriesAndSlotsHaveRoom) {
  const std::vector<BarrierRequest> four(4, request(1));
  expect_tail(4);
  ASSERT_EQ(queue_->post(four.data(), 4), 4);
  for (uint32_t slot = 0; slot < 16; ++slot) {
    load(slot, slot);
    ASSERT_TRUE(go(slot, 1));
  }
  EXPECT_EQ(queue_->outstanding(), 20);
  for (uint32_t i = 0; i < 4; ++i) {
    end(3 - i);
  }
  for (uint32_t slot = 0; slot < 16; ++slot) {
    end(slot | kSlotBit);
  }
  EXPECT_EQ(queue_->ready_count(), 20u);
  EXPECT_EQ(reap(7).size(), 7u);
  EXPECT_EQ(reap(20).size(), 13u);
  EXPECT_EQ(queue_->outstanding(), 0);
}

TEST_F(BarrierQueueTest, StopFlushesAndSlotsStayLoaded) {
  load(4, 44);
  ASSERT_TRUE(go(4, 8));
  ASSERT_TRUE(post(1, 1));
  script_.expect_stop(bar_);
  ASSERT_EQ(queue_->stop(), 0);
  std::vector<uint64_t> left;
  queue_->for_each_outstanding([&](uint64_t cookie) { left.push_back(cookie); });
  EXPECT_EQ(left, (std::vector<uint64_t>{1, 44}));
  EXPECT_EQ(queue_->restart(), -EBUSY);
  end(4 | kSlotBit, 0, 6);
  end(0, 0, 6);
  const auto done = reap();
  ASSERT_EQ(done.size(), 2u);
  EXPECT_EQ(done[0].status, Status::kFlushed);
  EXPECT_EQ(done[1].status, Status::kFlushed);
  bar_.verify();
  for (uint32_t i = 0; i < 16; ++i) {
    bar_.expect_write(kGo + 64 * i, 0);
  }
  bar_.expect_write(0x11154, 1)  // RING_START
      .expect_write(script_.tail_offset(), 1)
      .expect_read(script_.control_offset(), 2)
      .expect_read(script_.status_offset(), 2)
      .expect_write(script_.control_offset(), 0x10003)
      .expect_read(script_.status_offset(), 0x10003);
  ASSERT_EQ(queue_->restart(), 0);
  bar_.verify();
  arrived_ = 1;
  ASSERT_TRUE(go(4, 8));  // GO was cleared
  end(4 | kSlotBit);
  EXPECT_EQ(reap().size(), 1u);
  bar_.expect_read(script_.control_offset(), 0x10003)
      .expect_read(script_.status_offset(), 0x10003)
      .expect_write(script_.control_offset(), 4)
      .expect_read(script_.status_offset(), 4);
  ASSERT_EQ(queue_->stop(), 0);
  queue_.reset();
}

TEST(BarrierQueueCreateTest, NeedsAnEngine) {
  test::LogCapture log;
  MockBar bar;
  FakeBus bus(&bar);
  Caps caps = test::full_caps();
  caps.barrier_rounds = 0;
  SharedPtr<BarrierQueue> queue;
  EXPECT_EQ(BarrierQueue::create(bus, caps, {}, &queue), -ENOTSUP);
  EXPECT_TRUE(test::LogCapture::one_line_with({"no barrier engine"}));
}

TEST(BarrierQueueCreateTest, WritesNoWordOfARingThatRuns) {
  test::LogCapture log;
  MockBar bar;
  FakeBus bus(&bar);
  bar.expect_read(0x10068, 0x10001).expect_read(0x10008, 0xFFFF).expect_read(0x10068, 0x10001);
  SharedPtr<BarrierQueue> queue;
  EXPECT_EQ(BarrierQueue::create(bus, test::full_caps(), {.ring = 5, .log2 = 4}, &queue), -EBUSY);
}

TEST(BarrierQueueCreateTest, CompletionsMustFitTheCard) {
  test::LogCapture log;
  MockBar bar;
  FakeBus bus(&bar);
  bar.expect_reads(0x10068, 0);
  bar.expect_write(0x1B000, 3).expect_write(0x1B004, 0);
  for (uint32_t i = 0; i < 16; ++i) {
    bar.expect_write(0x1A000 + 64 * i, 0);
  }
  SharedPtr<BarrierQueue> queue;
  EXPECT_EQ(BarrierQueue::create(bus, test::full_caps(), {.ring = 5, .log2 = 16}, &queue), -EINVAL);
  EXPECT_TRUE(test::LogCapture::one_line_with({"2^17 completions", "2^16", "fewer entries"}));
}

TEST(BarrierCapsTest, AreReadAndChecked) {
  MockBar bar;
  Mmio mmio(&bar, MockBar::kLenBytes);
  Caps caps{};
  const char* wrong = "";
  bar.expect_read(0x28008, 20 | 16 << 5 | 1000 << 10);
  ASSERT_EQ(read_barrier_caps(mmio, 1, &caps, &wrong), 0);
  EXPECT_EQ(caps.barrier_rounds, 20u);
  EXPECT_EQ(caps.barrier_slots, 16u);
  EXPECT_EQ(caps.barrier_early, 1000u);
  for (const uint32_t word : {0u, 21u | 4u << 5, 4u | 17u << 5}) {
    bar.expect_read(0x18008, word);
    EXPECT_EQ(read_barrier_caps(mmio, 0, &caps, &wrong), -EPROTO);
    EXPECT_NE(std::string(wrong).find("barrier"), std::string::npos);
  }
}

}  // namespace
}  // namespace rio::pmd
