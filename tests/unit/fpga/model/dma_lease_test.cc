// Reads of memory that the partner has leased: they need no answer, and find what answers would
// have brought.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "fpga/model/leases.hpp"
#include "tests/unit/fpga/model/dma_cards.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kBytes = 50'000;

class DmaLease : public testing::Test {
 protected:
  DmaLease() {
    fill(cards_.local(), 1);
    fill(cards_.remote(), 2);
    cards_.post({DmaOp::kNread, kBytes, 0, 0, 0});
    cards_.settle();
    EXPECT_EQ(cards_.take().size(), 1u);
    EXPECT_EQ(cards_.puller(0).pulls, 1u) << "the first read asks";
    fill(cards_.remote(), 3);
  }
  void read(uint32_t cookie, uint64_t at = kBytes, uint32_t bytes = kBytes) {
    cards_.post({DmaOp::kNread, bytes, at, at, cookie});
  }
  /// The reader works alone.
  [[nodiscard]] std::vector<DmaResult> done_alone() {
    cards_.steps(0, 40);
    return cards_.take();
  }
  [[nodiscard]] std::vector<DmaResult> done() {
    cards_.settle();
    return cards_.take();
  }
  [[nodiscard]] bool same(uint64_t at, uint64_t bytes = kBytes) {
    return std::equal(cards_.local().va + at, cards_.local().va + at + bytes,
                      cards_.remote().va + at);
  }

  DmaCards cards_{false};
  const std::vector<DmaResult> ok_ = {{1, Status::kOk, kBytes}};
  const std::vector<DmaResult> error_ = {{1, Status::kErrorResponse, 0}};
};

TEST_F(DmaLease, AReadNeedsNoAnswer) {
  read(1);
  EXPECT_EQ(done_alone(), ok_);
  EXPECT_TRUE(same(kBytes));
}

TEST_F(DmaLease, BothCardsCountThePackets) {
  const uint32_t before = cards_.node(1).card().statistics().port.rx_packets;
  for (uint32_t i = 0; i < 3; ++i) {
    read(1);
    EXPECT_EQ(done_alone(), ok_);
  }
  cards_.settle();
  EXPECT_EQ(cards_.node(1).card().statistics().port.rx_packets, before + 3 * (kBytes / 4096 + 1));
  EXPECT_EQ(cards_.node(1).card().statistics().port.rx_packets,
            cards_.node(0).card().statistics().port.tx_packets);
}

TEST_F(DmaLease, AStepReadsABoundedNumberOfBytes) {
  constexpr uint32_t kReads = 8;
  for (uint32_t i = 0; i < kReads; ++i) {
    read(i, 0, model::kLongBytesMax);
  }
  for (uint32_t steps = 0; cards_.puller(0).bytes < kReads * uint64_t{model::kLongBytesMax};) {
    const uint64_t before = cards_.puller(0).bytes;
    cards_.steps(0, 1);
    EXPECT_LE(cards_.puller(0).bytes - before, 512u * 1024);
    ASSERT_LT(++steps, 100u);
  }
  EXPECT_EQ(done_alone().size(), kReads);
}

/// The card takes descriptors of one place again and again, as long as others are posted.
TEST_F(DmaLease, NoReadWaitsForEverBehindLongOnes) {
  for (uint32_t i = 0; i < 3; ++i) {
    read(i, 0, model::kLongBytesMax);
  }
  std::vector<uint32_t> ended;
  for (uint32_t i = 3; i < 40; i += 2) {
    cards_.steps(0, 1);
    for (const DmaResult& each : cards_.take()) {
      ended.push_back(each.cookie);
    }
    read(i, 0, model::kLongBytesMax);
    read(i + 1, 0, model::kLongBytesMax);
    cards_.steps(0, 1);
  }
  for (const uint32_t first : {0u, 1u, 2u}) {
    EXPECT_TRUE(std::ranges::find(ended, first) != ended.end()) << first;
  }
}

/// Memory elsewhere has gone: the read asks, and no packets are needed.
TEST_F(DmaLease, AReadWhoseLeaseEndsMeanwhileAsks) {
  const uint64_t before = cards_.puller(0).pulls;
  cards_.puller(0).after_pull = [this] {
    cards_.puller(0).after_pull = nullptr;
    cards_.node(1).card().with_lock([](void* /*arg*/) {}, nullptr);
  };
  read(1);
  EXPECT_TRUE(done_alone().empty());
  EXPECT_EQ(done(), ok_);
  EXPECT_TRUE(same(kBytes));
  EXPECT_EQ(cards_.puller(0).pulls, before + 2);
  EXPECT_EQ(cards_.node(1).card().statistics().port.rx_packets,
            cards_.node(0).card().statistics().port.tx_packets);
}

TEST_F(DmaLease, ItEndsWithTheReceiveMap) {
  namespace map = regs::rx_map;
  SameNode& target = cards_.node(1);
  target.write32(map::entry(0), map::Entry::valid.put(1));  // requests go to no pair
  target.write32(map::apply(), 2);
  cards_.steps(1, 40);
  ASSERT_EQ(target.read32(map::applied()), 2u);
  read(1);
  EXPECT_TRUE(done_alone().empty());
  EXPECT_EQ(done(), error_);
}

TEST_F(DmaLease, ItEndsWithFaults) {
  cards_.node(1).card().set_faults({.seed = 1, .rate = 1e-9});
  read(1);
  EXPECT_TRUE(done_alone().empty());
  EXPECT_EQ(done(), ok_);
}

TEST_F(DmaLease, ItEndsWithTheWindow) {
  cards_.set_window(false);
  cards_.steps(1, 20);
  ASSERT_TRUE(cards_.window_is_set());
  read(1);
  EXPECT_TRUE(done_alone().empty());
  EXPECT_EQ(done(), error_);
}

TEST_F(DmaLease, NothingCountsThatWasReadWhileTheWindowClosed) {
  const uint64_t before = cards_.puller(0).pulls;
  cards_.puller(0).after_pull = [this] {
    cards_.set_window(false);
    cards_.steps(1, 20);
  };
  read(1);
  EXPECT_EQ(done(), error_);
  EXPECT_EQ(cards_.puller(0).pulls, before + 1);
}

TEST_F(DmaLease, ItEndsWithTheMemory) {
  cards_.node(1).card().with_lock(
      [](void* arg) {
        auto& cards = *static_cast<DmaCards*>(arg);
        cards.node(1).unmap(cards.remote());
      },
      &cards_);
  read(1);
  EXPECT_TRUE(done_alone().empty());
  EXPECT_EQ(done(), error_);
}

TEST_F(DmaLease, ItEndsWithTheLink) {
  cards_.node(1).card().set_link(false);
  cards_.steps(1, 20);
  read(1);
  EXPECT_TRUE(done_alone().empty());
}

TEST_F(DmaLease, ItEndsWithTheCard) {
  cards_.node(1).lose_state();
  read(1);
  EXPECT_TRUE(done_alone().empty());
}

/// The window ends before the memory that is mapped.
TEST_F(DmaLease, ItHasItsEnds) {
  for (const uint64_t at : {uint64_t{kWindowBytes} - kBytes + 1, uint64_t{kWindowBytes}}) {
    cards_.post({DmaOp::kNread, kBytes, 0, at, 1});
    EXPECT_TRUE(done_alone().empty());
    EXPECT_EQ(done().front().status, Status::kErrorResponse);
  }
  cards_.post({DmaOp::kNread, kBytes, 0, kWindowBytes - kBytes, 1});
  EXPECT_EQ(done_alone(), ok_);
}

/// A read pushes earlier writes before it, and finds what they have left.
TEST_F(DmaLease, AReadDoesNotPassAWrite) {
  for (const DmaOp op : {DmaOp::kNwrite, DmaOp::kNwriteR, DmaOp::kSwrite}) {
    for (const uint32_t bytes : {64u, 30'000u}) {
      fill(cards_.local(), bytes + static_cast<uint32_t>(op));
      cards_.post({op, bytes, 0, 0, 0});
      cards_.steps(0, 1);
      cards_.post({DmaOp::kNread, bytes, 100'000, 0, 1});
      cards_.steps(0, 40);
      EXPECT_LT(cards_.take().size(), 2u);
      EXPECT_EQ(done().back(), (DmaResult{1, Status::kOk, bytes}));
      EXPECT_TRUE(
          std::equal(cards_.local().va, cards_.local().va + bytes, cards_.local().va + 100'000));
    }
  }
  read(1);
  EXPECT_EQ(done_alone(), ok_) << "the writes are over";
}

TEST(Leases, ForeignValuesGiveNoOtherAddressesThanThePartnerNames) {
  model::Leases leases;
  leases.add(0x1000, {{0x5000, 16, 0}, ~0ull, 0, 7});
  EXPECT_EQ(leases.find(0x1000, 16, 7), 0u) << "fewer bytes than it asks for";
  leases.add(0x1000, {{0x5000, 0x100, 0}, 0x10, 0x20, 7});
  EXPECT_EQ(leases.find(0xFF0, 0x130, 7), 0x4FF0u);
  EXPECT_EQ(leases.find(0xFEF, 1, 7), 0u);
  EXPECT_EQ(leases.find(0xFF0, 0x131, 7), 0u);
  EXPECT_EQ(leases.find(0x1120, 1, 7), 0u);
  EXPECT_EQ(leases.find(0x1000, ~0ull, 7), 0u);
  EXPECT_EQ(leases.find(0x1000, 1, 8), 0u) << "those with another number have ended";
  EXPECT_EQ(leases.find(0x1000, 1, 7), 0u) << "for good";
}

/// As many as it keeps, the oldest make room.
TEST(Leases, TheOldestMakeRoom) {
  model::Leases leases;
  for (uint64_t i = 1; i <= 17; ++i) {
    leases.add(i << 20, {{i << 30, 0x100, 0}, 0, 0, 1});
  }
  EXPECT_EQ(leases.find(1ull << 20, 1, 1), 0u);
  for (uint64_t i = 2; i <= 17; ++i) {
    EXPECT_EQ(leases.find((i << 20) + 5, 1, 1), (i << 30) + 5);
  }
}

}  // namespace
}  // namespace rio::test
