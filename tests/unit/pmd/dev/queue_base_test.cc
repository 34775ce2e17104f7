// The common part of all queues: shared memory, and views of completions.
#include "pmd/dev/queue_base.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>

#include "pmd/dev/dedicated_rx_queue.hpp"
#include "pmd/dev/dma_queue.hpp"
#include "pmd/dev/maint_queue.hpp"
#include "pmd/dev/notice_queue.hpp"
#include "pmd/dev/shared_rx_queue.hpp"
#include "pmd/dev/tx_queue.hpp"
#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

template <class Q, uint32_t kRing, uint32_t kEntryBytes, uint32_t kCplBytes>
struct Kind {
  using Queue = Q;
  static constexpr test::RingScript kScript = {
      .ring = kRing, .log2 = 2, .start = 0, .entry_bytes = kEntryBytes, .cpl_bytes = kCplBytes};
};

using Kinds = ::testing::Types<Kind<TxQueue, 0, 32, 16>, Kind<SharedRxQueue, 1, 8, 32>,
                               Kind<DoorbellQueue, 2, 0, 16>, Kind<DmaQueue, 3, 32, 16>,
                               Kind<MaintQueue, 4, 32, 16>, Kind<EventQueue, 6, 0, 32>,
                               Kind<DedicatedRxQueue, 9, 16, 16>>;

template <class Kind>
class QueueBaseTest : public test::QueueFixture<typename Kind::Queue> {
 protected:
  void open(uint32_t start) {
    test::RingScript script = Kind::kScript;
    script.start = start;
    this->open_ring(script);
  }
  /// Writes a completion of zeros.
  void arrive(uint32_t at) {
    this->arrive_words(at, std::vector<uint32_t>(Kind::kScript.cpl_bytes / 4));
  }
  [[nodiscard]] const uint32_t* last_word(uint32_t index) const {
    const uint8_t* const at = this->script_.completion(*this->bus_, index);
    return reinterpret_cast<const uint32_t*>(at + Kind::kScript.cpl_bytes) - 1;
  }
};
TYPED_TEST_SUITE(QueueBaseTest, Kinds);

TYPED_TEST(QueueBaseTest, LiesInSharedMemoryAsAWhole) {
  this->open(0);
  EXPECT_TRUE(this->bus_->is_shared(this->queue_.get(), sizeof *this->queue_));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(this->queue_.get()) % 64, 0u);
  EXPECT_EQ(this->bus_->live_shared(), TypeParam::kScript.entry_bytes != 0 ? 2u : 1u)
      << "the object, and its record of entries";
  this->close();  // nothing of it remains
}

TYPED_TEST(QueueBaseTest, FreesEverythingWhenMemoryRunsOut) {
  using Queue = typename TypeParam::Queue;
  const pmd::RingConfig config{.ring = TypeParam::kScript.ring, .log2 = TypeParam::kScript.log2};
  test::FakeBus bus(&this->bar_);
  SharedPtr<Queue> queue;
  bus.shared_until_failure = 0;
  EXPECT_EQ(Queue::create(bus, test::full_caps(), config, &queue), -ENOMEM);
  if (TypeParam::kScript.entry_bytes != 0) {
    bus.shared_until_failure = 1;
    TypeParam::kScript.expect_start(this->bar_);
    TypeParam::kScript.expect_stop(this->bar_);
    EXPECT_EQ(Queue::create(bus, test::full_caps(), config, &queue), -ENOMEM);
  }
  EXPECT_EQ(queue, nullptr);
  EXPECT_EQ(bus.live_shared(), 0u);
  EXPECT_EQ(bus.live_blocks(), 0u);
}

TYPED_TEST(QueueBaseTest, CountsCompletionsByTheirPhase) {
  for (const uint32_t start : {0u, 3u, 0xFFFFFFFEu}) {
    this->open(start);
    EXPECT_EQ(this->queue_->ready_count(), 0u);
    this->arrive(start + 1);  // behind one that has not arrived
    EXPECT_EQ(this->queue_->ready_count(), 0u);
    for (uint32_t i = 0; i < 4; ++i) {
      this->arrive(start + i);
      EXPECT_EQ(this->queue_->ready_count(), i == 0 ? 2 : i + 1) << start;
    }
    EXPECT_EQ(this->bus_->polls, 0u);
    EXPECT_EQ(this->queue_->mmio().reads, 0u);
  }
}

TYPED_TEST(QueueBaseTest, KnowsThePlaceOfTheNextCompletion) {
  for (const uint32_t start : {0u, 3u, 4u, 0xFFFFFFFFu}) {
    this->open(start);
    const QueueBase::NextCompletion next = this->queue_->next_completion();
    EXPECT_EQ(next.status, this->last_word(start));
    EXPECT_NE(*next.status & kPhaseBit, next.phase);
    this->arrive(start);
    EXPECT_EQ(*next.status & kPhaseBit, next.phase);
  }
}

class TakenTest : public test::QueueFixture<DoorbellQueue> {};

TEST_F(TakenTest, CompletionsThatABurstReturnedDoNotCount) {
  open_ring({.ring = 2, .log2 = 2, .start = 2, .entry_bytes = 0, .cpl_bytes = 16});
  for (uint32_t lap = 0; lap < 3; ++lap) {
    const uint32_t first = 2 + lap * 4;
    for (uint32_t i = 0; i < 4; ++i) {
      arrive_words(first + i, {0, 0, 0, 0});
    }
    std::array<DoorbellEvent, 3> got;
    expect_tail(first + 3 + 4);
    ASSERT_EQ(queue_->burst(got.data(), 3), 3);
    EXPECT_EQ(queue_->ready_count(), 1u) << lap;
    expect_tail(first + 4 + 4);
    ASSERT_EQ(queue_->burst(got.data(), 3), 1);
    EXPECT_EQ(queue_->ready_count(), 0u) << lap;
    const QueueBase::NextCompletion next = queue_->next_completion();
    EXPECT_NE(*next.status & kPhaseBit, next.phase) << lap;
  }
}

}  // namespace
}  // namespace rio::pmd
