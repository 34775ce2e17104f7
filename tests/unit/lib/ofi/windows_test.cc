// Memory of peers through the card's windows. The peer is a test program on lib/tag with a card of
// its own, so it sees which accesses use a window and which are messages.
#include <rdma/fi_rma.h>

#include <cstring>
#include <functional>

#include "lib/msg/registrations.hpp"
#include "lib/ofi/ask.hpp"
#include "lib/ofi/name.hpp"
#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {
namespace {

using ofi::AskHeader;
using ofi::Verb;
using ofi::WindowReply;
using pmd::Status;
using regs::DmaOp;

constexpr uint64_t kKey = 0xC0FFEE;
constexpr uint64_t kAll = FI_REMOTE_READ | FI_REMOTE_WRITE;
constexpr uint64_t kKeyStep = 1ull << 48;  // distance of window keys in an address
constexpr uint64_t kTurns = 2'000'000;

/// A peer that does not run the provider.
class RawPeer {
 public:
  RawPeer() : node_(std::getenv("FI_RIO_CARD"), 0, ofi::kContextsOfEndpoint) {
    pmd::DmaMemory memory;
    EXPECT_EQ(node_.port->endpoint().alloc(kBytes, 4096, &memory), 0);
    bytes = static_cast<uint8_t*>(memory.va);
    iova = memory.iova;
  }
  void progress() {
    node_.progress();
    node_.port->dma()->progress();
  }
  msg::MessagePort& port() { return *node_.port; }
  tag::TaggedContext& replies() { return *node_.endpoints[ofi::kReplyContext]; }
  tag::TaggedContext& remote() { return *node_.endpoints[ofi::kRemoteContext]; }
  /// Its name, as fi_getname() would return it.
  [[nodiscard]] ofi::Name name(const ofi::Name& neighbour) {
    ofi::Name out = neighbour;
    out.dest_id = node_.port->dest_id();
    out.endpoint = 0;
    return out;
  }

  static constexpr uint64_t kBytes = 65536;
  uint8_t* bytes = nullptr;
  uint64_t iova = 0;

 private:
  TagNode node_;
};

class OfiWindows : public OfiTest {
 protected:
  OfiWindows()
      : OfiTest("shm"), info_(get_info(hints(FI_RMA | FI_RMA_EVENT | FI_FENCE))), node_(info_, 0) {
    std::memcpy(&name_, node_.name().data(), sizeof(name_));
  }

  bool until(const std::function<bool()>& good) {
    for (uint64_t turn = 0; turn < kTurns; ++turn) {
      if (good()) {
        return true;
      }
      peer_.progress();
      if (other_ != nullptr) {
        other_->progress();
      }
      fi_cq_tagged_entry none[1];
      EXPECT_LE(fi_cq_read(node_.rx(), none, 0), 0);
    }
    return false;
  }
  [[nodiscard]] Held<fid_mr> add(uint8_t* at, size_t bytes, uint64_t access, uint64_t key) {
    fid_mr* mr = nullptr;
    EXPECT_EQ(fi_mr_reg(node_.domain(), at, bytes, access, 0, key, 0, &mr, nullptr), 0);
    return Held<fid_mr>(mr);
  }

  // The peer as the asking side.

  [[nodiscard]] tag::Address owner() const {
    return tag::address(name_.dest_id, name_.endpoint * ofi::kContextsOfEndpoint) +
           ofi::kRemoteContext;
  }
  [[nodiscard]] tag::Address owner_replies() const {
    return owner() - ofi::kRemoteContext + ofi::kReplyContext;
  }
  /// Asks for a window. @return 0, or the owner's error.
  int ask(RawPeer& peer, uint64_t key, WindowReply* out) {
    AskHeader header = {};
    header.verb = Verb::kWindow;
    header.id = 5;
    header.key = key;
    tag::RecvRequest reply;
    tag::SendRequest sent;
    EXPECT_EQ(
        peer.replies().receive({ofi::reply_bits(5), 0, owner_replies()}, out, sizeof(*out), reply),
        0);
    EXPECT_GE(peer.remote().send(owner(), ofi::kAskBits, &header, sizeof(header), sent), 0);
    EXPECT_TRUE(until([&] { return peer.replies().test(reply); }));
    EXPECT_EQ(reply.status, 0);
    if (reply.immediate.there) {
      return static_cast<int>(reply.immediate.value);
    }
    EXPECT_EQ(reply.length_bytes, sizeof(*out));
    return 0;
  }
  [[nodiscard]] WindowReply window_of(RawPeer& peer, uint64_t key) {
    WindowReply window = {};
    EXPECT_EQ(ask(peer, key, &window), 0);
    return window;
  }
  Status move(RawPeer& peer, DmaOp op, uint64_t rio_addr, uint64_t bytes) {
    msg::DmaTransfer transfer;
    bool over = false;
    transfer.rio_addr = rio_addr;
    transfer.va = peer.bytes;
    const pmd::IovaRun run = {peer.bytes, peer.iova, RawPeer::kBytes};
    transfer.run = &run;
    transfer.left_bytes = bytes;
    transfer.dest_id = name_.dest_id;
    transfer.op = op;
    transfer.user = &over;
    transfer.on_done = [](msg::DmaTransfer& done) { *static_cast<bool*>(done.user) = true; };
    EXPECT_TRUE(peer.port().dma()->start(transfer));
    EXPECT_TRUE(until([&] { return over; }));
    return transfer.status;
  }

  // The provider as the asking side.

  [[nodiscard]] fi_addr_t insert_peer() {
    const ofi::Name name = peer_.name(name_);
    fi_addr_t out = FI_ADDR_NOTAVAIL;
    EXPECT_EQ(fi_av_insert(node_.av(), &name, 1, &out, 0, nullptr), 1);
    return out;
  }
  /// Gets the provider's next request about memory.
  bool next_ask(AskHeader* header) {
    std::vector<uint8_t> bytes(ofi::kAskBytesMax);
    tag::RecvRequest request;
    const tag::Pattern any = {ofi::kAskBits, 0, tag::kAnySource};
    const int rc = peer_.remote().receive(any, bytes.data(), bytes.size(), request);
    if (rc < 0 || (rc == 0 && !until([&] { return peer_.remote().test(request); }))) {
      return false;
    }
    std::memcpy(header, bytes.data(), sizeof(*header));
    return request.status == 0;
  }
  void answer(const AskHeader& header, const void* bytes, size_t count) {
    tag::SendRequest sent;
    const int rc =
        peer_.replies().send(owner_replies(), ofi::reply_bits(header.id), bytes, count, sent);
    ASSERT_GE(rc, 0);
    ASSERT_TRUE(rc == 1 || until([&] { return peer_.replies().test(sent); }));
  }
  /// Tells the provider of the window, after a first write that went by message.
  void introduce(fi_addr_t to, const WindowReply& window) {
    ASSERT_EQ(fi_write(node_.ep(), "8 bytes", 8, nullptr, to, 0, kKey, nullptr), 0);
    AskHeader first;
    AskHeader second;
    ASSERT_TRUE(next_ask(&first) && next_ask(&second));
    EXPECT_EQ(first.verb, Verb::kWindow);
    EXPECT_EQ(first.key, kKey);
    EXPECT_EQ(second.verb, Verb::kWrite);
    answer(first, &window, sizeof(window));
    answer(second, nullptr, 0);
    expect_done();
  }
  /// Opens a window. @return the peer's window onto its bytes.
  [[nodiscard]] WindowReply open_window(uint8_t rights, uint32_t* index) {
    const pmd::Window window = {.rio_addr = 0x7000,
                                .size_bytes = RawPeer::kBytes,
                                .iova = peer_.iova,
                                .rights = rights,
                                .source = name_.dest_id,
                                .source_mask = ~0u,
                                .key = 9};
    EXPECT_EQ(peer_.port().endpoint().queues().windows().open(window, index), 0);
    return {window.rio_addr | 9 * kKeyStep, 0, RawPeer::kBytes, kAll};
  }
  void expect_done() {
    fi_cq_tagged_entry entry{};
    ssize_t rc = -FI_EAGAIN;
    ASSERT_TRUE(until([&] {
      rc = fi_cq_read(node_.tx(), &entry, 1);
      return rc != -FI_EAGAIN;
    }));
    ASSERT_EQ(rc, 1);
  }

  Info info_;
  OfiNode node_;
  RawPeer peer_;
  std::unique_ptr<RawPeer> other_;
  ofi::Name name_ = {};
};

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

TEST_F(OfiWindows, FencedCountedAndLongAccessesAreMessages) {
  uint32_t index = 0;
  const fi_addr_t to = insert_peer();
  introduce(to, open_window(kBoth, &index));
  fid_ep* const ep = node_.ep();
  AskHeader header;
  std::vector<uint8_t> bytes(300 << 10);
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
  ASSERT_EQ(fi_read(ep, bytes.data(), bytes.size(), nullptr, to, 0, kKey, nullptr), 0);
  ASSERT_TRUE(next_ask(&header));
  EXPECT_EQ(header.verb, Verb::kRead);
  answer(header, bytes.data(), bytes.size());
  expect_done();
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
