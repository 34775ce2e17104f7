// Barriers in slots; stop, reset and errors of the barrier ring. card.md: Barriers
#include "tests/conformance/barrier_test.hpp"

namespace rio::test {
namespace {

namespace words = regs::barrier;
using regs::BarrierOp;

using Sent = std::vector<std::pair<uint32_t, uint16_t>>;

class BarrierStops : public BarrierCardTest {
 protected:
  /// Expect that the peers of a stopped ring are told, and not again once they have answered.
  void expect_told(uint32_t epoch = 0) {
    respond_all(expect_notices({{kPeerA, cancel(epoch)}, {kPeerB, cancel(epoch)}}));
    card().advance_us(10 * kResponseUs);
    expect_notices({});
  }
};
RIO_CONFORMANCE(BarrierStops);

/// Each barrier is started by one write of 4 bytes, and the host does nothing else until its end.
// C5, C22
TEST_P(BarrierStops, GoRunsTheDescriptorOfASlot) {
  barriers();
  write_slot(3, two_rounds(99));
  for (const uint32_t epoch : {7u, 8u, 9u, 0x12345u}) {
    go(3, epoch);
    take_part(epoch);
    const regs::BarrierCpl end = expect_end(Status::kOk);
    EXPECT_EQ(end.index, kSlotIndex | 3);
    EXPECT_EQ(end.cookie, 0x80000000u | 99u);
    if (epoch == 9) {
      ring_->stop();  // so that any epoch may follow
      ring_->start();
    }
  }
}

// C22
TEST_P(BarrierStops, AllSlotsRunAtOnceAndSoDoesTheRing) {
  barriers();
  for (uint32_t slot = 0; slot < 16; ++slot) {
    regs::BarrierDesc desc = two_rounds();
    desc.group = slot;
    write_slot(slot, desc);
  }
  for (uint32_t slot = 0; slot < 16; ++slot) {
    card().write32(words::go(0, slot), 5);
  }
  for (uint32_t group = 16; group < 24; ++group) {
    regs::BarrierDesc desc = two_rounds(5);
    desc.group = group;
    ring_->put(desc);
  }
  ring_->post();
  respond_all(notices());
  for (uint32_t i = 0; i < 24; ++i) {
    EXPECT_EQ(tell(kPeerA, notice(0, 5, 23 - i)), Answer::kDone);
    EXPECT_EQ(tell(kPeerB, notice(1, 5, 23 - i)), Answer::kDone);
  }
  respond_all(notices());
  const auto ends = ring_->take_all<regs::BarrierCpl>();
  std::vector<uint32_t> indices;
  for (const regs::BarrierCpl& end : ends) {
    EXPECT_EQ(code_of(end.status), Status::kOk);
    indices.push_back(end.index);
  }
  std::ranges::sort(indices);
  std::vector<uint32_t> expected = {0, 1, 2, 3, 4, 5, 6, 7};
  for (uint32_t slot = 0; slot < 16; ++slot) {
    expected.push_back(kSlotIndex | slot);
  }
  EXPECT_EQ(indices, expected);
}

// C22
TEST_P(BarrierStops, ASlotLoadsItsGroup) {
  make({.early_notices = 0});
  barriers();
  write_slot(0, two_rounds(0, BarrierOp::kLoad));
  go(0, 2);
  expect_end(Status::kOk);
  EXPECT_EQ(tell(kPeerA, notice(0, 2)), Answer::kDone);
  write_slot(1, two_rounds());
  go(1, 2);
  EXPECT_EQ(tell(kPeerB, notice(1, 2)), Answer::kDone);
  respond_all(expect_notices({{kPeerA, notice(0, 2)}, {kPeerB, notice(1, 2)}}));
  expect_end(Status::kOk);
}

// C22
TEST_P(BarrierStops, GoMeansNothingWithoutARunningRing) {
  write_slot(0, two_rounds());
  go(0, 1);
  expect_notices({});
  barriers();
  card().run();
  expect_notices({});
  expect_no_end();
  go(0, 2);
  take_part(2);
  expect_end(Status::kOk);
  ring_->stop();
  go(0, 3);
  ring_->start();
  card().run();
  expect_notices({});
  expect_no_end();
}

// C23
TEST_P(BarrierStops, AnotherGoWaitsForTheSlotsBarrier) {
  barriers();
  write_slot(2, two_rounds());
  go(2, 1);
  go(2, 2);
  expect_no_end();
  take_part(1);
  expect_end(Status::kOk);
  take_part(2);
  expect_end(Status::kOk);
}

// C24
TEST_P(BarrierStops, ABadSlotCompletesWithItsNumber) {
  barriers();
  std::vector<regs::BarrierDesc> bad(4, two_rounds());
  std::memset(&bad[1], 0xFF, sizeof bad[1]);
  std::memset(&bad[2], 0, sizeof bad[2]);
  bad[3].peers[0] = ~0u;
  bad[0].group = 0x85;
  for (uint32_t slot = 12; slot < 16; ++slot) {
    write_slot(slot, bad[slot - 12]);
    go(slot, 1);
    const regs::BarrierCpl end = expect_end(Status::kBadDescriptor);
    EXPECT_EQ(end.index, kSlotIndex | slot);
    EXPECT_EQ(end.cookie, bad[slot - 12].cookie);
  }
  expect_notices({});
}

// C25, R15
TEST_P(BarrierStops, AStopFlushesAllAndTellsThePeers) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  write_slot(4, two_rounds());
  ring_->put(two_rounds(0, BarrierOp::kLoad));
  ring_->post();
  card().write32(words::go(0, 4), 1);
  ring_->request_stop();
  std::vector<uint32_t> flushed;
  for (const regs::BarrierCpl& end : ring_->take_all<regs::BarrierCpl>()) {
    if (code_of(end.status) == Status::kFlushed) {
      flushed.push_back(end.index);
    } else {  // it was taken just before the stop
      EXPECT_NE(end.index, 0u);
    }
  }
  EXPECT_EQ(ring_->cidx, 3u);
  EXPECT_TRUE(std::ranges::find(flushed, 0u) != flushed.end());
  EXPECT_EQ(ring_->status().state, regs::RingState::kStopped);
  expect_told();
}

/// Once the host reads STOPPED all completions are in memory.
// C25, O6
TEST_P(BarrierStops, StoppedIsAFence) {
  for (uint32_t i = 0; i < 20; ++i) {
    barriers();
    post(two_rounds());
    ring_->request_stop();
    for (uint32_t step = 0; step < 1000 && ring_->status().gen != ring_->gen(); ++step) {
      card().work();
    }
    ASSERT_EQ(ring_->status().state, regs::RingState::kStopped);
    regs::BarrierCpl end;
    ASSERT_TRUE(ring_->take(&end));
    EXPECT_EQ(code_of(end.status), Status::kFlushed);
    EXPECT_EQ(end.cookie, 0x80000000u);
    respond_all(notices());
  }
}

/// STOPPED does not wait for peers, even if they are not there: they are told afterwards.
// C25, R17
TEST_P(BarrierStops, AStopWaitsForNoPeer) {
  barriers({}, 1);
  post(two_rounds());
  expect_notices({{kPeerA, notice(0)}});
  ring_->stop();
  EXPECT_EQ(ring_->take_all<regs::BarrierCpl>().size(), 1u);
  card().unmap(ring_->entries);
  card().unmap(ring_->completions);
  expect_notices({{kPeerA, cancel()}, {kPeerB, cancel()}});
  card().advance_us(latest_us(kResponseUs));
  expect_told();
  EXPECT_EQ(card().refused_accesses(), 0u);
}

/// A stop forgets early notifications, loaded groups and epochs.
// C25
TEST_P(BarrierStops, AStopForgetsWhatCameEarly) {
  barriers();
  run_one(0);
  EXPECT_EQ(tell(kPeerA, notice(0, 1)), Answer::kDone);
  ring_->stop();
  ring_->start();
  post(two_rounds(1));
  EXPECT_EQ(tell(kPeerB, notice(1, 1)), Answer::kDone);
  respond_all(expect_notices({{kPeerA, notice(0, 1)}}));
  expect_no_end();
  EXPECT_EQ(tell(kPeerA, notice(0, 1)), Answer::kDone);
  respond_all(expect_notices({{kPeerB, notice(1, 1)}}));
  expect_end(Status::kOk);
}

// C26
TEST_P(BarrierStops, AResetEndsAllWithoutACompletionAndTellsThePeers) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  write_slot(1, two_rounds());
  reset();
  EXPECT_TRUE(ring_->take_all<regs::BarrierCpl>().empty());
  expect_told();
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kError) << "an ordinary doorbell again";
  const std::unique_ptr<TestRing> before = std::move(ring_);
  barriers();
  run_one(1);
}

// C26
TEST_P(BarrierStops, ACardThatLosesItsStateTellsThePeers) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  card().lose_state();
  card().run();
  EXPECT_TRUE(ring_->take_all<regs::BarrierCpl>().empty());
  expect_notices({{kPeerA, cancel()}, {kPeerB, cancel()}});
  for (uint32_t slot = 0; slot < 16; ++slot) {
    EXPECT_EQ(card().read32(words::go(0, slot)), 0u);
  }
}

// C27, R16
TEST_P(BarrierStops, ARingInErrorEndsItsBarriers) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  ring_->tail += 9;
  ring_->post();
  EXPECT_EQ(expect_end(Status::kFlushed).index, 0u);
  EXPECT_EQ(ring_->status().error, regs::RingError::kTail);
  expect_told();
  ring_->stop();
  ring_->start();
  run_one(1);
}

/// GO of a slot that the card has not seen before the error, and one behind it.
// C25, C27
TEST_P(BarrierStops, AStopAfterAnErrorFlushesWhatGoHasPosted) {
  barriers();
  write_slot(2, two_rounds(11));
  write_slot(9, two_rounds(12));
  go(2, 1);
  respond_all(expect_notices({{kPeerA, notice(0, 1)}}));
  card().write32(words::go(0, 2), 2);
  ring_->tail += 9;
  ring_->post();
  EXPECT_EQ(expect_end(Status::kFlushed).index, kSlotIndex | 2);
  EXPECT_EQ(ring_->status().error, regs::RingError::kTail);
  card().write32(words::go(0, 9), 1);
  ring_->request_stop();
  const auto ends = ring_->take_all<regs::BarrierCpl>();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].index, kSlotIndex | 2);
  EXPECT_EQ(ends[1].index, kSlotIndex | 9);
  EXPECT_EQ(ends[1].cookie, 0x80000000u | 12);
  EXPECT_EQ(code_of(ends[0].status), Status::kFlushed);
  EXPECT_EQ(code_of(ends[1].status), Status::kFlushed);
  expect_told(1);
  EXPECT_EQ(ring_->status().state, regs::RingState::kStopped);
}

// C27, R6
TEST_P(BarrierStops, MemoryThatGoesEndsTheRing) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  card().unmap(ring_->completions);
  card().run();
  EXPECT_EQ(ring_->status().error, regs::RingError::kHostRead);
  expect_told();
  ring_->stop();
}

// C31, F8
TEST_P(BarrierStops, AVirtualFunctionHasTheBarriersOfItsQueuePairs) {
  make({.queue_pairs = 2, .vfs = 1});
  namespace table = regs::vf;
  card().write32(table::qps(0), table::Qps::first.put(1) | table::Qps::count.put(1));
  card().write32(table::control(0), table::Control::gen.put(1) | table::Control::enable.put(1));
  card().run();
  ASSERT_EQ(table::Status::enable.get(card().read32(table::status(0))), 1u);
  FunctionUnderTest& vf = card().vf(0);
  EXPECT_EQ(regs::id::Block::type.get(vf.read32(vf.read32(regs::window::next(0)) + 0)), 6u);
  TestRing ring(vf, {.ring = 5, .log2 = 3, .clog2 = 5});
  ring.start();
  ring.put(barrier_desc(1, {{0, 0, kPeerA}}, 0, BarrierOp::kRun));
  ring.post();
  const auto sent = notices();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].source, kOwnId + 1);
  EXPECT_EQ(tell(kPeerA, notice(0), kOwnId + 1), Answer::kDone);
  respond_all(sent);
  EXPECT_EQ(ring.take_all<regs::BarrierCpl>().size(), 1u);
  EXPECT_EQ(vf.read32(words::sent(0)), 1u);
  ring.put(barrier_desc(1, {{0, 0, kPeerA}}, 1, BarrierOp::kRun));
  ring.post();
  respond_all(notices());
  vf.write32(regs::id::gen_req(), vf.read32(regs::id::gen_ack()) + 1);
  const auto told = notices();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].address, cancel(1));
  EXPECT_EQ(vf.read32(words::sent(0)), 0u);
}

}  // namespace
}  // namespace rio::test
