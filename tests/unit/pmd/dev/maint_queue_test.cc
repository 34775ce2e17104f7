#include "pmd/dev/maint_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/log_capture.hpp"
#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

using test::Bytes;
using test::FakeBus;
using test::LogCapture;
using test::MockBar;

class MaintQueueTest : public test::QueueFixture<MaintQueue> {
 protected:
  void SetUp() override {
    open_ring({.ring = 4, .log2 = 1, .start = 0, .entry_bytes = 32, .cpl_bytes = 16},
              test::full_caps(), 2);
  }
  void TearDown() override {
    close();
    EXPECT_EQ(bus_->live_blocks(), 0u);
  }
  /// Makes the card answer at the next poll.
  void answer(uint32_t at, uint32_t index, uint32_t bytes, uint32_t status) {
    bus_->on_poll = [=, this] { script_.complete(*bus_, at, index, bytes, status); };
  }
  uint32_t* buffer(uint32_t slot) {
    return reinterpret_cast<uint32_t*>(bus_->memory(1)) + slot * 16;
  }

  LogCapture log_;
};

TEST_F(MaintQueueTest, ReadsWords) {
  bar_.expect_write(script_.tail_offset(), 1);
  answer(0, 0, 8, 0);
  buffer(0)[0] = 0x01020304;
  buffer(0)[1] = 0x05060708;
  uint32_t words[2] = {};
  EXPECT_EQ(queue_->read(0xABCD, 0x7F, 0x123458, words, 100), 0);
  EXPECT_EQ(words[0], 0x01020304u);
  EXPECT_EQ(words[1], 0x05060708u);
  // op 0, hop count << 8; buffer at the second allocation
  EXPECT_EQ(entry(0),
            (Bytes{0x00, 0x7F, 0,    0, 0xCD, 0xAB, 0, 0, 8,    0, 0,    0,    0,    0, 0, 0,
                   0x58, 0x34, 0x12, 0, 0,    0,    0, 0, 0x00, 0, 0x10, 0x34, 0x12, 0, 0, 0}));
}

TEST_F(MaintQueueTest, WritesWords) {
  bar_.expect_write(script_.tail_offset(), 1);
  answer(0, 0, 4, 0);
  const uint32_t words[1] = {0xCAFEF00D};
  EXPECT_EQ(queue_->write(1, 0xFF, 0xFFFFFC, words, 100), 0);
  EXPECT_EQ(buffer(0)[0], 0xCAFEF00Du);
  EXPECT_EQ(entry(0)[0], 0x01);
  EXPECT_EQ(entry(0)[1], 0xFF);
}

TEST_F(MaintQueueTest, HandlesLocalAccessesAndPortWrites) {
  bar_.expect_write(script_.tail_offset(), 1);
  answer(0, 0, 4, 0);
  uint32_t word[1] = {1};
  EXPECT_EQ(queue_->read_local(0x68, word, 100), 0);
  EXPECT_EQ(entry(0)[0], 0x04);
  bar_.expect_write(script_.tail_offset(), 2);
  answer(1, 1, 4, 0);
  EXPECT_EQ(queue_->write_local(0x60, word, 100), 0);
  EXPECT_EQ(entry(1)[0], 0x05);
  EXPECT_EQ(entry(1)[24], 64);  // a buffer for each slot
  bar_.expect_write(script_.tail_offset(), 3);
  answer(2, 2, 16, 0);
  const uint32_t payload[4] = {1, 2, 3, 4};
  EXPECT_EQ(queue_->port_write(7, 2, payload, 100), 0);
  EXPECT_EQ(entry(2)[0], 0x02);
  EXPECT_EQ(entry(2)[8], 16);
  EXPECT_EQ(buffer(0)[3], 4u);
}

TEST_F(MaintQueueTest, RefusesBadAccesses) {
  std::vector<uint32_t> words(17);
  EXPECT_EQ(queue_->read(0, 0, 0, {words.data(), 0}, 1), -EINVAL);
  EXPECT_EQ(queue_->read(0, 0, 0, words, 1), -EINVAL);
  EXPECT_EQ(queue_->read(0, 0, 2, {words.data(), 1}, 1), -EINVAL);
  EXPECT_EQ(queue_->read(0, 0, 0xFFFFFC, {words.data(), 2}, 1), -EINVAL);
  EXPECT_EQ(queue_->read(0, 0, 0x1000000, {words.data(), 1}, 1), -EINVAL);
  EXPECT_EQ(LogCapture::lines().size(), 5u);
  EXPECT_EQ(queue_->stats().rejected, 5u);
}

TEST_F(MaintQueueTest, StatusesStayDistinct) {
  const int errors[11] = {0,          -EAGAIN,   -ETIMEDOUT, -EIO, -EINVAL, -EFAULT,
                          -ECANCELED, -ENETDOWN, -EIO,       -EIO, -EIO};
  for (uint32_t status = 0; status <= 10; ++status) {
    bar_.expect_write(script_.tail_offset(), status + 1);
    answer(status, status, 4, status);
    uint32_t word[1] = {0x5A5A5A5A};
    buffer(status & 1)[0] = 0x11111111;
    EXPECT_EQ(queue_->read(1, 0, 0, word, 100), errors[status]);
    EXPECT_EQ(static_cast<uint32_t>(queue_->last_status()), status);
    EXPECT_EQ(word[0], status == 0 ? 0x11111111u : 0x5A5A5A5Au);
  }
}

TEST_F(MaintQueueTest, IgnoresTheLateAnswerToATimedOutAccess) {
  bar_.expect_write(script_.tail_offset(), 1).expect_read(script_.status_offset(), 0x10001);
  uint32_t word[1] = {7};
  EXPECT_EQ(queue_->read(1, 0, 0, word, 2), -ETIMEDOUT);
  EXPECT_EQ(queue_->last_status(), Status::kOk);
  EXPECT_TRUE(LogCapture::one_line_with({"maint", "2 ms", "running"}));
  EXPECT_GT(bus_->polls, 0u);
  // The next access has a slot and a buffer of its own; the late answer is skipped.
  bar_.expect_write(script_.tail_offset(), 2);
  bus_->on_poll = [this] {
    script_.complete(*bus_, 0, 0, 0, 3);
    script_.complete(*bus_, 1, 1, 4, 0);
    buffer(0)[0] = 0xBAD;
    buffer(1)[0] = 0x600D;
  };
  EXPECT_EQ(queue_->read(1, 0, 0, word, 100), 0);
  EXPECT_EQ(word[0], 0x600Du);
}

TEST_F(MaintQueueTest, RefusesMoreWhileTooManyAreUnanswered) {
  uint32_t word[1];
  for (uint32_t i = 1; i <= 2; ++i) {
    bar_.expect_write(script_.tail_offset(), i).expect_read(script_.status_offset(), 0x10001);
    EXPECT_EQ(queue_->read(1, 0, 0, word, 0), -ETIMEDOUT);
  }
  LogCapture::lines().clear();
  EXPECT_EQ(queue_->read(1, 0, 0, word, 0), -EBUSY);
  EXPECT_TRUE(LogCapture::one_line_with({"unanswered"}));
  script_.complete(*bus_, 0, 0, 4, 0);  // room again
  bar_.expect_write(script_.tail_offset(), 3);
  bus_->on_poll = [this] { script_.complete(*bus_, 1, 2, 4, 0); };
  EXPECT_EQ(queue_->read(1, 0, 0, word, 100), 0);
}

TEST_F(MaintQueueTest, ReportsAGoneCard) {
  bar_.expect_write(script_.tail_offset(), 1)
      .expect_read(script_.status_offset(), 0xFFFFFFFF)
      .expect_read(0, 0xFFFFFFFF);
  uint32_t word[1];
  EXPECT_EQ(queue_->read(1, 0, 0, word, 1), -ENODEV);
  EXPECT_TRUE(LogCapture::one_line_with({"gone"}));
}

TEST(MaintQueueCreateTest, NeedsTheCapabilityAndMemory) {
  LogCapture log;
  MockBar bar;
  FakeBus bus(&bar);
  Caps caps = test::full_caps();
  caps.maint = false;
  SharedPtr<MaintQueue> queue;
  EXPECT_EQ(MaintQueue::create(bus, caps, {}, &queue), -ENOTSUP);
  const test::RingScript script{
      .ring = 4, .log2 = 1, .start = 0, .entry_bytes = 32, .cpl_bytes = 16};
  script.expect_start(bar);
  script.expect_stop(bar);
  bus.allocs_until_failure = 1;
  RingConfig config;
  config.ring = 4;
  config.log2 = 1;
  EXPECT_EQ(MaintQueue::create(bus, test::full_caps(), config, &queue), -ENOMEM);
  EXPECT_EQ(bus.live_blocks(), 0u);
}

}  // namespace
}  // namespace rio::pmd
