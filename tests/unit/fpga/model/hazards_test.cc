// The hazards of [S0]: a transfer that breaks the 256-byte rule corrupts memory beyond its buffer;
// transfers by the driver's plans never do.
#include "pmd/mem/alignment_plan.hpp"
#include "tests/unit/fpga/model/two_cards.hpp"

namespace rio::test {
namespace {

using pmd::Status;

/// Number of bytes behind the first `used` of the receiver's memory that have changed.
size_t beyond(const pmd::DmaMemory& memory, size_t used) {
  const auto* va = static_cast<const uint8_t*>(memory.va);
  size_t touched = 0;
  for (size_t i = used; i < memory.len_bytes; ++i) {
    touched += va[i] != 0xA5 ? 1 : 0;
  }
  return touched;
}

struct Mode {
  bool exact;
  uint64_t pcie_seed;
};

class Hazards : public testing::TestWithParam<Mode> {
 protected:
  static model::Config config(bool quirks = true) {
    model::Config c;
    c.exact = GetParam().exact;
    c.pcie_seed = GetParam().pcie_seed;
    c.quirk_last_at_256 = c.quirk_last_full_256 = quirks;
    return c;
  }
  /// Sends `length` bytes in segments of 8 << (code - 9) into a shared buffer. @return the number
  /// of bytes beyond the message that have changed.
  static size_t touched_beyond(uint16_t length, uint8_t code, bool quirks) {
    TwoCards two(config(quirks));
    const pmd::DmaMemory to = two.memory(1, 8192, 0xA5);
    const pmd::DmaMemory from = two.memory(0, 4096, 0x11);
    const pmd::RxBuffer buffer{to.iova, 1};
    EXPECT_EQ(two.pair[1]->shared().post(&buffer, 1), 1);
    const pmd::TxMessage message{
        .iova = from.iova,
        .cookie = 1,
        .dest_id = kIds[1],
        .length_bytes = length,
        .mbox = 0,
        .flags = static_cast<uint8_t>((code - 8) << pmd::TxFlags::kSsizeShift)};
    EXPECT_EQ(two.pair[0]->tx().burst(&message, 1), 1);
    EXPECT_EQ(two.settle(0, 1).size(), 1u);
    two.step(400);
    return beyond(to, (length + 7u) & ~7u);
  }
};
INSTANTIATE_TEST_SUITE_P(Model, Hazards,
                         testing::Values(Mode{true, 0}, Mode{false, 0}, Mode{true, 5}));

TEST_P(Hazards, ABufferOfTheMessagesSizeIsOverrun) {
  EXPECT_EQ(touched_beyond(8, 14, true), 248u);
  EXPECT_EQ(touched_beyond(257, 14, true), 512u - 264u);
}

TEST_P(Hazards, TheLastSmallSegmentLandsFarAway) {
  // 4 segments of 64 bytes: the last one lands at 768 instead of 192.
  EXPECT_EQ(touched_beyond(256, 11, true), 256u);
}

TEST_P(Hazards, ACardWithoutQuirksDoesNeither) {
  EXPECT_EQ(touched_beyond(8, 14, false), 0u);
  EXPECT_EQ(touched_beyond(256, 11, false), 0u);
}

/// Transfers into user memory at any offset, by the plan: the user's bytes arrive, and no other
/// byte of the user's memory changes.
TEST_P(Hazards, PlansStayInTheRangeAtEachOffset) {
  TwoCards two(config());
  const pmd::DmaMemory user = two.memory(1, 7 * 4096, 0xA5);
  const pmd::DmaMemory source = two.memory(0, 7 * 4096, 0);
  const pmd::DmaMemory bounce[2] = {two.memory(0, 16 * 4096, 0), two.memory(1, 16 * 4096, 0)};
  auto* to = static_cast<uint8_t*>(user.va);
  auto* from = static_cast<uint8_t*>(source.va);
  for (size_t i = 0; i < source.len_bytes; ++i) {
    from[i] = static_cast<uint8_t>(i * 31 + i / 256);
  }
  pmd::DedicatedRxQueue* queue = nullptr;
  ASSERT_EQ(two.pair[1]->open_dedicated(0, kIds[0], 1, &queue), 0);
  const pmd::IovaRun runs[2] = {{source.va, source.iova, source.len_bytes},
                                {user.va, user.iova, user.len_bytes}};
  const pmd::mem::AlignRules rules;
  uint64_t placed = 0;
  for (uint32_t offset = 0; offset < 4096; offset += GetParam().exact ? 61 : 13) {
    const uint64_t length = 4096 + offset * 2;
    const size_t at = 4096 + offset;
    std::memset(to, 0xA5, user.len_bytes);
    pmd::mem::Plan receive;
    pmd::mem::Plan send;
    ASSERT_EQ(pmd::mem::plan_receive({to + at, length, {&runs[1], 1}}, rules, &receive), 0);
    ASSERT_EQ(pmd::mem::plan_send({from + 8, length, {runs, 1}}, receive.cut, rules, {}, &send), 0);
    ASSERT_EQ(receive.messages.size(), send.messages.size());
    placed += receive.bytes_placed;
    const size_t n = send.messages.size();
    ASSERT_LE(n, 16u);
    for (size_t i = 0; i < n; ++i) {
      const pmd::mem::PlanMessage& in = receive.messages[i];
      const bool bounced = in.placement == pmd::mem::Placement::kBounced;
      const pmd::DedicatedEntry entry{bounced ? bounce[1].iova + i * 4096 : in.iova, i,
                                      in.wire_bytes};
      ASSERT_EQ(queue->post(&entry, 1), 1) << offset;
      const pmd::mem::PlanMessage& out = send.messages[i];
      uint64_t iova = out.iova;
      if (out.placement == pmd::mem::Placement::kBounced) {
        uint8_t* slot = static_cast<uint8_t*>(bounce[0].va) + i * 4096;
        std::memset(slot, 0, 4096);
        std::memcpy(slot, out.va, out.len_bytes);
        iova = bounce[0].iova + i * 4096;
      }
      const pmd::TxMessage message{.iova = iova,
                                   .cookie = i,
                                   .dest_id = kIds[1],
                                   .length_bytes = out.wire_bytes,
                                   .mbox = 1,
                                   .flags = pmd::TxFlags::kOrder};
      ASSERT_EQ(two.pair[0]->tx().burst(&message, 1), 1);
    }
    for (const pmd::TxDone& done : two.settle(0, n)) {
      ASSERT_EQ(done.status, Status::kOk) << offset;
    }
    const auto landed = two.reap<pmd::DedicatedRxQueue, pmd::EntryDone>(*queue, n);
    ASSERT_EQ(landed.size(), n);
    for (size_t i = 0; i < n; ++i) {
      const pmd::mem::PlanMessage& in = receive.messages[i];
      if (in.placement == pmd::mem::Placement::kBounced) {
        std::memcpy(in.va, static_cast<uint8_t*>(bounce[1].va) + i * 4096, in.len_bytes);
      }
    }
    ASSERT_EQ(std::memcmp(to + at, from + 8, length), 0) << offset;
    for (size_t i = 0; i < user.len_bytes; ++i) {
      ASSERT_TRUE((i >= at && i < at + length) || to[i] == 0xA5) << offset << " byte " << i;
    }
  }
  EXPECT_GT(placed, 0u);
}

/// A sender stalls in the middle of a message, for longer than the receiver waits: the wire has
/// room for 14 messages and a part of another one.
TEST(Stall, AMessageThatWasGivenUpIsNotReportedDelivered) {
  constexpr uint32_t kMessages = 16;  // most in flight: four letters in each of four mailboxes
  model::Config config;
  config.exact = true;
  TwoCards two(config);
  const pmd::DmaMemory to = two.memory(1, 2 * kMessages * 4096, 0);
  const pmd::DmaMemory from = two.memory(0, 4096, 0x11);
  for (uint64_t i = 0; i < 2 * kMessages; ++i) {
    const pmd::RxBuffer buffer{to.iova + i * 4096, i};
    ASSERT_EQ(two.pair[1]->shared().post(&buffer, 1), 1);
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    const pmd::TxMessage message{.iova = from.iova,
                                 .cookie = i,
                                 .dest_id = kIds[1],
                                 .length_bytes = 4096,
                                 .mbox = static_cast<uint8_t>(i % 4),
                                 .flags = 0};
    ASSERT_EQ(two.pair[0]->tx().burst(&message, 1), 1);
  }
  two.bus[0]->poll_hook(0)();
  const auto step_receiver = [&](int times) {
    for (; times > 0; --times) {
      two.bus[1]->poll_hook(0)();
    }
  };
  step_receiver(100);
  two.clock.advance_ns(60'000'000);  // the receive time-out is 4 ms
  step_receiver(10);
  uint32_t told = 0;
  for (const pmd::TxDone& done : two.settle(0, kMessages)) {
    told += done.status == Status::kOk ? 1 : 0;
  }
  EXPECT_EQ(told, kMessages - 1);
  uint32_t came = 0;
  uint32_t given_up = 0;
  pmd::RxMessage all[2 * kMessages];
  for (uint16_t left = two.pair[1]->shared().burst(all, 2 * kMessages); left > 0; --left) {
    came += all[left - 1].status == Status::kOk ? 1 : 0;
    given_up += all[left - 1].status == Status::kReceiveTimeout ? 1 : 0;
  }
  EXPECT_EQ(came, told);
  EXPECT_EQ(given_up, 1u);
}

}  // namespace
}  // namespace rio::test
