// Barriers: descriptors and notifications. card.md: Barriers
#include "tests/conformance/barrier_test.hpp"

namespace rio::test {
namespace {

namespace words = regs::barrier;
using regs::BarrierOp;

class Barriers : public BarrierCardTest {};
RIO_CONFORMANCE(Barriers);

// C1
TEST_P(Barriers, EachQueuePairHasABlock) {
  make({.queue_pairs = 2, .early_notices = 77});
  for (uint32_t qp = 0; qp < 2; ++qp) {
    EXPECT_EQ(card().read32(regs::window::next(qp)), words::base(qp));
    const uint32_t block = card().read32(words::block(qp));
    EXPECT_EQ(block, words::kBlockReset | words::Block::instance.put(qp));
    const uint32_t cap = card().read32(words::cap(qp));
    EXPECT_EQ(words::Cap::rounds.get(cap), 20u);
    EXPECT_EQ(words::Cap::slots.get(cap), 16u);
    EXPECT_EQ(words::Cap::early.get(cap), 77u);
    EXPECT_EQ(card().read32(regs::qp::rings(qp)) >> 5 & 1, 1u);
  }
  EXPECT_EQ(card().read32(words::next(0)), regs::qp::base(1));
  EXPECT_EQ(card().read32(words::next(1)), 0u);
}

// C1
TEST_P(Barriers, ACardWithoutThemHasNoBlockAndNoRing) {
  make({.barrier = false});
  EXPECT_EQ(card().read32(regs::window::next(0)), 0u);
  EXPECT_EQ(card().read32(words::block(0)), 0u);
  EXPECT_EQ(card().read32(regs::qp::rings(0)) >> 5 & 1, 0u);
  TestRing ring(card(), {.ring = 5, .clog2 = 5});
  ring.request_start();
  card().run();
  EXPECT_EQ(ring.status().state, regs::RingState::kStopped);
  std::unique_ptr<TestRing> doorbells;
  start(doorbells, regs::Ring::kDoorbell).give_back();
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(doorbells->take_all<regs::DoorbellCpl>().size(), 1u);
}

// C2
TEST_P(Barriers, ItsRingHasWholeDescriptorsAndRoomForSlots) {
  const auto error_of = [this](const RingConfig& config, uint32_t shift) {
    TestRing ring(card(), config);
    ring.entries.iova += shift;
    ring.request_start();
    card().run();
    const RingStatus status = ring.status();
    ring.stop();
    return status.error;
  };
  EXPECT_EQ(error_of({.ring = 5, .log2 = 3, .clog2 = 4}, 0), regs::RingError::kConfig);
  EXPECT_EQ(error_of({.ring = 5, .log2 = 4, .clog2 = 4}, 0), regs::RingError::kConfig);
  EXPECT_EQ(error_of({.ring = 5, .log2 = 3, .clog2 = 5}, 64), regs::RingError::kConfig);
  EXPECT_EQ(error_of({.ring = 5, .log2 = 4, .clog2 = 5}, 0), regs::RingError::kNone);
  EXPECT_EQ(error_of({.ring = 5, .log2 = 6, .clog2 = 7}, 0), regs::RingError::kNone);
}

/// The ring is reused many times, its entries are overwritten as soon as they are taken, and its
/// indices wrap.
// C3
TEST_P(Barriers, DescriptorsAreCopied) {
  barriers({.start = 0xFFFFFFF8});
  for (uint32_t i = 0; i < 40; ++i) {
    post(two_rounds(i));
    std::memset(ring_->entries.va, 0xFF, ring_->entries.len_bytes);
    take_part(i);
    const regs::BarrierCpl end = expect_end(Status::kOk);
    EXPECT_EQ(end.index, (0x7FFFFFF8 + i) & 0x7FFFFFFF);
    EXPECT_EQ(end.cookie, 0x80000000u | i);
  }
}

/// Two groups; the one that was posted first ends last.
// C3
TEST_P(Barriers, CompletionsComeInAnyOrder) {
  barriers();
  post(two_rounds());
  regs::BarrierDesc other = two_rounds();
  other.group = kGroup + 1;
  post(other);
  respond_all(expect_notices({{kPeerA, notice(0)}, {kPeerA, notice(0, 0, kGroup + 1)}}));
  EXPECT_EQ(tell(kPeerA, notice(0, 0, kGroup + 1)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(1, 0, kGroup + 1)), Answer::kDone);
  respond_all(expect_notices({{kPeerB, notice(1, 0, kGroup + 1)}}));
  EXPECT_EQ(expect_end(Status::kOk).index, 1u);
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  respond_all(expect_notices({{kPeerB, notice(1)}}));
  EXPECT_EQ(expect_end(Status::kOk).index, 0u);
}

// C4
TEST_P(Barriers, BadDescriptorsAreRefused) {
  using Control = regs::barrier_desc::Control;
  barriers();
  std::vector<regs::BarrierDesc> bad(11, two_rounds());
  bad[0].control &= ~Control::rounds.mask();
  bad[1].control |= Control::rounds.mask();
  bad[2].send |= 1u << 4;                      // beyond the rounds
  bad[3].send = bad[3].await = 1;              // a round without a bit
  bad[4].peers[1] = kStranger;                 // a peer without bits
  bad[5].await |= 2;                           // bits without a peer
  bad[6].peers[1] = kPeerA, bad[6].send |= 2;  // one peer twice for one direction
  bad[7].group = 128;
  bad[8].control |= Control::op.mask();
  bad[9].control |= Control::prio.put(3);
  bad[10].await |= uint64_t{1} << 63;
  for (uint32_t i = 0; i < bad.size(); ++i) {
    bad[i].cookie = i;
    post(bad[i]);
    EXPECT_EQ(expect_end(Status::kBadDescriptor).cookie, i);
  }
  expect_notices({});
  run_one(0);
}

// C4
TEST_P(Barriers, AGroupHasOneBarrierAtATime) {
  barriers();
  post(two_rounds(0));
  post(two_rounds(1));
  EXPECT_EQ(expect_end(Status::kBadDescriptor).index, 1u);
  take_part();
  EXPECT_EQ(expect_end(Status::kOk).index, 0u);
}

// C5, C6
TEST_P(Barriers, ARoundIsSentOnceAllEarlierOnesAreIn) {
  barriers();
  post(two_rounds());
  const auto first = expect_notices({{kPeerA, 0x8500}});
  EXPECT_EQ(tell(kPeerB, 0x8501), Answer::kDone);  // a later round does not count for this one
  expect_notices({});
  EXPECT_EQ(tell(kPeerA, 0x8500), Answer::kDone);
  const auto second = expect_notices({{kPeerB, 0x8501}});
  expect_no_end();  // two answers are missing
  respond_all(first);
  expect_no_end();
  respond_all(second);
  const regs::BarrierCpl end = expect_end(Status::kOk);
  EXPECT_EQ(end.cookie, 0x80000000u);
  EXPECT_EQ(end.index, 0u);
}

}  // namespace
}  // namespace rio::test
