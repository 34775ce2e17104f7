#include "pmd/dev/dedicated_rx_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/log_capture.hpp"
#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

using test::Bytes;
using test::Cookies;
using test::FakeBus;
using test::MockBar;

class DedicatedRxQueueTest : public test::QueueFixture<DedicatedRxQueue> {
 protected:
  void SetUp() override { open(2, 0); }

  void open(uint32_t log2, uint32_t start, const Caps& caps = test::full_caps()) {
    open_ring({.ring = 9,
               .log2 = log2,
               .start = start,
               .entry_bytes = 16,
               .cpl_bytes = 16,
               .mbox = 2,
               .source = 0x77},
              caps);
  }
  void post(std::vector<DedicatedEntry> entries, uint32_t tail) {
    expect_tail(tail);
    ASSERT_EQ(queue_->post(entries.data(), static_cast<uint16_t>(entries.size())), entries.size());
  }
  Cookies reap(uint16_t n = 32) {
    return cookies<EntryDone>(
        n, [this](EntryDone* out, uint16_t most) { return queue_->reap(out, most); });
  }
  Reject refused(const DedicatedEntry& entry) {
    const uint64_t before = queue_->stats().rejected;
    EXPECT_EQ(queue_->post(&entry, 1), 0);
    EXPECT_EQ(queue_->stats().rejected, before + 1);
    return queue_->last_reject();
  }
};

TEST_F(DedicatedRxQueueTest, DescriptorHasTheseBytes) {
  post({{0x1122334455667000, 0xA1A2A3A4B1B2B3B4, 0x0F00}}, 1);
  const uint8_t* const at = script_.entry(*bus_, 0);
  EXPECT_EQ(Bytes(at, at + 16), (Bytes{0x00, 0x70, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  //
                                       0x00, 0x0F, 0x00, 0x00, 0xB4, 0xB3, 0xB2, 0xB1}));
  EXPECT_EQ(queue_->mmio().writes, 1u);
  EXPECT_EQ(queue_->mmio().reads, 0u);
  EXPECT_EQ(bus_->polls, 0u);
}

TEST_F(DedicatedRxQueueTest, DescriptorsOfABlockAndAfterTheWrap) {
  open(3, 6);
  std::vector<DedicatedEntry> seven;
  for (uint32_t i = 0; i < 7; ++i) {
    seven.push_back({0x10000 * (i + 1), i, 256 * (i % 3 + 1)});
  }
  post(seven, 13);
  for (uint32_t i = 0; i < 7; ++i) {
    const uint8_t* const at = script_.entry(*bus_, 6 + i);
    EXPECT_EQ(at[2], i + 1);
    EXPECT_EQ(at[9], i % 3 + 1);
    EXPECT_EQ(at[12], i);
  }
  for (uint32_t i = 0; i < 7; ++i) {
    script_.complete(*bus_, 6 + i, 6 + i, 256 * (i % 3 + 1), 0);
  }
  EXPECT_EQ(reap(), (Cookies{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(queue_->stats().bytes, 256u * (1 + 2 + 3 + 1 + 2 + 3 + 1));
}

TEST_F(DedicatedRxQueueTest, RefusesBadEntries) {
  for (uint64_t bit = 1; bit < 4096; bit <<= 1) {
    EXPECT_EQ(refused({0x1000 + bit, 1, 256}), Reject::kAlignment);
  }
  for (const uint32_t size : {0u, 1u, 128u, 255u, 257u, 4095u, 4097u, 4352u, 8192u, 0xFFFFFF00u}) {
    EXPECT_EQ(refused({0x1000, 1, size}), Reject::kLength) << size;
  }
  EXPECT_EQ(queue_->mmio().writes, 0u);
  for (uint32_t i = 1; i <= 16; ++i) {
    open(2, 0);
    post({{0x1000, 1, 256 * i}}, 1);
  }
}

TEST_F(DedicatedRxQueueTest, StopsBeforeTheBadOne) {
  std::vector<DedicatedEntry> four = {
      {0x1000, 1, 256}, {0x2000, 2, 256}, {0x2800, 3, 256}, {0x3000, 4, 256}};
  expect_tail(2);
  EXPECT_EQ(queue_->post(four.data(), 4), 2);
  EXPECT_EQ(queue_->last_reject(), Reject::kAlignment);
  EXPECT_EQ(queue_->stats().rejected, 1u);
  expect_tail(3);
  EXPECT_EQ(queue_->post(&four[3], 1), 1);
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
}

TEST_F(DedicatedRxQueueTest, AcceptsAllThatTheCapabilitiesAllow) {
  Caps caps = test::full_caps();
  caps.dedicated_addr_align = 8;
  caps.dedicated_size_align = 1;
  open(2, 0, caps);
  post({{0x1008, 1, 1}, {0x1010, 2, 4095}}, 2);
  EXPECT_EQ(refused({0x1014, 1, 1}), Reject::kAlignment);
  EXPECT_EQ(refused({0x1010, 1, 0}), Reject::kLength);
}

TEST_F(DedicatedRxQueueTest, StopsAtAFullRing) {
  std::vector<DedicatedEntry> six(6, DedicatedEntry{0x1000, 1, 256});
  expect_tail(4);
  EXPECT_EQ(queue_->post(six.data(), 6), 4);
  EXPECT_EQ(queue_->post(six.data(), 6), 0);
  EXPECT_EQ(queue_->stats().rejected, 0u);
  EXPECT_EQ(queue_->post(nullptr, 0), 0);
}

TEST_F(DedicatedRxQueueTest, ResultsHaveAllFields) {
  post({{0x1000, 0xF00000001, 4096}, {0x2000, 2, 256}}, 2);
  script_.complete(*bus_, 0, 0, 4096, 0);
  script_.complete(*bus_, 1, 1, 248, 9 | 3 << 8);
  EntryDone done[2];
  ASSERT_EQ(queue_->reap(done, 2), 2);
  EXPECT_EQ(done[0].cookie, 0xF00000001u);
  EXPECT_EQ(done[0].bytes, 4096u);
  EXPECT_EQ(done[0].status, Status::kOk);
  EXPECT_EQ(done[1].bytes, 248u);
  EXPECT_EQ(done[1].status, Status::kSizeMismatch);
  EXPECT_EQ(done[1].retries, 3);
  EXPECT_EQ(queue_->stats().bytes, 4096u);
  EXPECT_EQ(queue_->stats().failed, 1u);
}

TEST_F(DedicatedRxQueueTest, RefusesMoreBytesThanTheEntryHolds) {
  post({{0x1000, 1, 256}, {0x2000, 2, 512}, {0x3000, 3, 512}}, 3);
  script_.complete(*bus_, 0, 0, 257, 0);
  script_.complete(*bus_, 1, 2, 513, 0);
  script_.complete(*bus_, 2, 1, 512, 0);
  EntryDone done[3];
  ASSERT_EQ(queue_->reap(done, 3), 3);
  EXPECT_EQ(done[0].cookie, 1u);
  EXPECT_EQ(done[0].bytes, 0u);
  EXPECT_EQ(done[0].status, Status::kFormat);
  EXPECT_EQ(done[1].cookie, 3u);
  EXPECT_EQ(done[1].bytes, 0u);
  EXPECT_EQ(done[1].status, Status::kFormat);
  EXPECT_EQ(done[2].status, Status::kOk);
  EXPECT_EQ(queue_->stats().bad_completions, 2u);
  EXPECT_EQ(queue_->stats().failed, 2u);
  EXPECT_EQ(queue_->stats().bytes, 512u);
}

TEST_F(DedicatedRxQueueTest, HandlesOutOfOrderAndBadCompletions) {
  post({{0x1000, 10, 256}, {0x2000, 11, 256}, {0x3000, 12, 256}}, 3);
  script_.complete(*bus_, 0, 3, 256, 0);
  script_.complete(*bus_, 1, 2, 256, 0);
  script_.complete(*bus_, 2, 2, 256, 0);
  script_.complete(*bus_, 3, 0, 256, 0);
  EXPECT_EQ(reap(), (Cookies{12, 10}));
  EXPECT_EQ(queue_->stats().bad_completions, 2u);
  script_.complete(*bus_, 4, 1, 256, 0);
  EXPECT_EQ(reap(), (Cookies{11}));
  EXPECT_EQ(queue_->free_count(), 4);
}

TEST_F(DedicatedRxQueueTest, PollsOnlyWhenThereIsNothing) {
  post({{0x1000, 10, 256}}, 1);
  bus_->on_poll = [this] { script_.complete(*bus_, 0, 0, 256, 0); };
  EXPECT_EQ(reap(), (Cookies{10}));
  EXPECT_EQ(bus_->polls, 1u);
}

class DedicatedRxQueueWrapTest : public DedicatedRxQueueTest,
                                 public ::testing::WithParamInterface<uint32_t> {};

TEST_P(DedicatedRxQueueWrapTest, ManyLaps) {
  const uint32_t start = GetParam();
  open(3, start);
  for (uint32_t step = 0; step < 30; ++step) {
    const uint32_t index = start + step * 5;
    std::vector<DedicatedEntry> five;
    for (uint32_t i = 0; i < 5; ++i) {
      five.push_back({0x1000, step * 5 + i, 256});
    }
    post(five, index + 5);
    EXPECT_EQ(reap(), Cookies{});
    for (uint32_t i = 0; i < 5; ++i) {
      script_.complete(*bus_, index + i, index + i, 256, 0);
    }
    ASSERT_EQ(reap(), (Cookies{step * 5, step * 5 + 1, step * 5 + 2, step * 5 + 3, step * 5 + 4}));
  }
  EXPECT_EQ(queue_->stats().bad_completions, 0u);
}

INSTANTIATE_TEST_SUITE_P(Starts, DedicatedRxQueueWrapTest,
                         ::testing::Values(0, 7, 65536 - 21, 0x80000000 - 5, 0xFFFFFFFF - 33,
                                           0xFFFFFFFF));

TEST(DedicatedRxQueueCreateTest, OtherRingsAreRefused) {
  test::LogCapture log;
  MockBar bar;
  FakeBus bus(&bar);
  SharedPtr<DedicatedRxQueue> queue;
  for (const uint32_t ring : {0u, 7u, 16u}) {
    RingConfig config;
    config.ring = ring;
    EXPECT_EQ(DedicatedRxQueue::create(bus, test::full_caps(), config, &queue), -EINVAL);
    EXPECT_TRUE(test::LogCapture::one_line_with({"not a dedicated queue"}));
  }
}

}  // namespace
}  // namespace rio::pmd
