#include "pmd/dev/dma_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/log_capture.hpp"
#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

using regs::DmaOp;
using test::Bytes;
using test::FakeBus;
using test::MockBar;

class DmaQueueTest : public test::QueueFixture<DmaQueue> {
 protected:
  void SetUp() override { open(0, test::full_caps()); }

  void open(uint32_t start, const Caps& caps) {
    open_ring({.ring = 3, .log2 = 2, .start = start, .entry_bytes = 32, .cpl_bytes = 16}, caps);
  }
  static DmaRequest request(DmaOp op, uint32_t length = 64) {
    return {.rio_addr = 0x10000,
            .iova = 0x20000,
            .cookie = 5,
            .dest_id = 9,
            .length_bytes = length,
            .op = op,
            .prio = 0};
  }
  Reject refused(const DmaRequest& one) {
    const uint64_t before = queue_->stats().rejected;
    EXPECT_EQ(queue_->post(&one, 1), 0);
    EXPECT_EQ(queue_->stats().rejected, before + 1);
    EXPECT_EQ(queue_->outstanding(), 0);
    return queue_->last_reject();
  }
  bool taken(const DmaRequest& one) {
    bar_.expect_write(script_.tail_offset(), script_.start + posted_ + 1);
    const bool took = queue_->post(&one, 1) == 1;
    script_.complete(*bus_, script_.start + posted_, script_.start + posted_, 0, 0);
    EntryDone done;
    EXPECT_EQ(queue_->reap(&done, 1), 1);
    ++posted_;
    return took;
  }

  uint32_t posted_ = 0;
};

TEST_F(DmaQueueTest, DescriptorHasTheseBytes) {
  const DmaRequest one = {.rio_addr = 0xBEEF334455667788,
                          .iova = 0x1122334455667700,
                          .cookie = 0xA1A2A3A4B1B2B3B4,
                          .dest_id = 0x00C3C2C1,
                          .length_bytes = 0x010203,
                          .op = DmaOp::kNwriteR,
                          .prio = 1};
  Caps caps = test::full_caps();
  caps.dma_bytes = 1 << 20;
  caps.dma_addr_align = 1;
  open(0, caps);
  bar_.expect_write(script_.tail_offset(), 1);
  ASSERT_EQ(queue_->post(&one, 1), 1);
  const uint8_t* const at = script_.entry(*bus_, 0);
  EXPECT_EQ(Bytes(at, at + 32), (Bytes{0x12, 0x00, 0x00, 0x00, 0xC1, 0xC2, 0xC3, 0x00,  //
                                       0x03, 0x02, 0x01, 0x00, 0xB4, 0xB3, 0xB2, 0xB1,  //
                                       0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0xEF, 0xBE,  //
                                       0x00, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}));
  EXPECT_EQ(bus_->polls, 1u);
  EXPECT_EQ(queue_->mmio().reads, 0u);
}

TEST_F(DmaQueueTest, ChecksLengths) {
  for (const DmaOp op : {DmaOp::kNread, DmaOp::kNwrite, DmaOp::kNwriteR, DmaOp::kSwrite}) {
    EXPECT_EQ(refused(request(op, 0)), Reject::kLength);
    EXPECT_EQ(refused(request(op, 65544)), Reject::kLength);
    EXPECT_TRUE(taken(request(op, 65536)));
  }
  EXPECT_TRUE(taken(request(DmaOp::kNwrite, 1)));
  EXPECT_EQ(refused(request(DmaOp::kSwrite, 12)), Reject::kLength);
  for (uint32_t op = 4; op <= 9; ++op) {
    for (const uint32_t length : {0u, 3u, 5u, 7u, 8u, 16u}) {
      EXPECT_EQ(refused(request(DmaOp(op), length)), Reject::kLength);
    }
    EXPECT_TRUE(taken(request(DmaOp(op), 1)));
    EXPECT_TRUE(taken(request(DmaOp(op), 2)));
    EXPECT_TRUE(taken(request(DmaOp(op), 4)));
  }
}

TEST_F(DmaQueueTest, ChecksAlignment) {
  DmaRequest one = request(DmaOp::kNread);
  one.iova += 4;
  EXPECT_EQ(refused(one), Reject::kAlignment);
  one = request(DmaOp::kNread);
  one.rio_addr += 4;
  EXPECT_EQ(refused(one), Reject::kAlignment);
  Caps caps = test::full_caps();
  caps.dma_addr_align = 1;
  posted_ = 0;
  open(0, caps);
  one.rio_addr += 1;
  EXPECT_TRUE(taken(one));
  one = request(DmaOp::kSwrite);
  one.rio_addr += 4;
  EXPECT_EQ(refused(one), Reject::kAlignment);
  one = request(DmaOp::kAtomicInc, 4);
  one.rio_addr += 2;
  EXPECT_EQ(refused(one), Reject::kAlignment);
  one.length_bytes = 2;
  EXPECT_TRUE(taken(one));
  one.rio_addr += 1;
  EXPECT_EQ(refused(one), Reject::kAlignment);
}

TEST_F(DmaQueueTest, ChecksOperations) {
  EXPECT_EQ(refused(request(DmaOp(10))), Reject::kOperation);
  EXPECT_EQ(refused(request(DmaOp(255))), Reject::kOperation);
  DmaRequest one = request(DmaOp::kNread);
  one.prio = 3;
  EXPECT_EQ(refused(one), Reject::kOperation);
  one.prio = 2;
  EXPECT_TRUE(taken(one));
  Caps caps = test::full_caps();
  caps.atomics = false;
  posted_ = 0;
  open(0, caps);
  EXPECT_EQ(refused(request(DmaOp::kAtomicInc, 8)), Reject::kOperation);
  EXPECT_TRUE(taken(request(DmaOp::kSwrite)));
}

TEST_F(DmaQueueTest, FillsTheRingWithOneDoorbell) {
  const std::vector<DmaRequest> six(6, request(DmaOp::kNread));
  bar_.expect_write(script_.tail_offset(), 4);
  EXPECT_EQ(queue_->post(six.data(), 6), 4);
  EXPECT_EQ(queue_->post(six.data(), 6), 0);
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
  EXPECT_EQ(queue_->mmio().writes, 1u);
}

TEST_F(DmaQueueTest, StopsBeforeTheBadOne) {
  std::vector<DmaRequest> three(3, request(DmaOp::kNread));
  three[1].prio = 3;
  bar_.expect_write(script_.tail_offset(), 1);
  EXPECT_EQ(queue_->post(three.data(), 3), 1);
  EXPECT_EQ(queue_->last_reject(), Reject::kOperation);
}

TEST_F(DmaQueueTest, HandlesWrapDisorderAndTooManyBytes) {
  open(0xFFFFFFFE, test::full_caps());
  std::vector<DmaRequest> four(4, request(DmaOp::kNread));
  for (uint32_t i = 0; i < 4; ++i) {
    four[i].cookie = 100 + i;
  }
  bar_.expect_write(script_.tail_offset(), 2);
  ASSERT_EQ(queue_->post(four.data(), 4), 4);
  script_.complete(*bus_, 0xFFFFFFFE, 1, 64, 0);
  script_.complete(*bus_, 0xFFFFFFFF, 0xFFFFFFFE, 64, 3);
  script_.complete(*bus_, 0, 0, 65, 0);
  script_.complete(*bus_, 1, 0xFFFFFFFF, 64, 0);
  EntryDone done[4];
  ASSERT_EQ(queue_->reap(done, 4), 4);
  const uint64_t cookies[4] = {103, 100, 102, 101};
  const Status statuses[4] = {Status::kOk, Status::kErrorResponse, Status::kFormat, Status::kOk};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(done[i].cookie, cookies[i]);
    EXPECT_EQ(done[i].status, statuses[i]);
  }
  EXPECT_EQ(queue_->stats().bad_completions, 1u);
  EXPECT_EQ(queue_->free_count(), 4);
}

TEST(DmaQueueCreateTest, NeedsTheCapability) {
  test::LogCapture log;
  MockBar bar;
  FakeBus bus(&bar);
  Caps caps = test::full_caps();
  caps.dma = false;
  SharedPtr<DmaQueue> queue;
  EXPECT_EQ(DmaQueue::create(bus, caps, {}, &queue), -ENOTSUP);
  EXPECT_TRUE(test::LogCapture::one_line_with({"no DMA"}));
}

}  // namespace
}  // namespace rio::pmd
