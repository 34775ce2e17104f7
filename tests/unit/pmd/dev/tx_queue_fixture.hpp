/// @file
/// A transmit queue on a mock BAR.
#pragma once

#include "pmd/dev/tx_queue.hpp"
#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {

using test::Bytes;
using test::Cookies;

class TxQueueTest : public test::QueueFixture<TxQueue> {
 protected:
  void SetUp() override { open(2, 0); }

  void open(uint32_t log2, uint32_t start, const Caps& caps = test::full_caps()) {
    open_ring({.ring = 0, .log2 = log2, .start = start, .entry_bytes = 32, .cpl_bytes = 16}, caps);
  }
  void complete(uint32_t at, uint32_t index, uint32_t status = 0) {
    script_.complete(*bus_, at, index, 1000 + index, status);
  }

  static TxMessage message(uint64_t cookie, uint64_t iova = 0x1000, uint16_t length = 64) {
    return {.iova = iova,
            .cookie = cookie,
            .dest_id = 7,
            .length_bytes = length,
            .mbox = 0,
            .flags = 0};
  }
  static TxMessage inline_message(const void* data, uint16_t length) {
    TxMessage one = message(0xC0, 0, length);
    one.data = data;
    one.flags = TxFlags::kInline;
    return one;
  }
  /// Posts all messages with one doorbell.
  template <size_t kCount>
  void post(const TxMessage (&messages)[kCount], uint32_t tail) {
    expect_tail(tail);
    ASSERT_EQ(queue_->burst(messages, kCount), kCount);
  }
  uint16_t send(const TxMessage& one) { return queue_->burst(&one, 1); }
  void expect_refused(const TxMessage& one, Reject why) {
    const uint64_t before = queue_->stats().rejected;
    EXPECT_EQ(send(one), 0);
    EXPECT_EQ(queue_->last_reject(), why);
    EXPECT_EQ(queue_->stats().rejected, before + 1);
    EXPECT_EQ(queue_->outstanding(), 0);
  }
  /// A message of two pieces, right in all else, is refused.
  void expect_no_gathering() {
    const TxGather one = {.cookie = 1,
                          .iova = {0x1000, 0x2000},
                          .length_bytes = {8, 8},
                          .dest_id = 9,
                          .count = 2,
                          .mbox = 0,
                          .flags = 0};
    EXPECT_EQ(queue_->burst_gather(&one, 1), 0);
    EXPECT_EQ(queue_->last_reject(), Reject::kOperation);
  }
  /// Reaps. @return the cookies.
  Cookies reap(uint16_t n = 32) {
    return cookies<TxDone>(n,
                           [this](TxDone* out, uint16_t most) { return queue_->reap(out, most); });
  }
};

}  // namespace rio::pmd
