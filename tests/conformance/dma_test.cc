// The DMA queue as initiator, and inbound windows as target. regs: dma_desc, WINDOW; RIO Part 1 §3
#include "tests/conformance/card_test.hpp"

#include <algorithm>

namespace rio::test {
namespace {

using regs::DmaOp;
using regs::Status;
using C = regs::dma_desc::Control;
using W = regs::window::Control;

class Dma : public CardTest {
 protected:
  TestRing& dma(RingConfig config = {}) { return start(dma_, regs::Ring::kDma, config); }
  void post(DmaOp op, uint32_t length, uint64_t rio_addr, uint64_t bus_addr, uint32_t cookie = 1) {
    dma_->put(regs::DmaDesc{C::op.put(static_cast<uint32_t>(op)), kRemoteId, length, cookie,
                            rio_addr, bus_addr});
    dma_->post();
  }
  void expect_one(uint32_t cookie, Status status, uint32_t bytes) {
    const auto done = dma_->take_all<regs::EntryCpl>();
    ASSERT_EQ(done.size(), 1u) << "cookie " << cookie;
    EXPECT_EQ(done[0].cookie, cookie);
    EXPECT_EQ(code_of(done[0].status), status) << "cookie " << cookie;
    EXPECT_EQ(done[0].bytes, bytes) << "cookie " << cookie;
  }
  /// Plays the target over `remote`, whose first byte has RapidIO address `base`, until all is
  /// done.
  void serve(std::vector<uint8_t>* remote, uint64_t base) {
    for (std::vector<Packet> all = sent(); !all.empty(); all = sent()) {
      for (const Packet& p : all) {
        ASSERT_EQ(p.kind, Packet::kRequest);
        const auto at = static_cast<ptrdiff_t>(p.address - base);
        ASSERT_LE(static_cast<size_t>(at) + p.length, remote->size());
        if (card().segmented()) {
          EXPECT_LE(p.length, 256u);
          EXPECT_TRUE((p.address & 7) == 0 || (p.address & 7) + p.length <= 8);
        }
        const auto op = static_cast<DmaOp>(p.op);
        if (op == DmaOp::kNread) {
          respond(p, Answer::kDone, {remote->begin() + at, remote->begin() + at + p.length});
          continue;
        }
        std::copy_n(p.data.begin(), p.length, remote->begin() + at);
        if (op == DmaOp::kNwriteR) {
          respond(p, Answer::kDone);
        }
      }
    }
  }
  std::unique_ptr<TestRing> dma_;
};
RIO_CONFORMANCE(Dma);

// B8
TEST_P(Dma, WritesAndReadsOfAllShapesWork) {
  dma({.log2 = 5});
  std::vector<uint8_t> remote(70000);
  const Buffer buffer(card(), 70000);
  for (const uint32_t length :
       {1u, 7u, 8u, 9u, 24u, 255u, 256u, 257u, 1000u, 4096u, 4097u, 65536u}) {
    for (const uint64_t offset : {0u, 1u, 5u, 8u, 250u}) {
      for (const DmaOp op : {DmaOp::kNwrite, DmaOp::kNwriteR, DmaOp::kNread}) {
        const std::vector<uint8_t> bytes = pattern(length, length + static_cast<uint32_t>(offset));
        std::memset(buffer.va(), Buffer::kRed, buffer.len_bytes());
        std::fill(remote.begin(), remote.end(), 0);
        const uint64_t base = 0x1234'5670'0000;
        if (op == DmaOp::kNread) {
          std::copy(bytes.begin(), bytes.end(), remote.begin() + static_cast<ptrdiff_t>(offset));
        } else {
          buffer.fill(bytes);
        }
        post(op, length, base + offset, buffer.iova(), length);
        serve(&remote, base);
        expect_one(length, Status::kOk, length);
        if (op == DmaOp::kNread) {
          ASSERT_EQ(buffer.bytes(length), bytes);
          ASSERT_EQ(buffer.touched_outside(length), 0u);
        } else {
          ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(),
                                 remote.begin() + static_cast<ptrdiff_t>(offset)));
          ASSERT_EQ(std::count(remote.begin(), remote.end(), 0),
                    static_cast<ptrdiff_t>(remote.size() - length) +
                        std::count(bytes.begin(), bytes.end(), 0));
        }
      }
    }
  }
}

TEST_P(Dma, StreamingWritesHaveNoResponse) {
  dma();
  std::vector<uint8_t> remote(4096);
  const Buffer buffer(card(), 4096);
  buffer.fill(pattern(4096));
  post(DmaOp::kSwrite, 1024, 0x1000, buffer.iova(), 1);
  serve(&remote, 0x1000);
  expect_one(1, Status::kOk, 1024);
  EXPECT_TRUE(std::equal(remote.begin(), remote.begin() + 1024, buffer.va()));
  post(DmaOp::kSwrite, 12, 0x1000, buffer.iova(), 2);
  expect_one(2, Status::kBadDescriptor, 0);
  post(DmaOp::kSwrite, 8, 0x1004, buffer.iova(), 3);
  expect_one(3, Status::kBadDescriptor, 0);
  EXPECT_TRUE(sent().empty());
}

TEST_P(Dma, AtomicsReturnTheOldValue) {
  dma();
  const Buffer buffer(card(), 64);
  for (uint32_t op = 4; op <= 9; ++op) {
    buffer.fill({1, 2, 3, 4, 5, 6, 7, 8});
    post(static_cast<DmaOp>(op), 4, 0x100, buffer.iova(), op);
    const std::vector<Packet> all = sent();
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].length, 4u);
    if (op == 8) {
      EXPECT_TRUE(std::equal(all[0].data.begin(), all[0].data.begin() + 4, "\1\2\3\4"));
    } else if (op == 9) {
      EXPECT_TRUE(std::equal(all[0].data.begin(), all[0].data.begin() + 8, "\1\2\3\4\5\6\7\10"));
    }
    respond(all[0], Answer::kDone, {9, 9, 9, 9});
    expect_one(op, Status::kOk, 4);
    EXPECT_EQ(buffer.bytes(5), (std::vector<uint8_t>{9, 9, 9, 9, 5}));
  }
  post(DmaOp::kAtomicInc, 3, 0x100, buffer.iova(), 20);
  expect_one(20, Status::kBadDescriptor, 0);
  post(DmaOp::kAtomicInc, 4, 0x102, buffer.iova(), 21);
  expect_one(21, Status::kBadDescriptor, 0);
}

TEST_P(Dma, BadDescriptorsAreRefused) {
  dma();
  const Buffer b(card(), 64);
  post(DmaOp::kNread, 0, 0, b.iova(), 1);
  expect_one(1, Status::kBadDescriptor, 0);
  post(DmaOp::kNread, card().read32(regs::id::cap_dma_bytes()) + 1, 0, b.iova(), 2);
  expect_one(2, Status::kBadDescriptor, 0);
  post(static_cast<DmaOp>(10), 4, 0, b.iova(), 3);
  expect_one(3, Status::kBadDescriptor, 0);
  dma_->put(regs::DmaDesc{C::prio.put(3), kRemoteId, 8, 4, 0, b.iova()});
  dma_->post();
  expect_one(4, Status::kBadDescriptor, 0);
  EXPECT_TRUE(sent().empty());
}

TEST_P(Dma, UnmappedMemoryIsReportedWherePossible) {
  dma();
  const Buffer b(card(), 64);
  card().unmap(b.memory());
  const uint64_t before = card().refused_accesses();
  post(DmaOp::kNwriteR, 64, 0, b.iova(), 1);
  EXPECT_TRUE(sent().empty());
  expect_one(1, Status::kHostReadFailed, 0);
  EXPECT_GT(card().refused_accesses(), before);
  // A read lands by posted writes: the card cannot notice.
  post(DmaOp::kNread, 64, 0, b.iova(), 2);
  std::vector<uint8_t> remote(64);
  serve(&remote, 0);
  EXPECT_EQ(dma_->take_all<regs::EntryCpl>().size(), 1u);
  EXPECT_EQ(b.touched_outside(0), 0u);
}

TEST_P(Dma, MoreRetriesThanACompletionCounts) {
  constexpr uint32_t kLimit = 300;
  reset(kLimit);
  dma();
  const Buffer b(card(), 64);
  post(DmaOp::kNwriteR, 64, 0, b.iova(), 1);
  for (uint32_t i = 0; i < kLimit; ++i) {
    respond(sent().at(0), Answer::kRetry);
    card().advance_us(10);
  }
  expect_one(1, Status::kRetryExpired, 0);
}

TEST_P(Dma, AnswersBecomeStatuses) {
  reset(2);
  dma();
  const Buffer b(card(), 64);
  post(DmaOp::kNread, 64, 0, b.iova(), 1);
  respond(sent().at(0), Answer::kError);
  expect_one(1, Status::kErrorResponse, 0);
  post(DmaOp::kNwriteR, 64, 0, b.iova(), 2);
  for (int i = 0; i < 2; ++i) {
    respond(sent().at(0), Answer::kRetry);
    card().advance_us(10);
  }
  expect_one(2, Status::kRetryExpired, 0);
  post(DmaOp::kNread, 64, 0, b.iova(), 3);
  const std::vector<Packet> late = sent();
  card().advance_us(kResponseUs * 5 / 4);
  expect_one(3, Status::kResponseTimeout, 0);
  respond(late.at(0), Answer::kDone, std::vector<uint8_t>(64, 1));
  card().run();
  EXPECT_EQ(b.touched_outside(0), 0u) << "a late response lands nowhere";
  post(DmaOp::kNread, 64, 0, b.iova(), 4);
  const std::vector<Packet> next = sent();
  EXPECT_NE(next.at(0).tid, late[0].tid);
  respond(next[0], Answer::kDone, std::vector<uint8_t>(56, 1));  // another length than requested
  expect_one(4, Status::kErrorResponse, 0);
  EXPECT_EQ(b.touched_outside(0), 0u);
}

// R14
TEST_P(Dma, StopWaitsForRequestsInFlight) {
  dma();
  const Buffer b(card(), 4096);
  post(DmaOp::kNread, 8, 0, b.iova(), 1);
  const std::vector<Packet> flying = sent();
  ASSERT_EQ(flying.size(), 1u);
  dma_->request_stop();
  card().run();
  EXPECT_EQ(dma_->status().state, regs::RingState::kStopping);
  respond(flying[0], Answer::kDone, std::vector<uint8_t>(8, 1));
  card().run();
  EXPECT_EQ(dma_->status().state, regs::RingState::kStopped);
  expect_one(1, Status::kOk, 8);
}

TEST_P(Dma, StopWithADeadTargetEndsWithTheTimeOut) {
  dma();
  const Buffer b(card(), 70000);
  post(DmaOp::kNread, 65536, 0, b.iova(), 1);
  post(DmaOp::kNread, 8, 0, b.iova(), 2);
  EXPECT_FALSE(sent().empty());
  dma_->request_stop();
  card().advance_us(kResponseUs * 5 / 4);
  EXPECT_EQ(dma_->status().state, regs::RingState::kStopped);
  EXPECT_EQ(dma_->take_all<regs::EntryCpl>().size(), 2u);
}

class Windows : public CardTest {
 protected:
  static constexpr uint64_t kRio = 0x4000'1000;

  std::vector<uint8_t> ask(const Packet& packet) {
    EXPECT_TRUE(card().send(packet));
    const std::vector<Packet> all = sent();
    EXPECT_EQ(all.size(), 1u);
    if (all.empty()) {
      return {};
    }
    EXPECT_EQ(all[0].tid, packet.tid);
    EXPECT_EQ(all[0].answer, Answer::kDone);
    return all[0].data;
  }
  static constexpr uint32_t kAll = 7u << 17;
};
RIO_CONFORMANCE(Windows);

// M1
TEST_P(Windows, AllowEachByteInsideAndNoneOutside) {
  const Buffer buffer(card(), 4096);
  open_window(0, buffer, kRio, 512, kAll);
  buffer.fill(pattern(512));
  for (const uint32_t length : {1u, 8u, 256u}) {
    for (const uint64_t at : {0ull, 1ull, 512ull - length}) {
      EXPECT_EQ(ask(request(DmaOp::kNread, kRio + at, length)),
                std::vector<uint8_t>(buffer.va() + at, buffer.va() + at + length));
    }
    for (const uint64_t at : {~0ull, 512ull - length + 1, 512ull, 1ull << 40}) {
      EXPECT_EQ(exchange(request(DmaOp::kNread, kRio + at, length)), Answer::kError)
          << length << " at " << at;
      EXPECT_EQ(exchange(request(DmaOp::kNwriteR, kRio + at, length, pattern(length))),
                Answer::kError);
    }
  }
  EXPECT_EQ(buffer.touched_outside(512), 0u);
}

TEST_P(Windows, TakeWritesWithAndWithoutResponse) {
  const Buffer buffer(card(), 4096);
  open_window(0, buffer, kRio, 4096, kAll);
  EXPECT_EQ(exchange(request(DmaOp::kNwriteR, kRio + 100, 7, pattern(7, 1))), Answer::kDone);
  EXPECT_EQ(exchange(request(DmaOp::kNwrite, kRio + 200, 256, pattern(256, 2))), std::nullopt);
  EXPECT_EQ(exchange(request(DmaOp::kSwrite, kRio + 800, 64, pattern(64, 3))), std::nullopt);
  EXPECT_TRUE(std::equal(buffer.va() + 100, buffer.va() + 107, pattern(7, 1).begin()));
  EXPECT_TRUE(std::equal(buffer.va() + 200, buffer.va() + 456, pattern(256, 2).begin()));
  EXPECT_TRUE(std::equal(buffer.va() + 800, buffer.va() + 864, pattern(64, 3).begin()));
  EXPECT_EQ(buffer.va()[99], Buffer::kRed);
  EXPECT_EQ(buffer.va()[107], Buffer::kRed);
}

// M1
TEST_P(Windows, HaveSeparateRights) {
  const Buffer buffer(card(), 4096);
  const Packet read = request(DmaOp::kNread, kRio, 8);
  const Packet write = request(DmaOp::kNwriteR, kRio, 8, pattern(8));
  const Packet atomic = request(DmaOp::kAtomicInc, kRio, 4);
  for (const uint32_t rights : {0u, W::read.mask(), W::write.mask(), W::atomic.mask()}) {
    open_window(0, buffer, kRio, 64, rights);
    EXPECT_EQ(exchange(read) == Answer::kDone, rights == W::read.mask());
    EXPECT_EQ(exchange(write) == Answer::kDone, rights == W::write.mask());
    EXPECT_EQ(exchange(atomic) == Answer::kDone, rights == W::atomic.mask());
  }
  card().write32(regs::window::control(0, 0), W::gen.put(99) | kAll);  // not enabled
  card().run();
  EXPECT_EQ(exchange(read), Answer::kError);
}

// B6
TEST_P(Windows, StayClosedWithAReservedWordThatIsNotZero) {
  const Buffer buffer(card(), 4096);
  open_window(0, buffer, kRio, 64, kAll);
  card().write32(regs::window::pasid(0, 0), 1u << 31);
  card().write32(regs::window::control(0, 0), W::gen.put(99) | W::enable.put(1) | kAll);
  card().run();
  EXPECT_EQ(card().read32(regs::window::status(0, 0)), W::gen.put(99));
  EXPECT_EQ(exchange(request(DmaOp::kNread, kRio, 8)), Answer::kError);
  card().write32(regs::window::pasid(0, 0), 0);
  open_window(0, buffer, kRio, 64, kAll);
}

// M1, M2
TEST_P(Windows, CheckSourcesAndKeys) {
  const Buffer buffer(card(), 4096);
  Packet read = request(DmaOp::kNread, kRio, 8);
  open_window(0, buffer, kRio, 64, kAll, kRemoteId, 0xFFFF);
  EXPECT_EQ(exchange(read), Answer::kDone);
  read.source = kRemoteId ^ 1;
  EXPECT_EQ(exchange(read), Answer::kError);
  open_window(0, buffer, kRio, 64, kAll, kRemoteId, 0xFF00);
  EXPECT_EQ(exchange(read), Answer::kDone);
  open_window(0, buffer, kRio, 64, kAll, 0, 0, 0xBEEF);
  EXPECT_EQ(exchange(read), Answer::kError);
  read.address = kRio | 0xBEEFull << 48;
  EXPECT_EQ(exchange(read), Answer::kDone);
  read.address = kRio | 0xBEEEull << 48;
  EXPECT_EQ(exchange(read), Answer::kError);
}

TEST_P(Windows, TheFirstOfEightThatAllowsAnAccessServesIt) {
  std::vector<Buffer> buffers;
  for (uint32_t i = 0; i < 8; ++i) {
    buffers.emplace_back(card(), 64);
    std::memset(buffers[i].va(), static_cast<int>(i), 64);
    open_window(i, buffers[i], i == 7 ? kRio : kRio + 64ull * i, 64, kAll);
  }
  for (uint32_t i = 0; i < 7; ++i) {
    EXPECT_EQ(ask(request(DmaOp::kNread, kRio + 64ull * i, 8)),
              std::vector<uint8_t>(8, static_cast<uint8_t>(i)));
  }
}

// M3
TEST_P(Windows, AtomicsChangeTheirWordOnly) {
  const Buffer buffer(card(), 64);
  open_window(0, buffer, kRio, 64, kAll);
  const auto word = [&] {
    uint32_t value = 0;
    std::memcpy(&value, buffer.va() + 8, 4);
    return value;
  };
  const auto run = [&](DmaOp op, std::vector<uint8_t> data = {}) {
    const std::vector<uint8_t> old = ask(request(op, kRio + 8, 4, std::move(data)));
    uint32_t value = 0;
    EXPECT_EQ(old.size(), 4u);
    std::memcpy(&value, old.data(), std::min<size_t>(4, old.size()));
    return value;
  };
  std::memset(buffer.va(), 0, 64);
  EXPECT_EQ(run(DmaOp::kAtomicInc), 0u);
  EXPECT_EQ(word(), 1u);
  EXPECT_EQ(run(DmaOp::kAtomicDec), 1u);
  EXPECT_EQ(run(DmaOp::kAtomicDec), 0u);
  EXPECT_EQ(word(), ~0u);
  EXPECT_EQ(run(DmaOp::kAtomicClear), ~0u);
  EXPECT_EQ(run(DmaOp::kAtomicSwap, {4, 3, 2, 1}), 0u);
  EXPECT_EQ(word(), 0x01020304u);
  EXPECT_EQ(run(DmaOp::kAtomicCswap, {9, 9, 9, 9, 1, 1, 1, 1}), 0x01020304u);
  EXPECT_EQ(word(), 0x01020304u);
  EXPECT_EQ(run(DmaOp::kAtomicCswap, {4, 3, 2, 1, 7, 0, 0, 0}), 0x01020304u);
  EXPECT_EQ(word(), 7u);
  EXPECT_EQ(run(DmaOp::kAtomicSet), 7u);
  EXPECT_EQ(word(), ~0u);
  EXPECT_EQ(buffer.va()[12], 0) << "and nothing beside it";
  EXPECT_EQ(exchange(request(DmaOp::kAtomicInc, kRio + 8, 3)), Answer::kError);
  EXPECT_EQ(exchange(request(DmaOp::kAtomicInc, kRio + 10, 4)), Answer::kError) << "misaligned";
}

TEST_P(Windows, UnmappedMemoryBehindAWindowIsAnError) {
  const Buffer buffer(card(), 64);
  open_window(0, buffer, kRio, 64, kAll);
  card().unmap(buffer.memory());
  EXPECT_EQ(exchange(request(DmaOp::kNread, kRio, 8)), Answer::kError);
  EXPECT_EQ(exchange(request(DmaOp::kNwriteR, kRio, 8, pattern(8))), Answer::kDone) << "posted";
  card().run();
  EXPECT_GE(card().refused_accesses(), 2u);
}

// M1, M3
TEST_P(Windows, ViolationsAreEventsAndBadRequestsAreErrors) {
  TestRing& told = events();
  EXPECT_EQ(exchange(request(DmaOp::kNread, 0x55, 8)), Answer::kError);
  const auto all = told.take_all<regs::EventCpl>();
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].type, 5u);
  EXPECT_EQ(all[0].source, kRemoteId);
  EXPECT_EQ(all[0].info, static_cast<uint32_t>(DmaOp::kNread));
  EXPECT_EQ(all[0].data0, 0x55u);
  EXPECT_EQ(exchange(request(static_cast<DmaOp>(200), 0, 8)), Answer::kError);
  Packet stranger = request(DmaOp::kNread, 0, 8);
  stranger.dest = 0x4444;
  EXPECT_EQ(exchange(stranger), Answer::kError);
}

}  // namespace
}  // namespace rio::test
