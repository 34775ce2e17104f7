// Memory of peers through the card's windows. The peer is a test program on lib/tag with a card of
// its own, so it sees which accesses use a window and which are messages.
#include "tests/unit/lib/ofi/windows_fixture.hpp"

namespace rio::test {
namespace {

constexpr uint8_t kBoth = pmd::WindowRights::kRead | pmd::WindowRights::kWrite;

TEST_F(OfiWindows, TheCardChecksRangeRightsKeyAndSource) {
  std::vector<uint8_t> memory = pattern(1, 10000);
  const std::vector<uint8_t> before = memory;
  const Held<fid_mr> region = add(memory.data() + 3, 5000, kAll, kKey);
  std::vector<uint8_t> other(20000, 0xAB);
  const Held<fid_mr> reads = add(other.data() + 8192, 10000, FI_REMOTE_READ, 2);
  const WindowReply window = window_of(peer_, kKey);
  ASSERT_TRUE(ofi::is_window(window));
  EXPECT_EQ(window.first, 0u);
  EXPECT_EQ(window.bytes, 5000u);
  EXPECT_EQ(window.rights, kAll);
  EXPECT_EQ(move(peer_, DmaOp::kNread, window.rio_addr, 5000), Status::kOk);
  EXPECT_TRUE(std::equal(peer_.bytes, peer_.bytes + 5000, memory.begin() + 3));
  // Range.
  EXPECT_EQ(move(peer_, DmaOp::kNwriteR, window.rio_addr + 1, 5000), Status::kErrorResponse);
  EXPECT_EQ(move(peer_, DmaOp::kNwriteR, window.rio_addr - 1, 2), Status::kErrorResponse);
  // Key.
  EXPECT_EQ(move(peer_, DmaOp::kNread, window.rio_addr + kKeyStep, 8), Status::kErrorResponse);
  // Rights.
  const WindowReply readable = window_of(peer_, 2);
  EXPECT_EQ(readable.rights, FI_REMOTE_READ);
  EXPECT_EQ(move(peer_, DmaOp::kNread, readable.rio_addr, 10000), Status::kOk);
  EXPECT_EQ(move(peer_, DmaOp::kNwriteR, readable.rio_addr, 8), Status::kErrorResponse);
  // Source: a peer that has not asked is refused, even with the right key; after it has asked, both
  // are let in.
  other_ = std::make_unique<RawPeer>();
  EXPECT_EQ(move(*other_, DmaOp::kNread, window.rio_addr, 8), Status::kErrorResponse);
  const WindowReply same = window_of(*other_, kKey);
  EXPECT_EQ(same.rio_addr, window.rio_addr);
  EXPECT_EQ(move(*other_, DmaOp::kNread, window.rio_addr, 8), Status::kOk);
  EXPECT_EQ(move(peer_, DmaOp::kNread, window.rio_addr, 8), Status::kOk);
  // A write beyond the end was refused as a whole, or written up to the end.
  EXPECT_EQ(memory[2], before[2]);
  EXPECT_EQ(memory[5003], before[5003]);
}

TEST_F(OfiWindows, WritesArriveInTheOwnersMemory) {
  std::vector<uint8_t> memory(10000, 0xEE);
  const Held<fid_mr> region = add(memory.data() + 7, 9000, kAll, kKey);
  const WindowReply window = window_of(peer_, kKey);
  const std::vector<uint8_t> bytes = pattern(2, 4321);
  std::copy(bytes.begin(), bytes.end(), peer_.bytes);
  EXPECT_EQ(move(peer_, DmaOp::kNwriteR, window.rio_addr + 100, bytes.size()), Status::kOk);
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), memory.begin() + 107));
  EXPECT_EQ(memory[106], 0xEE);
  EXPECT_EQ(memory[107 + bytes.size()], 0xEE);
}

TEST_F(OfiWindows, AClosedRegionIsOutOfReach) {
  std::vector<uint8_t> memory(4096, 0xEE);
  Held<fid_mr> region = add(memory.data(), memory.size(), kAll, kKey);
  const WindowReply window = window_of(peer_, kKey);
  region.reset();
  EXPECT_EQ(move(peer_, DmaOp::kNwriteR, window.rio_addr, 8), Status::kErrorResponse);
  EXPECT_EQ(memory, std::vector<uint8_t>(4096, 0xEE));
  WindowReply none;
  EXPECT_EQ(ask(peer_, kKey, &none), FI_EACCES);
  // The next region with this key has another address.
  region = add(memory.data(), memory.size(), kAll, kKey);
  EXPECT_NE(window_of(peer_, kKey).rio_addr, window.rio_addr);
  EXPECT_EQ(move(peer_, DmaOp::kNwriteR, window.rio_addr, 8), Status::kErrorResponse);
}

// A counted region is accessed by messages, since the card does not report accesses.
TEST_F(OfiWindows, ACountedRegionHasNoWindow) {
  std::vector<uint8_t> memory(4096, 0xEE);
  fi_cntr_attr attr{};
  fid_cntr* made = nullptr;
  ASSERT_EQ(fi_cntr_open(node_.domain(), &attr, &made, nullptr), 0);
  const Held<fid_cntr> counter(made);
  const Held<fid_mr> region = add(memory.data(), memory.size(), kAll, kKey);
  const WindowReply window = window_of(peer_, kKey);
  EXPECT_TRUE(ofi::is_window(window));
  ASSERT_EQ(fi_mr_bind(region.get(), &made->fid, FI_REMOTE_WRITE), 0);
  EXPECT_EQ(move(peer_, DmaOp::kNwriteR, window.rio_addr, 8), Status::kErrorResponse);
  EXPECT_EQ(window_of(peer_, kKey).rio_addr, 0u);
}

TEST_F(OfiWindows, TheCardLimitsTheWindows) {
  std::vector<uint8_t> memory(64, 0xEE);
  std::vector<Held<fid_mr>> regions;
  for (uint64_t key = 0; key <= regs::kWindowsPerQp; ++key) {
    regions.push_back(add(memory.data(), memory.size(), kAll, key));
    EXPECT_EQ(ofi::is_window(window_of(peer_, key)), key < regs::kWindowsPerQp) << key;
  }
  regions[2].reset();  // frees its place
  EXPECT_TRUE(ofi::is_window(window_of(peer_, regs::kWindowsPerQp)));
}

// The peer answers no message meanwhile.
TEST_F(OfiWindows, ReadsAndWritesNeedNoMessage) {
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  fid_ep* const ep = node_.ep();
  for (const size_t size : {1, 8, 1000, 1024, 1025, 40000}) {
    SCOPED_TRACE(size);
    const std::vector<uint8_t> bytes = pattern(size, size);
    std::memset(peer_.bytes, 0xEE, RawPeer::kBytes);
    ASSERT_EQ(fi_write(ep, bytes.data(), size, nullptr, to, 17, kKey, nullptr), 0);
    expect_done();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), peer_.bytes + 17));
    EXPECT_EQ(peer_.bytes[16], 0xEE);
    EXPECT_EQ(peer_.bytes[17 + size], 0xEE);
    std::vector<uint8_t> back(size + 1, 0xDD);
    ASSERT_EQ(fi_read(ep, back.data(), size, nullptr, to, 17, kKey, nullptr), 0);
    expect_done();
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), back.begin()));
    EXPECT_EQ(back[size], 0xDD);
  }
  // In pieces.
  std::vector<uint8_t> bytes = pattern(3, 600);
  const iovec pieces[] = {{bytes.data(), 100}, {bytes.data() + 100, 500}};
  ASSERT_EQ(fi_writev(ep, pieces, nullptr, 2, to, 0, kKey, nullptr), 0);
  expect_done();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), peer_.bytes));
  const std::vector<uint8_t> copy = bytes;
  std::fill(bytes.begin(), bytes.end(), 0);
  ASSERT_EQ(fi_readv(ep, pieces, nullptr, 2, to, 0, kKey, nullptr), 0);
  expect_done();
  EXPECT_EQ(bytes, copy);
  // Injected: the bytes may change at once.
  uint64_t value = 42;
  ASSERT_EQ(fi_inject_write(ep, &value, sizeof(value), to, 0, kKey), 0);
  value = 0;
  EXPECT_TRUE(until([&] { return peer_.bytes[0] == 42; }));
}

// Each read takes the answer to the one before, so that fi_cq_read() mostly finds an entry at once.
TEST_F(OfiWindows, AUserWhoseReadsHaveEndedServesItsPeers) {
  constexpr uint32_t kReadsMax = 1024;
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  std::array<uint8_t, 8> back{};
  const auto read = [&] {
    EXPECT_EQ(fi_read(node_.ep(), back.data(), back.size(), nullptr, to, 0, kKey, nullptr), 0);
    for (uint32_t i = 0; i < 4; ++i) {
      peer_.progress();
    }
  };
  AskHeader header = {};
  header.verb = Verb::kWindow;
  header.id = 5;
  static WindowReply window;  // these outlive the peer, which may have them if the test fails
  static tag::RecvRequest reply;
  static tag::SendRequest sent;
  const tag::Pattern answer = {ofi::reply_bits(5), 0, owner_replies()};
  ASSERT_EQ(peer_.replies().receive(answer, &window, sizeof(window), reply), 0);
  ASSERT_GE(peer_.remote().send(owner(), ofi::kAskBits, &header, sizeof(header), sent), 0);
  read();
  uint32_t reads = 0;
  uint32_t ended = 0;
  for (; reads < kReadsMax && !peer_.replies().test(reply); ++reads) {
    read();
    fi_cq_tagged_entry entry{};
    ended += fi_cq_read(node_.tx(), &entry, 1) == 1 ? 1 : 0;
  }
  EXPECT_LT(reads, kReadsMax);
  EXPECT_GT(ended, reads / 2) << "each call made progress, so that this test shows nothing";
}

// The user's memory is in pieces for the card, since it shares pages with memory registered before.
TEST_F(OfiWindows, MemoryInPiecesIsReadAndWritten) {
  constexpr size_t kPage = 4096;
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  std::vector<uint8_t> bytes = pattern(8, 10 * kPage);
  const auto page = reinterpret_cast<uintptr_t>(bytes.data()) / kPage * kPage + kPage;
  auto* const at = reinterpret_cast<uint8_t*>(page);
  const auto write = [&](size_t offset, size_t size) {
    ASSERT_EQ(fi_write(node_.ep(), at + offset, size, nullptr, to, offset, kKey, nullptr), 0);
    expect_done();
    EXPECT_TRUE(std::equal(at + offset, at + offset + size, peer_.bytes + offset));
  };
  write(2 * kPage, 2 * kPage);
  write(5 * kPage, kPage);
  write(7, 8 * kPage);  // around both pieces
  std::vector<uint8_t> there = pattern(9, 8 * kPage);
  std::copy(there.begin(), there.end(), peer_.bytes);
  ASSERT_EQ(fi_read(node_.ep(), at + 7, there.size(), nullptr, to, 0, kKey, nullptr), 0);
  expect_done();
  EXPECT_TRUE(std::equal(there.begin(), there.end(), at + 7));
}

// A peer that does not run is not waited for, and nothing is written when it runs again.
TEST_F(OfiWindows, AnEndpointClosesWhileThePeerIsStopped) {
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  std::vector<uint8_t> back(2000, 0xDD);
  ASSERT_EQ(fi_read(node_.ep(), back.data(), back.size(), nullptr, to, 0, kKey, nullptr), 0);
  node_.close_endpoint();  // expects that closing returns 0
  for (int turn = 0; turn < 1000; ++turn) {
    peer_.progress();
    fi_cq_tagged_entry none[1];
    EXPECT_LE(fi_cq_read(node_.rx(), none, 0), 0);
  }
  EXPECT_EQ(back, std::vector<uint8_t>(2000, 0xDD));
}

// More operations than the ring and the slots have room for.
TEST_F(OfiWindows, ManyOperationsRunAtOnce) {
  constexpr size_t kCount = 1000;
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  const std::vector<uint8_t> bytes = pattern(4, kCount * 64);
  for (size_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(fi_write(node_.ep(), bytes.data() + i * 64, 64, nullptr, to, i * 64, kKey, nullptr),
              0);
  }
  for (size_t i = 0; i < kCount; ++i) {
    expect_done();
    ASSERT_FALSE(HasFailure()) << i;
  }
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), peer_.bytes));
}

/// Cards that cannot read the memory of the other process.
class OfiWindowsInPackets : public OfiWindows {
 protected:
  OfiWindowsInPackets() : OfiWindows(",pull=0") {}
};

// The peer serves no messages here: an access by message would not end.
TEST_F(OfiWindows, LongAccessesGoByTheCard) {
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  const std::vector<uint8_t> bytes = pattern(4, RawPeer::kBytes);
  ASSERT_EQ(fi_write(node_.ep(), bytes.data(), bytes.size(), nullptr, to, 0, kKey, nullptr), 0);
  expect_done();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), peer_.bytes));
  std::vector<uint8_t> back(bytes.size());
  ASSERT_EQ(fi_read(node_.ep(), back.data(), back.size(), nullptr, to, 0, kKey, nullptr), 0);
  expect_done();
  EXPECT_EQ(back, bytes);
}

/// It would otherwise fill the ring of the card.
TEST_F(OfiWindows, ALongAccessLetsThoseBehindItPass) {
  constexpr uint64_t kLong = 192ull << 20;
  constexpr uint64_t kPassed = 32ull << 20;
  std::vector<uint8_t> region(kLong);
  const Held<fid_mr> mr = add(region.data(), kLong, kAll, kKey);
  const WindowReply window = window_of(peer_, kKey);
  // All runs are the same memory: what is read is not looked at.
  std::vector<pmd::IovaRun> runs;
  for (uint64_t at = 0; at < kLong; at += RawPeer::kBytes) {
    runs.push_back({peer_.bytes + at, peer_.iova, RawPeer::kBytes});
  }
  struct {
    msg::DmaTransfer transfer;
    bool over = false;
  } both[2];
  for (auto& one : both) {
    msg::DmaTransfer& transfer = one.transfer;
    transfer.rio_addr = window.rio_addr;
    transfer.va = peer_.bytes;
    transfer.run = runs.data();
    transfer.left_bytes = &one == &both[0] ? kLong : 8;
    transfer.dest_id = name_.dest_id;
    transfer.op = DmaOp::kNread;
    transfer.user = &one.over;
    transfer.on_done = [](msg::DmaTransfer& done) { *static_cast<bool*>(done.user) = true; };
    ASSERT_TRUE(peer_.port().dma()->start(transfer));
  }
  ASSERT_TRUE(until([&] { return both[1].over; }));
  EXPECT_LE(both[0].transfer.moved_bytes, kPassed);
  ASSERT_TRUE(until([&] { return both[0].over; }));
  for (const auto& one : both) {
    EXPECT_EQ(one.transfer.status, Status::kOk);
    EXPECT_EQ(one.transfer.moved_bytes, one.transfer.wanted_bytes);
  }
}

TEST_F(OfiWindowsInPackets, LongAccessesAreMessages) {
  constexpr size_t kMost = 256 << 10;
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  std::vector<uint8_t> bytes = pattern(4, kMost + 1);
  ASSERT_EQ(fi_write(node_.ep(), bytes.data(), kMost, nullptr, to, 0, kKey, nullptr), 0);
  expect_done();
  EXPECT_TRUE(std::equal(bytes.begin(), bytes.end() - 1, peer_.bytes));
  ASSERT_EQ(fi_read(node_.ep(), bytes.data(), kMost + 1, nullptr, to, 0, kKey, nullptr), 0);
  AskHeader header;
  ASSERT_TRUE(next_ask(&header));
  EXPECT_EQ(header.verb, Verb::kRead);
  answer(header, bytes.data(), bytes.size());
  expect_done();
}

TEST_F(OfiWindows, FencedAndCountedAccessesAreMessages) {
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  fid_ep* const ep = node_.ep();
  AskHeader header;
  std::vector<uint8_t> bytes(8);
  iovec piece = {bytes.data(), 8};
  const fi_rma_iov there = {0, 8, kKey};
  fi_msg_rma message{};
  message.msg_iov = &piece;
  message.iov_count = 1;
  message.addr = to;
  message.rma_iov = &there;
  message.rma_iov_count = 1;
  const auto expect_message = [&](ssize_t begun) {
    ASSERT_EQ(begun, 0);
    ASSERT_TRUE(next_ask(&header));
    EXPECT_EQ(header.verb, Verb::kWrite);
    answer(header, nullptr, 0);
    expect_done();
  };
  expect_message(fi_writemsg(ep, &message, FI_FENCE));
  expect_message(fi_writedata(ep, bytes.data(), 8, nullptr, 5, to, 0, kKey, nullptr));
  expect_message(fi_write(ep, bytes.data(), 8, nullptr, to, RawPeer::kBytes - 7, kKey, nullptr));
}

// A card of the asking side may write late. A message that repeats the write ends that way first.
TEST_F(OfiWindows, AFencedWriteClosesTheWindowOfTheRailThatItNames) {
  std::vector<uint8_t> memory(4096, 0xEE);
  const Held<fid_mr> region = add(memory.data(), memory.size(), kAll, kKey);
  const WindowReply window = window_of(peer_, kKey);
  const auto write = [&](uint8_t rail) {
    struct {
      AskHeader header = {};
      uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    } request;
    request.header.verb = Verb::kWrite;
    request.header.flags = AskHeader::kFences;
    request.header.type = rail;
    request.header.id = 6;
    request.header.key = kKey;
    request.header.bytes = sizeof(request.bytes);
    tag::RecvRequest reply;
    tag::SendRequest sent;
    EXPECT_EQ(peer_.replies().receive({ofi::reply_bits(6), 0, owner_replies()}, nullptr, 0, reply),
              0);
    EXPECT_GE(peer_.remote().send(owner(), ofi::kAskBits, &request, sizeof(request), sent), 0);
    EXPECT_TRUE(until([&] { return peer_.replies().test(reply); }));
    EXPECT_EQ(reply.status, 0);
    EXPECT_FALSE(reply.immediate.there);
    EXPECT_TRUE(std::equal(request.bytes, request.bytes + 8, memory.begin()));
  };
  write(msg::kRailsMax - 1);  // the owner has no such rail
  EXPECT_EQ(move(peer_, DmaOp::kNread, window.rio_addr, 8), Status::kOk);
  write(0);
  EXPECT_EQ(move(peer_, DmaOp::kNwriteR, window.rio_addr, 64), Status::kErrorResponse);
  const WindowReply next = window_of(peer_, kKey);
  EXPECT_NE(next.rio_addr, window.rio_addr);
  EXPECT_EQ(move(peer_, DmaOp::kNread, next.rio_addr, 8), Status::kOk);
  EXPECT_EQ(memory[8], 0xEE) << "the late write";
}

// The window is gone, so the access is repeated by message; then the owner checks the rights.
TEST_F(OfiWindows, AnAccessToAGoneWindowIsRepeated) {
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  ASSERT_EQ(peer_.port().endpoint().queues().windows().close(index), 0);
  AskHeader header;
  std::vector<uint8_t> bytes = pattern(6, 2000);
  for (const size_t size : {8, 2000}) {
    ASSERT_EQ(fi_read(node_.ep(), bytes.data(), size, nullptr, to, 5, kKey, nullptr), 0);
    ASSERT_TRUE(next_ask(&header));
    if (header.verb == Verb::kWindow) {  // the provider asks for the second window, since it has
                                         // forgotten the first
      answer(header, nullptr, 0);
      ASSERT_TRUE(next_ask(&header));
    }
    EXPECT_EQ(header.verb, Verb::kRead);
    EXPECT_EQ(header.address, 5u);
    EXPECT_EQ(header.bytes, size);
    const std::vector<uint8_t> there = pattern(7, size);
    answer(header, there.data(), there.size());
    expect_done();
    EXPECT_TRUE(std::equal(there.begin(), there.end(), bytes.begin()));
  }
}

TEST_F(OfiWindows, SenselessAnswersOpenNoWindow) {
  const WindowReply wrongs[] = {
      {0x7000 | 9 * kKeyStep, 0, 0, kAll},                         // no bytes
      {0x7000 | 9 * kKeyStep, 0, kKeyStep, kAll},                  // beyond all addresses
      {0x7000 | 9 * kKeyStep, ~uint64_t{0} - 5, 1000, kAll},       // names that wrap
      {0x7000 | 9 * kKeyStep, 0, 1000, 0},                         // no rights
      {0x7000 | 9 * kKeyStep, 0, 1000, kAll | FI_REMOTE_CQ_DATA},  // not a right
      {0, 0, 1000, kAll},
  };
  const fi_addr_t to = insert_peer();
  for (const WindowReply& each : wrongs) {
    EXPECT_FALSE(ofi::is_window(each));
  }
  uint32_t index = 0;
  WindowReply wrong = open_window(kBoth, &index);  // nevertheless the window exists
  wrong.rights |= FI_REMOTE_CQ_DATA;
  introduce(to, wrong);
  AskHeader header;
  ASSERT_EQ(fi_write(node_.ep(), "8 bytes", 8, nullptr, to, 0, kKey, nullptr), 0);
  ASSERT_TRUE(next_ask(&header));
  EXPECT_EQ(header.verb, Verb::kWrite);
  answer(header, nullptr, 0);
  expect_done();
}

}  // namespace
}  // namespace rio::test
