// The real driver on the model: all queues, all sizes, wraps, stop with traffic, and cards that
// disappear.
#include "tests/unit/fpga/model/two_cards.hpp"

#include <algorithm>

namespace rio::test {
namespace {

using pmd::Status;

struct Mode {
  bool exact;
  uint64_t pcie_seed;
  uint32_t start_index;
};

class Driver : public testing::TestWithParam<Mode> {
 protected:
  static model::Config config() {
    model::Config c;
    c.exact = GetParam().exact;
    c.pcie_seed = GetParam().pcie_seed;
    return c;
  }
  /// Send 64 bytes of 0x42 from the second card to the first one, which has one buffer. @return how
  /// the message ended; kFlushed if it did not end.
  Status send_to_first(const pmd::DmaMemory& to) {
    const pmd::RxBuffer buffer{to.iova, 7};
    EXPECT_EQ(two_.pair[0]->shared().post(&buffer, 1), 1);
    const pmd::TxMessage message{.iova = two_.memory(1, 4096, 0x42).iova,
                                 .cookie = 1,
                                 .dest_id = kIds[0],
                                 .length_bytes = 64,
                                 .mbox = 0,
                                 .flags = 0};
    EXPECT_EQ(two_.pair[1]->tx().burst(&message, 1), 1);
    const std::vector<pmd::TxDone> done = two_.settle(1, 1);
    two_.step(100);  // the card's writes reach memory
    return done.empty() ? Status::kFlushed : done[0].status;
  }
  /// Post a transfer that is larger than the wire, and cut the link after some steps of its sender.
  /// @return how it ended; kOk also if it did not end.
  Status cut_transfer(regs::DmaOp op, int steps) {
    constexpr uint32_t kBytes = 512 * 1024;
    const pmd::DmaMemory from = two_.memory(0, kBytes, 0x42);
    const pmd::DmaRequest request{.rio_addr = 0,
                                  .iova = from.iova,
                                  .cookie = 8,
                                  .dest_id = kIds[1],
                                  .length_bytes = kBytes,
                                  .op = op,
                                  .prio = 0};
    EXPECT_EQ(two_.pair[0]->dma().post(&request, 1), 1);
    for (int i = 0; i < steps; ++i) {
      two_.bus[0]->poll_hook(0)();
    }
    two_.bus[0]->card().set_link(false);
    const auto done = two_.reap<pmd::DmaQueue, pmd::EntryDone>(two_.pair[0]->dma(), 1);
    return done.size() == 1 ? done[0].status : Status::kOk;
  }
  TwoCards two_{config(), GetParam().start_index};
};
INSTANTIATE_TEST_SUITE_P(Model, Driver,
                         testing::Values(Mode{false, 0, 0}, Mode{false, 0, 0xFFFFFF80},
                                         Mode{true, 0, 0xFF80}, Mode{true, 3, 0xFFFFFFF0},
                                         Mode{true, 8, 0}, Mode{true, 13, 0x7FFFFFF8}));

TEST_P(Driver, AllSizesBothWays) {
  const pmd::DmaMemory from = two_.memory(0, 8192, 0);
  const pmd::DmaMemory to = two_.memory(1, 8192, 0xA5);
  auto* bytes = static_cast<uint8_t*>(from.va);
  for (size_t i = 0; i < 8192; ++i) {
    bytes[i] = static_cast<uint8_t>(i ^ i >> 8);
  }
  for (uint32_t length = 1; length <= 4096; length += length < 520 ? 1 : 37) {
    const pmd::RxBuffer buffer{to.iova, length};
    ASSERT_EQ(two_.pair[1]->shared().post(&buffer, 1), 1);
    const uint32_t offset = (length * 8) % 4096;
    const pmd::TxMessage message{.iova = from.iova + offset,
                                 .cookie = length,
                                 .dest_id = kIds[1],
                                 .length_bytes = static_cast<uint16_t>(length),
                                 .mbox = 3,
                                 .flags = 0};
    ASSERT_EQ(two_.pair[0]->tx().burst(&message, 1), 1);
    const auto done = two_.settle(0, 1);
    ASSERT_EQ(done.size(), 1u) << length;
    ASSERT_EQ(done[0].status, Status::kOk);
    ASSERT_EQ(done[0].cookie, length);
    pmd::RxMessage got;
    uint16_t n = 0;
    for (int i = 0; i < 2000 && n == 0; ++i) {
      n = two_.pair[1]->shared().burst(&got, 1);
      two_.step();
    }
    ASSERT_EQ(n, 1) << length;
    EXPECT_EQ(got.cookie, length);
    EXPECT_EQ(got.length_bytes, (length + 7) & ~7u);
    EXPECT_EQ(got.source, kIds[0]);
    ASSERT_EQ(std::memcmp(to.va, bytes + offset, length), 0) << length;
  }
  EXPECT_EQ(two_.bus[0]->card().statistics().refused + two_.bus[1]->card().statistics().refused,
            0u);
}

TEST_P(Driver, NothingIsSentOnceTheLinkIsDown) {
  const pmd::DmaMemory from = two_.memory(0, 4096, 0x42);
  const pmd::DmaMemory to = two_.memory(1, 4096, 0xA5);
  const pmd::RxBuffer buffer{to.iova, 1};
  ASSERT_EQ(two_.pair[1]->shared().post(&buffer, 1), 1);
  two_.bus[0]->card().set_link(false);
  const pmd::TxMessage message{.iova = from.iova,
                               .cookie = 7,
                               .dest_id = kIds[1],
                               .length_bytes = 64,
                               .mbox = 5,
                               .flags = 0};
  ASSERT_EQ(two_.pair[0]->tx().burst(&message, 1), 1);
  const pmd::DmaRequest request{.rio_addr = 0,
                                .iova = from.iova,
                                .cookie = 8,
                                .dest_id = kIds[1],
                                .length_bytes = 256,
                                .op = regs::DmaOp::kNwriteR,
                                .prio = 0};
  ASSERT_EQ(two_.pair[0]->dma().post(&request, 1), 1);
  const uint64_t before_ns = two_.clock.now_ns();
  const std::vector<pmd::TxDone> sent = two_.settle(0, 1);
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].status, Status::kLinkDown);
  pmd::EntryDone done{};
  for (int i = 0; i < 2000 && two_.pair[0]->dma().reap(&done, 1) == 0; ++i) {
    two_.step();
  }
  EXPECT_EQ(done.cookie, 8u);
  EXPECT_EQ(done.status, Status::kLinkDown);
  EXPECT_LT(two_.clock.now_ns() - before_ns, 2'000'000u) << "without a time-out";
  pmd::RxMessage none;
  EXPECT_EQ(two_.pair[1]->shared().burst(&none, 1), 0);
}

TEST_P(Driver, ATransferUnderWayWhenTheLinkGoesIsNotOk) {
  // The transfer is refused, as there is no window, or not answered: it depends on the model and
  // the moment.
  const Status status = cut_transfer(regs::DmaOp::kNwriteR, 50);
  EXPECT_NE(status, Status::kOk);
  EXPECT_NE(status, Status::kLinkDown) << "which says that nothing was sent";
}

TEST_P(Driver, ATransferThatCannotBeSentAnyMoreEnds) {
  const Status status = cut_transfer(regs::DmaOp::kSwrite, 1);  // no answers: the wire fills up
  EXPECT_NE(status, Status::kOk);
  EXPECT_NE(status, Status::kLinkDown) << "which says that nothing was sent";
}

TEST_P(Driver, AHostThatOnlyReceivesGetsItsMessagesOff) {
  // More messages to one mailbox than it has letters: each waits for the answer to an earlier one,
  // and the host never asks for completions.
  constexpr uint16_t kMany = 100;
  const pmd::DmaMemory to = two_.memory(1, kMany * 256, 0xA5);
  for (uint32_t i = 0; i < kMany; ++i) {
    const pmd::RxBuffer buffer{to.iova + i * 256ull, i};
    ASSERT_EQ(two_.pair[1]->shared().post(&buffer, 1), 1);
  }
  const uint64_t bytes = 0x1122334455667788;
  const pmd::TxMessage message{.data = &bytes,
                               .cookie = 1,
                               .dest_id = kIds[1],
                               .length_bytes = 8,
                               .mbox = 5,
                               .flags = pmd::TxFlags::kInline};
  for (uint32_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(two_.pair[0]->tx().burst(&message, 1), 1);
  }
  uint32_t got = 0;
  for (int i = 0; i < 20'000 && got < kMany; ++i) {
    pmd::RxMessage none;
    ASSERT_EQ(two_.pair[0]->shared().burst(&none, 1), 0);
    pmd::RxMessage messages[8];
    got += two_.pair[1]->shared().burst(messages, 8);
  }
  EXPECT_EQ(got, kMany);
  for (uint32_t i = 0; i < kMany; ++i) {
    EXPECT_EQ(std::memcmp(static_cast<uint8_t*>(to.va) + i * 256ull, &bytes, 8), 0) << i;
  }
  EXPECT_EQ(two_.settle(0, kMany).size(), kMany);
}

TEST_P(Driver, ManyLapsOfAllRings) {
  const pmd::DmaMemory from = two_.memory(0, 4096, 0x42);
  const pmd::DmaMemory to = two_.memory(1, 64 * 256, 0xA5);
  uint64_t sent = 0;
  uint64_t settled = 0;
  uint64_t received = 0;
  uint64_t posted = 0;
  for (int turn = 0; turn < 400'000 && received < 3000; ++turn) {
    for (; posted < received + 64; ++posted) {
      const pmd::RxBuffer buffer{to.iova + posted % 64 * 256, posted};
      ASSERT_EQ(two_.pair[1]->shared().post(&buffer, 1), 1);
    }
    for (; sent < 3000 && sent < settled + 40; ++sent) {
      const pmd::TxMessage message{.iova = from.iova + sent % 64 * 8,
                                   .cookie = sent,
                                   .dest_id = kIds[1],
                                   .length_bytes = 8,
                                   .mbox = static_cast<uint8_t>(sent % 64),
                                   .flags = 0};
      ASSERT_EQ(two_.pair[0]->tx().burst(&message, 1), 1);
    }
    pmd::TxDone done[32];
    settled += two_.pair[0]->tx().reap(done, 32);
    pmd::RxMessage got[32];
    received += two_.pair[1]->shared().burst(got, 32);
  }
  two_.settle(0, 3000 - settled);
  EXPECT_EQ(received, 3000u);
  EXPECT_EQ(two_.pair[0]->tx().stats().messages, 3000u);
  EXPECT_EQ(two_.pair[0]->tx().stats().bad_completions, 0u);
  EXPECT_EQ(two_.pair[1]->shared().stats().bad_completions, 0u);
}

TEST_P(Driver, DoorbellsAndDma) {
  const pmd::DmaMemory near = two_.memory(0, 8192, 0x33);
  const pmd::DmaMemory far = two_.memory(1, 8192, 0);
  const pmd::TxMessage bell{.info = 0xABCD,
                            .cookie = 5,
                            .dest_id = kIds[1],
                            .length_bytes = 0,
                            .mbox = 0,
                            .flags = pmd::TxFlags::kDoorbell};
  ASSERT_EQ(two_.pair[0]->tx().burst(&bell, 1), 1);
  ASSERT_EQ(two_.settle(0, 1).at(0).status, Status::kOk);
  pmd::DoorbellEvent event{};
  for (int i = 0; i < 1000 && two_.pair[1]->doorbells().burst(&event, 1) == 0; ++i) {
    two_.step();
  }
  EXPECT_EQ(event.info, 0xABCD);
  pmd::DmaQueue& dma = two_.pair[0]->dma();
  const auto run = [&](regs::DmaOp op, uint64_t rio, uint32_t length) {
    const pmd::DmaRequest request{rio, near.iova, 9, kIds[1], length, op, 0};
    EXPECT_EQ(dma.post(&request, 1), 1);
    const auto done = two_.reap<pmd::DmaQueue, pmd::EntryDone>(dma, 1);
    EXPECT_EQ(done.size(), 1u);
    return done.empty() ? Status::kFormat : done[0].status;
  };
  EXPECT_EQ(run(regs::DmaOp::kNwriteR, 0x1000, 64), Status::kErrorResponse) << "no window";
  uint32_t window = 0;
  ASSERT_EQ(
      two_.pair[1]->windows().open({.rio_addr = 0x1000,
                                    .size_bytes = 8192,
                                    .iova = far.iova,
                                    .rights = pmd::WindowRights::kRead | pmd::WindowRights::kWrite},
                                   &window),
      0);
  EXPECT_EQ(run(regs::DmaOp::kNwriteR, 0x1000, 8192), Status::kOk);
  two_.step(2000);
  EXPECT_EQ(std::memcmp(near.va, far.va, 8192), 0);
  std::memset(near.va, 0, 8192);
  EXPECT_EQ(run(regs::DmaOp::kNread, 0x1001, 5000), Status::kOk);
  two_.step(2000);
  EXPECT_EQ(std::memcmp(near.va, static_cast<uint8_t*>(far.va) + 1, 5000), 0);
}

TEST_P(Driver, StopWithTrafficReturnsAllBuffers) {
  const pmd::DmaMemory from = two_.memory(0, 4096, 0x42);
  const pmd::DmaMemory to = two_.memory(1, 16 * 4096, 0xA5);
  for (uint64_t i = 0; i < 16; ++i) {
    const pmd::RxBuffer buffer{to.iova + i * 4096, i};
    ASSERT_EQ(two_.pair[1]->shared().post(&buffer, 1), 1);
  }
  for (uint64_t i = 0; i < 40; ++i) {
    const pmd::TxMessage message{.iova = from.iova,
                                 .cookie = i,
                                 .dest_id = kIds[1],
                                 .length_bytes = 3000,
                                 .mbox = static_cast<uint8_t>(i % 4),
                                 .flags = 0};
    ASSERT_EQ(two_.pair[0]->tx().burst(&message, 1), 1);
  }
  two_.step(5);
  ASSERT_EQ(two_.pair[1]->stop(), 0);
  ASSERT_EQ(two_.pair[0]->stop(), 0);
  EXPECT_EQ(two_.settle(0, 40).size(), 40u);
  uint32_t back = 0;
  uint32_t whole = 0;
  pmd::RxMessage got[32];
  for (uint16_t n = two_.pair[1]->shared().burst(got, 32), i = 0; i < n; ++i) {
    ++back;
    whole += got[i].status == Status::kOk ? 1 : 0;
  }
  EXPECT_EQ(back, 16u);
  EXPECT_EQ(whole, two_.pair[1]->shared().stats().messages);
  std::memset(to.va, 0xA5, to.len_bytes);
  two_.step(5000);
  const auto* bytes = static_cast<const uint8_t*>(to.va);
  EXPECT_EQ(std::count(bytes, bytes + to.len_bytes, 0xA5), static_cast<ptrdiff_t>(to.len_bytes));
}

TEST_P(Driver, ThePeerGoesAndAnotherComes) {
  const pmd::DmaMemory from = two_.memory(0, 4096, 0x42);
  const auto send = [&](uint64_t cookie) {
    const pmd::TxMessage message{.iova = from.iova,
                                 .cookie = cookie,
                                 .dest_id = kIds[1],
                                 .length_bytes = 64,
                                 .mbox = 0,
                                 .flags = 0};
    EXPECT_EQ(two_.pair[0]->tx().burst(&message, 1), 1);
  };
  for (uint64_t i = 0; i < 3; ++i) {
    send(i);
  }
  two_.close(1);
  // Each message fails, for lack of a link or because its fate is in doubt; none hangs.
  for (const pmd::TxDone& done : two_.settle(0, 3)) {
    EXPECT_NE(done.status, Status::kOk);
  }
  two_.step(30'000);
  two_.open(1, config(), 0);
  two_.step(1000);
  const pmd::DmaMemory to = two_.memory(1, 4096, 0xA5);
  const pmd::RxBuffer buffer{to.iova, 1};
  ASSERT_EQ(two_.pair[1]->shared().post(&buffer, 1), 1);
  send(9);
  const auto done = two_.settle(0, 1);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].status, Status::kOk);
  pmd::RxMessage got;
  two_.step(100);
  ASSERT_EQ(two_.pair[1]->shared().burst(&got, 1), 1);
  EXPECT_EQ(got.length_bytes, 64);
}

TEST_P(Driver, MemoryUnmappedBehindTheCardsBackIsNotTouched) {
  // The memory is posted and then unmapped, which is the host's mistake. The card must notice even
  // if the other card, stepped by the same thread, would copy the message directly.
  const pmd::DmaMemory from = two_.memory(0, 4096, 0x42);
  const pmd::DmaMemory first = two_.memory(1, 4096, 0xA5);
  const pmd::RxBuffer warm{first.iova, 1};
  ASSERT_EQ(two_.pair[1]->shared().post(&warm, 1), 1);
  const pmd::TxMessage message{.iova = from.iova,
                               .cookie = 1,
                               .dest_id = kIds[1],
                               .length_bytes = 64,
                               .mbox = 0,
                               .flags = 0};
  ASSERT_EQ(two_.pair[0]->tx().burst(&message, 1), 1);
  ASSERT_EQ(two_.settle(0, 1).at(0).status, Status::kOk);
  two_.step(100);
  alignas(4096) static uint8_t page[4096];
  std::memset(page, 0xA5, sizeof(page));
  std::vector<pmd::IovaRun> runs;
  ASSERT_EQ(two_.bus[1]->dma_map(page, sizeof(page), &runs), 0);
  for (int i = 0; i < 2; ++i) {  // the first message opens the card's window onto the page
    const pmd::RxBuffer buffer{runs[0].iova, 2};
    ASSERT_EQ(two_.pair[1]->shared().post(&buffer, 1), 1);
    if (i == 1) {
      ASSERT_EQ(two_.bus[1]->dma_unmap(page, sizeof(page)), 0);
      std::memset(page, 0xA5, sizeof(page));
    }
    ASSERT_EQ(two_.pair[0]->tx().burst(&message, 1), 1);
    two_.settle(0, 1);
    two_.step(100);
  }
  EXPECT_EQ(std::count(page, page + sizeof(page), 0xA5), 4096);
  EXPECT_GT(two_.bus[1]->card().statistics().refused, 0u);
}

/// A card that is plugged in later sees the link at once, and may send before the other one sees
/// it.
TEST_P(Driver, AMessageThatComesBeforeTheLinkIsSeenIsTaken) {
  two_.close(1);
  two_.step(600);
  ASSERT_FALSE(two_.card[0]->link().up);
  two_.open(1, config(), GetParam().start_index);
  const pmd::DmaMemory to = two_.memory(0, 4096, 0xA5);
  EXPECT_EQ(send_to_first(to), Status::kOk);
  EXPECT_EQ(*static_cast<const uint8_t*>(to.va), 0x42);
  EXPECT_TRUE(two_.card[0]->link().up);
}

TEST_P(Driver, AMessageToALinkThatIsHeldDownIsLost) {
  two_.bus[0]->card().set_link(false);
  two_.step(600);
  const pmd::DmaMemory to = two_.memory(0, 4096, 0xA5);
  EXPECT_EQ(send_to_first(to), Status::kResponseTimeout);
  EXPECT_EQ(*static_cast<const uint8_t*>(to.va), 0xA5);
  EXPECT_FALSE(two_.card[0]->link().up);
}

}  // namespace
}  // namespace rio::test
