// The fabric by its wires: where frames go, and what becomes of those that cannot.
#include "fpga/wire/switched/fabric.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "fpga/regs/gen/rio_regs.hpp"
#include "tests/support/fabric_topology.hpp"

namespace rio::wire::switched {
namespace {

using model::Frame;
using model::frame_bytes;
using model::FrameType;
using regs::MaintOp;
using test::fabric;

/// The words of a frame that a test gives. Payload: words.
struct Packet {
  FrameType type = FrameType::kDoorbell;
  uint32_t dest = 0;
  uint32_t source = 0;
  uint64_t address = 0;
  uint32_t hops = 0;
  uint8_t op = 0;
  uint32_t length = 0;
  std::vector<uint32_t> words = {};
};

/// A card's end of the fabric, without a card.
class Plug {
 public:
  Plug(Fabric& fabric, const std::string& endpoint) {
    EXPECT_EQ(fabric.plug(endpoint, &wire_), 0) << endpoint;
  }
  void unplug() { wire_.reset(); }
  /// @return false: the ring is full.
  [[nodiscard]] bool send(const Packet& packet, bool response = false) {
    model::Outbound* out = wire_->route(packet.dest);
    model::FrameWriter& writer = response ? *out->responses : *out->requests;
    const uint32_t bytes = frame_bytes(static_cast<uint32_t>(packet.words.size() * 4));
    Frame* frame = writer.reserve(bytes);
    if (frame == nullptr) {
      return false;
    }
    frame->clear();
    frame->type = packet.type;
    frame->dest = packet.dest;
    frame->source = packet.source;
    frame->address = packet.address;
    frame->hops = static_cast<uint8_t>(packet.hops);
    frame->op = packet.op;
    frame->length = static_cast<uint16_t>(packet.length);
    std::ranges::copy(packet.words, reinterpret_cast<uint32_t*>(frame->payload()));
    writer.commit(frame, bytes);
    writer.publish();
    return true;
  }
  void pump() { wire_->pump(0); }
  /// The next frame that has come. @return false: none.
  [[nodiscard]] bool take(Packet* out, bool response = false) {
    const model::Inbound& in = wire_->inbound()[0];
    model::FrameReader& reader = response ? *in.responses : *in.requests;
    const model::InFrame* frame = reader.peek();
    if (frame == nullptr) {
      return false;
    }
    *out = {frame->type, frame->dest, frame->source, frame->address,
            frame->hops, frame->op,   frame->length, {}};
    out->words.resize((frame->bytes - sizeof(Frame)) / 4);
    std::copy_n(reinterpret_cast<const uint32_t*>(frame->payload()), out->words.size(),
                out->words.begin());
    reader.pop(frame);
    reader.release();
    return true;
  }
  /// A maintenance access, answered at once. @return false: no answer.
  [[nodiscard]] bool access(MaintOp op, uint32_t dest, uint32_t hops, uint32_t offset,
                            uint32_t* word, uint32_t source) {
    Packet packet{FrameType::kMaintRequest, dest, source, offset, hops,
                  static_cast<uint8_t>(op), 4,    {}};
    if (op == MaintOp::kWrite) {
      packet.words = {*word};
    }
    EXPECT_TRUE(send(packet));
    pump();
    Packet answer;
    if (!take(&answer, true)) {
      return false;
    }
    EXPECT_EQ(answer.type, FrameType::kMaintResponse);
    if (op == MaintOp::kRead && answer.op == 0) {
      *word = answer.words[0];
    }
    return answer.op == 0;
  }
  [[nodiscard]] uint32_t read(uint32_t dest, uint32_t hops, uint32_t offset, uint32_t source = 1) {
    uint32_t word = 0xDEADDEAD;
    EXPECT_TRUE(access(MaintOp::kRead, dest, hops, offset, &word, source));
    return word;
  }
  void write(uint32_t dest, uint32_t hops, uint32_t offset, uint32_t word, uint32_t source = 1) {
    EXPECT_TRUE(access(MaintOp::kWrite, dest, hops, offset, &word, source));
  }
  [[nodiscard]] bool link_up() const { return wire_->link_up(); }

 private:
  std::unique_ptr<model::Wire> wire_;
};

// a - s:0, s:1 - t:0, t:1 - b; c at s:2. destIDs 1, 2, 3.
constexpr const char* kTwoSwitches = R"({
  "switches": [{"name": "s", "ports": 4, "routes": {"1": 0, "2": 1, "3": 2}},
               {"name": "t", "ports": 6, "routes": {"1": 0, "2": 1, "3": 0}}],
  "endpoints": [{"name": "a"}, {"name": "b", "dest_id": 2, "tag": 77}, {"name": "c"}],
  "links": [["a", "s:0"], ["s:1", "t:0"], ["t:1", "b"], ["s:2", "c"]]})";

TEST(Fabric, FramesGoByDestId) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  Plug b(*made, "b");
  Plug c(*made, "c");
  ASSERT_TRUE(a.send({.dest = 2, .source = 1, .address = 0x1234}));
  ASSERT_TRUE(a.send({.dest = 3, .source = 1, .address = 0x5678}));
  a.pump();
  Packet got;
  ASSERT_TRUE(b.take(&got));
  EXPECT_EQ(got.address, 0x1234u);
  EXPECT_EQ(got.source, 1u);
  EXPECT_FALSE(b.take(&got));
  ASSERT_TRUE(c.take(&got));
  EXPECT_EQ(got.address, 0x5678u);
  EXPECT_EQ(made->counts().delivered, 2u);
}

TEST(Fabric, EndpointsArePluggedOnce) {
  const auto made = fabric(kTwoSwitches);
  std::unique_ptr<model::Wire> wire;
  std::unique_ptr<model::Wire> another;
  EXPECT_EQ(made->plug("nobody", &wire), -ENOENT);
  EXPECT_EQ(made->plug("s", &wire), -ENOENT);
  EXPECT_EQ(made->plug("a", &wire), 0);
  EXPECT_EQ(made->plug("a", &another), -EBUSY);
  wire.reset();
  EXPECT_EQ(made->plug("a", &another), 0);
}

TEST(Fabric, OwnCardsAnswerMaintenance) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  EXPECT_EQ(a.read(2, 0xFF, 0x00), regs::kPciDevice << 16 | regs::kPciVendor);
  EXPECT_EQ(a.read(2, 0xFF, 0x6C), 77u);
  EXPECT_EQ(a.read(2, 0xFF, 0x60), 0x00020002u);
  EXPECT_EQ(a.read(2, 2, 0x6C), 77u) << "hop count used up on the way is as good";
}

TEST(Fabric, SwitchesAnswerAtHopCountZero) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  EXPECT_EQ(a.read(2, 0, 0x10) & 0x10000000u, 0x10000000u);
  EXPECT_EQ(a.read(2, 0, 0x14), 4u << 8 | 0u);
  EXPECT_EQ(a.read(2, 1, 0x14), 6u << 8 | 0u);
  EXPECT_EQ(a.read(2, 0, 0x34), 255u);
  // With any destID, and without a route for it.
  EXPECT_EQ(a.read(200, 0, 0x14), 4u << 8 | 0u);
  Plug c(*made, "c");
  EXPECT_EQ(c.read(2, 0, 0x14, 3), 4u << 8 | 2u) << "the port that the request came in by";
  EXPECT_EQ(made->counts().unrouted, 0u);
}

TEST(Fabric, RoutesAreWrittenAndRead) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  Plug c(*made, "c");
  a.write(0, 0, 0x70, 9);
  EXPECT_EQ(a.read(0, 0, 0x74), 0xFFu) << "no route yet";
  a.write(0, 0, 0x74, 2);
  EXPECT_EQ(a.read(0, 0, 0x74), 2u);
  ASSERT_TRUE(a.send({.dest = 9, .source = 1}));
  a.pump();
  Packet got;
  EXPECT_TRUE(c.take(&got));
  // Beyond the table the default port holds.
  ASSERT_TRUE(a.send({.dest = 300, .source = 1}));
  a.pump();
  EXPECT_FALSE(c.take(&got));
  EXPECT_EQ(made->counts().unrouted, 1u);
  a.write(0, 0, 0x78, 2);
  ASSERT_TRUE(a.send({.dest = 300, .source = 1}));
  a.pump();
  EXPECT_TRUE(c.take(&got));
}

TEST(Fabric, AnswersNeedARouteBack) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  uint32_t word = 0;
  EXPECT_TRUE(a.access(MaintOp::kRead, 2, 0, 0x00, &word, 99)) << "first switch: back by its port";
  EXPECT_FALSE(a.access(MaintOp::kRead, 2, 1, 0x00, &word, 99));
  EXPECT_FALSE(a.access(MaintOp::kRead, 2, 0xFF, 0x00, &word, 99));
  EXPECT_EQ(made->counts().unrouted, 2u);
}

TEST(Fabric, LocksTakeOneHost) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  EXPECT_EQ(a.read(0, 0, 0x68), 0xFFFFu);
  a.write(0, 0, 0x68, 5);
  a.write(0, 0, 0x68, 6);
  EXPECT_EQ(a.read(0, 0, 0x68), 5u);
  a.write(0, 0, 0x68, 5);
  EXPECT_EQ(a.read(0, 0, 0x68), 0xFFFFu);
}

TEST(Fabric, UnroutedFramesAreDroppedAndCounted) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  Plug b(*made, "b");
  ASSERT_TRUE(a.send({.dest = 44, .source = 1}));
  ASSERT_TRUE(a.send({.dest = 2, .source = 1}));
  a.pump();
  EXPECT_EQ(made->counts().unrouted, 1u);
  EXPECT_EQ(made->counts().delivered, 1u) << "those behind it go on";
}

TEST(Fabric, RoutingLoopsEnd) {
  const auto made = fabric(R"({
    "switches": [{"name": "s", "routes": {"7": 1}}, {"name": "t", "routes": {"7": 0}}],
    "endpoints": [{"name": "a"}],
    "links": [["a", "s:0"], ["s:1", "t:0"]]})");
  Plug a(*made, "a");
  ASSERT_TRUE(a.send({.dest = 7, .source = 1}));
  ASSERT_TRUE(a.send({.type = FrameType::kResponse, .dest = 7, .source = 1}, true));
  a.pump();
  EXPECT_EQ(made->counts().looped, 2u);
  // A request that counts hops ends where the hops end: at t, after five passes.
  EXPECT_TRUE(a.send({.type = FrameType::kMaintRequest,
                      .dest = 7,
                      .source = 1,
                      .hops = 5,
                      .op = static_cast<uint8_t>(MaintOp::kRead),
                      .length = 4}));
  a.pump();
  EXPECT_EQ(made->counts().answered, 1u);
}

TEST(Fabric, MalformedFramesAreDropped) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  Plug b(*made, "b");
  ASSERT_TRUE(a.send({.type = static_cast<FrameType>(99), .dest = 2}));
  ASSERT_TRUE(a.send({.type = FrameType::kAcks, .dest = 2}));            // a response
  ASSERT_TRUE(a.send({.type = FrameType::kDoorbell, .dest = 2}, true));  // a request
  ASSERT_TRUE(a.send({.type = FrameType::kSegment,
                      .dest = 2,
                      .words = std::vector<uint32_t>(1100)}));  // longer than any
  a.pump();
  Packet got;
  EXPECT_FALSE(b.take(&got));
  EXPECT_FALSE(b.take(&got, true));
  EXPECT_EQ(made->counts().malformed, 4u);
}

TEST(Fabric, BadMaintenanceIsAnsweredError) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  const auto read = static_cast<uint8_t>(MaintOp::kRead);
  const auto write = static_cast<uint8_t>(MaintOp::kWrite);
  for (const Packet& bad : {Packet{.op = read, .length = 0}, Packet{.op = read, .length = 6},
                            Packet{.op = read, .length = 68}, Packet{.op = 7, .length = 4},
                            Packet{.address = 2, .op = read, .length = 4},
                            Packet{.address = 1u << 24, .op = read, .length = 4},
                            Packet{.op = write, .length = 64}}) {  // without its data
    Packet packet = bad;
    packet.type = FrameType::kMaintRequest;
    packet.source = 1;
    ASSERT_TRUE(a.send(packet));
    a.pump();
    Packet answer;
    ASSERT_TRUE(a.take(&answer, true));
    EXPECT_EQ(answer.op, static_cast<uint8_t>(model::Answer::kError)) << bad.length;
  }
}

TEST(Fabric, AFullReceiverHoldsItsSenderUp) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  Plug b(*made, "b");
  uint32_t sent = 0;
  for (uint32_t idle = 0; idle < 1000; ++idle) {
    while (a.send({.dest = 2, .source = 1, .address = sent})) {
      ++sent;
      idle = 0;
    }
    a.pump();
  }
  EXPECT_EQ(made->counts().unrouted + made->counts().absent + made->counts().lost, 0u);
  EXPECT_GT(sent, made->counts().delivered) << "some wait at the sender";
  // Responses do not wait behind them.
  Packet got;
  ASSERT_TRUE(a.send({.type = FrameType::kResponse, .dest = 2, .source = 1}, true));
  a.pump();
  EXPECT_TRUE(b.take(&got, true));
  // All arrive, in order.
  uint32_t taken = 0;
  for (uint32_t idle = 0; idle < 10 && taken < sent; ++idle) {
    while (b.take(&got)) {
      ASSERT_EQ(got.address, taken++);
      idle = 0;
    }
    a.pump();
  }
  EXPECT_EQ(taken, sent);
}

// Each sends two switches on around a ring, which has nothing but full queues; no frame waits for
// good when the receivers begin to take.
TEST(Fabric, CirclesOfFullQueuesDoNotLock) {
  const auto made = fabric(R"({
    "switches": [{"name": "s0", "routes": {"0": 0, "1": 2, "2": 2, "3": 1}},
                 {"name": "s1", "routes": {"1": 0, "2": 2, "3": 2, "0": 1}},
                 {"name": "s2", "routes": {"2": 0, "3": 2, "0": 2, "1": 1}},
                 {"name": "s3", "routes": {"3": 0, "0": 2, "1": 2, "2": 1}}],
    "endpoints": [{"name": "e0"}, {"name": "e1"}, {"name": "e2"}, {"name": "e3"}],
    "links": [["e0", "s0:0"], ["e1", "s1:0"], ["e2", "s2:0"], ["e3", "s3:0"],
              ["s0:2", "s1:1"], ["s1:2", "s2:1"], ["s2:2", "s3:1"], ["s3:2", "s0:1"]]})");
  std::vector<Plug> plugs;
  for (const char* name : {"e0", "e1", "e2", "e3"}) {
    plugs.emplace_back(*made, name);
  }
  uint32_t sent = 0;
  for (uint32_t round = 0; round < 200; ++round) {
    for (uint32_t i = 0; i < 4; ++i) {
      while (plugs[i].send({.dest = (i + 2) % 4, .source = i})) {
        ++sent;
      }
      plugs[i].pump();
    }
  }
  uint32_t taken = 0;
  Packet got;
  for (uint32_t round = 0; round < 1000; ++round) {
    for (Plug& plug : plugs) {
      taken += plug.take(&got) ? 1 : 0;
      plug.pump();
    }
    for (Plug& plug : plugs) {
      while (plug.take(&got)) {
        ++taken;
      }
    }
  }
  EXPECT_EQ(taken, sent);
}

TEST(Fabric, DevicesGoAndComeBackBlank) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  Plug b(*made, "b");
  EXPECT_TRUE(b.link_up());
  constexpr uint32_t kPort1 = 0x100 + 0x58 + 0x20;
  EXPECT_EQ(a.read(0, 0, kPort1) & 3u, 2u);
  EXPECT_EQ(made->set_device("nobody", false), -ENOENT);
  ASSERT_EQ(made->set_device("t", false), 0);
  EXPECT_FALSE(b.link_up());
  EXPECT_EQ(a.read(0, 0, kPort1) & 3u, 1u);
  ASSERT_TRUE(a.send({.dest = 2, .source = 1}));
  a.pump();
  EXPECT_EQ(made->counts().absent, 1u);
  ASSERT_EQ(made->set_device("t", true), 0);
  EXPECT_TRUE(b.link_up());
  EXPECT_EQ(a.read(0, 0, kPort1) & 3u, 2u);
  const uint64_t port_writes = made->counts().unrouted;  // they have no destination
  EXPECT_EQ(port_writes, 2u);
  ASSERT_TRUE(a.send({.dest = 2, .source = 1}));
  a.pump();
  EXPECT_EQ(made->counts().unrouted, port_writes + 1) << "its routes are gone";
}

TEST(Fabric, SilentDevicesHaveALink) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  ASSERT_EQ(made->set_silent("b", true), 0);
  uint32_t word = 0;
  EXPECT_FALSE(a.access(MaintOp::kRead, 2, 0xFF, 0x00, &word, 1));
  EXPECT_EQ(a.read(2, 1, 0x100 + 0x58 + 0x20) & 3u, 2u);
  ASSERT_EQ(made->set_silent("b", false), 0);
  EXPECT_TRUE(a.access(MaintOp::kRead, 2, 0xFF, 0x00, &word, 1));
}

TEST(Fabric, SwitchesTellOfLinksByPortWrites) {
  const auto made = fabric(kTwoSwitches);
  Plug a(*made, "a");
  a.write(2, 1, 0x6C, 42);
  a.write(2, 1, 0x3000 + 0x28, 1u << 16);  // to destID 1
  ASSERT_EQ(made->set_device("b", false), 0);
  Packet got;
  ASSERT_TRUE(a.take(&got));
  EXPECT_EQ(got.type, FrameType::kPortWrite);
  ASSERT_EQ(got.length, 16u);
  EXPECT_EQ(got.words[0], 42u) << "component tag";
  EXPECT_EQ(got.words[1], 1u) << "errors of the port";
  EXPECT_EQ(got.words[2], 1u) << "the port";
  constexpr uint32_t kPort1 = 0x100 + 0x58 + 0x20;
  EXPECT_EQ(a.read(2, 1, kPort1) & 0x10u, 0x10u) << "pending";
  a.write(2, 1, kPort1, 0x10);
  EXPECT_EQ(a.read(2, 1, kPort1) & 0x10u, 0u);
}

TEST(Fabric, LossesAreDrawnBySeed) {
  const std::string half = test::ring_topology(2, 1, R"(,"loss": {"seed": 5, "rate": 0.5})");
  uint64_t lost[2] = {0, 0};
  for (uint64_t& count : lost) {
    const auto made = fabric(half);
    Plug host(*made, "host");
    uint32_t word = 0;
    for (int i = 0; i < 100; ++i) {
      static_cast<void>(host.access(MaintOp::kRead, 0, 0, 0, &word, 1));
    }
    count = made->counts().lost;
  }
  EXPECT_GT(lost[0], 30u);
  EXPECT_LT(lost[0], 100u);
  EXPECT_EQ(lost[0], lost[1]);
}

}  // namespace
}  // namespace rio::wire::switched
