/// @file
/// An endpoint of the provider, and peers that are test programs on lib/tag with cards of their
/// own.
#pragma once

#include <rdma/fi_rma.h>

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "lib/msg/registrations.hpp"
#include "lib/ofi/ask.hpp"
#include "lib/ofi/name.hpp"
#include "tests/unit/lib/ofi/node.hpp"
#include "tests/unit/lib/tag/tag_node.hpp"

namespace rio::test {

using ofi::AskHeader;
using ofi::Verb;
using ofi::WindowReply;
using pmd::Status;
using regs::DmaOp;

inline constexpr uint64_t kKey = 0xC0FFEE;
inline constexpr uint64_t kAll = FI_REMOTE_READ | FI_REMOTE_WRITE;
inline constexpr uint64_t kKeyStep = 1ull << 48;  // distance of window keys in an address
inline constexpr uint64_t kTurns = 2'000'000;

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

  static constexpr uint64_t kBytes = 1 << 20;
  uint8_t* bytes = nullptr;
  uint64_t iova = 0;

 private:
  TagNode node_;
};

class OfiWindows : public OfiTest {
 protected:
  explicit OfiWindows(const std::string& options = "")
      : OfiTest("shm", options),
        info_(get_info(hints(FI_RMA | FI_RMA_EVENT | FI_FENCE))),
        node_(info_, 0) {
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

}  // namespace rio::test
