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

/// The ring goes round many times, the host overwrites entries as soon as the card has fetched
/// them, and the indices wrap.
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

// C6
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

// C7
TEST_P(Barriers, ANotificationCountsOnce) {
  barriers();
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}}));
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  respond_all(expect_notices({{kPeerB, notice(1)}}));
  expect_no_end();
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  expect_end(Status::kOk);
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  expect_no_end();
  expect_notices({});
}

// C8
TEST_P(Barriers, OnlyARunningRingClaimsDoorbells) {
  std::unique_ptr<TestRing> doorbells;
  TestRing& plain = start(doorbells, regs::Ring::kDoorbell);
  plain.give_back();
  const auto arrives = [&](uint16_t info) {
    EXPECT_EQ(tell(kPeerA, info), Answer::kDone);
    const auto cpls = plain.take_all<regs::DoorbellCpl>();
    plain.give_back();
    return cpls.size() == 1 && (cpls[0].status & 0xFFFF) == info;
  };
  EXPECT_TRUE(arrives(notice(0)));
  barriers();
  EXPECT_FALSE(arrives(notice(0)));
  EXPECT_TRUE(arrives(0x7FFF));
  ring_->stop();
  EXPECT_TRUE(arrives(notice(0)));
  plain.stop();
  ring_->start();
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone) << "without a doorbell ring, too";
  EXPECT_EQ(tell(kPeerA, 0x7FFF), Answer::kError);
}

// C8
TEST_P(Barriers, TheRingOfAnotherQueuePairClaimsNothing) {
  make({.queue_pairs = 2});
  std::unique_ptr<TestRing> doorbells;
  start(doorbells, regs::Ring::kDoorbell).give_back();
  barriers({.qp = 1});
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(doorbells->take_all<regs::DoorbellCpl>().size(), 1u);
  EXPECT_EQ(tell(kPeerA, notice(0), kOwnId + 1), Answer::kDone);
  EXPECT_TRUE(doorbells->take_all<regs::DoorbellCpl>().empty());
}

// C9
TEST_P(Barriers, EarlyNotificationsWaitForTheirDescriptor) {
  barriers();
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  expect_notices({});
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}, {kPeerB, notice(1)}}));
  expect_end(Status::kOk);
  EXPECT_EQ(tell(kPeerB, notice(1, 1)), Answer::kDone);  // of the next epoch
  EXPECT_EQ(tell(kPeerA, notice(0, 1)), Answer::kDone);
  post(two_rounds(1));
  respond_all(expect_notices({{kPeerA, notice(0, 1)}, {kPeerB, notice(1, 1)}}));
  expect_end(Status::kOk);
}

/// A peer may be an epoch ahead while the barrier runs: all that it awaited has come.
// C9
TEST_P(Barriers, EarlyNotificationsOfTheNextEpochComeWhileABarrierRuns) {
  barriers();
  post(two_rounds(7));
  EXPECT_EQ(tell(kPeerA, notice(0, 7)), Answer::kDone);
  EXPECT_EQ(tell(kPeerA, notice(0, 8)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(1, 7)), Answer::kDone);
  respond_all(expect_notices({{kPeerA, notice(0, 7)}, {kPeerB, notice(1, 7)}}));
  expect_end(Status::kOk);
  post(two_rounds(8));
  respond_all(expect_notices({{kPeerA, notice(0, 8)}, {kPeerB, notice(1, 8)}}));
  expect_no_end();
  EXPECT_EQ(tell(kPeerB, notice(1, 8)), Answer::kDone);
  expect_end(Status::kOk);
}

/// The memory is full of other groups; a barrier that was posted never needs it.
// C9
TEST_P(Barriers, AFullMemoryRefusesAndBlocksNoPostedBarrier) {
  make({.early_notices = 2});
  barriers();
  EXPECT_EQ(tell(kPeerA, notice(0, 0, 6)), Answer::kDone);
  EXPECT_EQ(tell(kPeerA, notice(0, 0, 7)), Answer::kDone);
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kRetry);
  EXPECT_EQ(tell(kPeerA, notice(0, 0, 7)), Answer::kDone) << "it is stored already";
  EXPECT_EQ(count(words::nacks_given), 1u);
  EXPECT_EQ(count(words::early), 3u);
  run_one(0);
  EXPECT_EQ(tell(kPeerA, notice(0, 1)), Answer::kRetry);
  regs::BarrierDesc other = two_rounds();
  other.group = 6;
  post(other);
  EXPECT_EQ(tell(kPeerA, notice(0, 1)), Answer::kDone) << "that place is free now";
}

// C10
TEST_P(Barriers, AReserveKeepsRoomForAQueuePair) {
  make({.queue_pairs = 2, .early_notices = 4});
  std::unique_ptr<TestRing> first;
  barriers({.qp = 1}, 0, 3);
  std::swap(first, ring_);
  barriers();
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerA, notice(1)), Answer::kRetry);
  for (uint32_t round = 0; round < 3; ++round) {
    EXPECT_EQ(tell(kPeerA, notice(round), kOwnId + 1), Answer::kDone);
  }
  EXPECT_EQ(tell(kPeerA, notice(3), kOwnId + 1), Answer::kRetry);
  first->stop();
  EXPECT_EQ(tell(kPeerA, notice(1)), Answer::kDone) << "the reserve went with the ring";
}

// C11
TEST_P(Barriers, ALoadedGroupNeedsNoRoom) {
  make({.early_notices = 0});
  barriers();
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kRetry);
  post(two_rounds(0, BarrierOp::kLoad));
  expect_notices({});
  expect_end(Status::kOk);
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  EXPECT_EQ(tell(kPeerB, notice(0)), Answer::kError);
  post(two_rounds());
  respond_all(expect_notices({{kPeerA, notice(0)}, {kPeerB, notice(1)}}));
  EXPECT_EQ(tell(kPeerA, notice(0, 1)), Answer::kDone);
  expect_end(Status::kOk);
}

/// A new group of a number that was used before begins at any epoch.
// C11
TEST_P(Barriers, ALoadedGroupForgetsTheOneBefore) {
  barriers();
  run_one(7);
  EXPECT_EQ(tell(kPeerA, notice(0, 8)), Answer::kDone);  // kept, and never awaited
  for (const uint32_t epoch :
       {7u, 6u, 1u, 100u}) {  // epochs that would be stale, or too far ahead, in the earlier group
    post(two_rounds(epoch, BarrierOp::kLoad));
    expect_end(Status::kOk);
    run_one(epoch);
  }
  EXPECT_EQ(count(words::stale), 0u);
}

// C33
TEST_P(Barriers, AGroupIsNotLoadedWhileItsBarrierRuns) {
  barriers();
  post(two_rounds());
  const auto notices = expect_notices({{kPeerA, notice(0)}});
  post(two_rounds(5, BarrierOp::kLoad));
  expect_end(Status::kBadDescriptor);
  respond_all(notices);
  EXPECT_EQ(tell(kPeerA, notice(0)), Answer::kDone);
  respond_all(expect_notices({{kPeerB, notice(1)}}));
  EXPECT_EQ(tell(kPeerB, notice(1)), Answer::kDone);
  expect_end(Status::kOk);
}

/// Epochs around the wrap of 3 bits and of 32.
// C13
TEST_P(Barriers, EpochsWrapAndOldOnesAreStale) {
  barriers();
  const uint32_t first = 0xFFFFFFF9;
  for (uint32_t i = 0; i < 12; ++i) {
    const uint32_t epoch = first + i;
    run_one(epoch);
    for (uint32_t back = 0; back < 3; ++back) {
      EXPECT_EQ(tell(kPeerA, notice(0, epoch - back)), Answer::kDone);
    }
    EXPECT_EQ(count(words::stale), 3 * (i + 1));
    for (uint32_t ahead = 2; ahead < 6; ++ahead) {
      EXPECT_EQ(tell(kPeerA, notice(0, epoch + ahead)), Answer::kError);
    }
    expect_notices({});
    expect_no_end();
  }
  EXPECT_EQ(count(words::early), 0u);
}

/// A late copy of each of the last three epochs comes while the next barrier runs.
// C13
TEST_P(Barriers, StaleNotificationsDoNotCountForTheNextBarrier) {
  barriers();
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    run_one(epoch);
  }
  post(two_rounds(3));
  for (uint32_t epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(tell(kPeerA, notice(0, epoch)), Answer::kDone);
    EXPECT_EQ(tell(kPeerB, notice(1, epoch)), Answer::kDone);
  }
  respond_all(expect_notices({{kPeerA, notice(0, 3)}}));
  take_turns(3);
}

/// Each of the 128 groups has a barrier; they end in another order.
// C21
TEST_P(Barriers, AllGroupsRunAtOnce) {
  ring_ = std::make_unique<TestRing>(card(), RingConfig{.ring = 5, .log2 = 7, .clog2 = 8});
  ring_->start();
  for (uint32_t group = 0; group < 128; ++group) {
    regs::BarrierDesc desc = barrier_desc(1, {{0, 0, kPeerA}}, group, BarrierOp::kRun);
    desc.group = group;
    ring_->put(desc);
  }
  ring_->post();
  respond_all(notices());
  for (uint32_t i = 0; i < 128; ++i) {
    const uint32_t group = (i * 37) % 128;
    EXPECT_EQ(tell(kPeerA, notice(0, group, group)), Answer::kDone);
    EXPECT_EQ(expect_end(Status::kOk).index, group);
  }
}

/// Many cancellations to silent peers: more than the card keeps at once.
// C21
TEST_P(Barriers, EntriesWaitForRoom) {
  ring_ = std::make_unique<TestRing>(card(), RingConfig{.ring = 5, .log2 = 9, .clog2 = 10});
  ring_->start();
  for (uint32_t i = 0; i < 400; ++i) {
    regs::BarrierDesc desc = two_rounds(i / 128, BarrierOp::kCancel);
    desc.group = i % 128;
    ring_->put(desc);
  }
  ring_->post();
  std::vector<regs::BarrierCpl> ends;
  for (uint32_t i = 0; i < 6 && ends.size() < 400; ++i) {
    for (const regs::BarrierCpl& end : ring_->take_all<regs::BarrierCpl>()) {
      EXPECT_EQ(end.index, ends.size());
      ends.push_back(end);
    }
    notices_.clear();
    card().advance_us(latest_us(kResponseUs));
    work();
  }
  EXPECT_EQ(ends.size(), 400u);
}

/// Peers that answer RETRY to their cancellations for ever keep no room from others.
// C21
TEST_P(Barriers, PeersThatRefuseForEverLeaveRoom) {
  ring_ = std::make_unique<TestRing>(card(), RingConfig{.ring = 5, .log2 = 9, .clog2 = 10});
  ring_->start();
  for (uint32_t i = 0; i < 400; ++i) {
    regs::BarrierDesc desc = barrier_desc(1, {{0, 0, kPeerA}}, i / 128, BarrierOp::kCancel);
    desc.group = i % 128;
    ring_->put(desc);
  }
  ring_->post();
  uint32_t ends = 0;
  for (uint32_t i = 0; i < 20 && ends < 400; ++i) {
    respond_all(notices(), Answer::kRetry);
    ends += static_cast<uint32_t>(ring_->take_all<regs::BarrierCpl>().size());
    card().advance_us(200);  // longer than the longest delay
  }
  EXPECT_EQ(ends, 400u);
}

}  // namespace
}  // namespace rio::test
