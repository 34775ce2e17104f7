#include "fpga/wire/udp/frame_units.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "fpga/wire/udp/datagram.hpp"

namespace rio::wire::udp {
namespace {

using model::Frame;
using model::FrameType;

constexpr Ids kLeft = {100, 2, 300, 1};
constexpr Ids kRight = {5, 1, 9, 2};

/// The ends of two cards, and a connection without losses.
class UdpLanes : public testing::Test {
 protected:
  static Agreed agreed() {
    Agreed out;
    out.datagram_bytes = kDatagramMin;
    return out;
  }
  static void put(FrameUnits& lanes, UnitKind lane, FrameType type, const std::string& payload,
                  uint32_t source = 101, uint32_t dest = 300) {
    const uint32_t bytes = model::frame_bytes(static_cast<uint32_t>(payload.size()));
    Frame* const frame = lanes.out(lane)->reserve(bytes);
    ASSERT_NE(frame, nullptr);
    frame->clear();
    frame->type = type;
    frame->source = source;
    frame->dest = dest;
    frame->length = static_cast<uint16_t>(payload.size());
    std::memcpy(frame->payload(), payload.data(), payload.size());
    lanes.out(lane)->commit(frame, bytes);
    lanes.out(lane)->publish();
  }
  void move() {
    for (int rounds = 0; rounds < 50; ++rounds) {
      ++now_ns_;
      static_cast<void>(left_.gather(&a_));
      std::vector<uint8_t> datagram(a_.datagram_bytes());
      for (size_t used = a_.send(now_ns_, datagram); used > 0; used = a_.send(now_ns_, datagram)) {
        ASSERT_EQ(b_.take(std::span(datagram).first(used), now_ns_), 0);
      }
      std::vector<uint8_t> answer(b_.datagram_bytes());
      ASSERT_EQ(a_.take(std::span(answer).first(b_.answer(answer, false)), now_ns_), 0);
      static_cast<void>(b_.offer_again());
    }
  }
  /// Payloads that have arrived.
  std::vector<std::string> come(UnitKind lane) {
    std::vector<std::string> all;
    model::FrameReader& reader = *right_.in(lane);
    for (const model::InFrame* frame = reader.peek(); frame != nullptr; frame = reader.peek()) {
      EXPECT_EQ(frame->source, 10u);
      EXPECT_EQ(frame->dest, 5u);
      all.emplace_back(reinterpret_cast<const char*>(frame->payload()), frame->length);
      reader.pop(frame);
      reader.release();
    }
    return all;
  }
  /// Gives a frame to the lanes, as a unit of the peer.
  void take(const Frame& frame, size_t bytes) {
    std::vector<uint8_t> unit(bytes);
    std::memcpy(unit.data(), static_cast<const void*>(&frame), sizeof(frame));
    ASSERT_TRUE(right_.take(UnitKind::kRequests, unit));
  }

  uint64_t now_ns_ = 1;
  FrameUnits left_{kLeft};
  FrameUnits right_{kRight};
  Connection a_{agreed(), &left_, 0};
  Connection b_{agreed(), &right_, 0};
};

TEST_F(UdpLanes, FramesArriveWithTheDestIdsOfTheReceiver) {
  put(left_, UnitKind::kRequests, FrameType::kMessage, "hello");
  put(left_, UnitKind::kResponses, FrameType::kAcks, "ab");
  move();
  EXPECT_EQ(come(UnitKind::kRequests), std::vector<std::string>{"hello"});
  EXPECT_EQ(come(UnitKind::kResponses), std::vector<std::string>{"ab"});
}

TEST_F(UdpLanes, AFrameThatTheCardHoldsIsNotTaken) {
  put(left_, UnitKind::kRequests, FrameType::kMessage, "held");
  move();
  EXPECT_FALSE(right_.taken());
  model::FrameReader& reader = *right_.in(UnitKind::kRequests);
  const model::InFrame* const frame = reader.peek();
  ASSERT_NE(frame, nullptr);
  ASSERT_TRUE(reader.hold(*frame));
  reader.pop(frame);
  ASSERT_EQ(reader.peek(), nullptr);
  EXPECT_FALSE(right_.taken()) << "the card has yet to take it";
  reader.end_held(1);
  reader.release();
  EXPECT_TRUE(right_.taken());
}

TEST_F(UdpLanes, FramesLongerThanADatagramArriveWhole) {
  std::vector<std::string> sent;
  for (const size_t size : {4096u, 1u, 1168u, 1136u, 4000u, 256u}) {
    sent.push_back(std::string(size, static_cast<char>('a' + sent.size())));
    put(left_, UnitKind::kRequests, FrameType::kMessage, sent.back());
  }
  move();
  EXPECT_EQ(come(UnitKind::kRequests), sent);
}

TEST_F(UdpLanes, MoreThanARingArrivesAsRoomAppears) {
  std::vector<std::string> sent;
  std::vector<std::string> got;
  for (int i = 0; i < 200; ++i) {
    sent.push_back(std::string(4096, static_cast<char>(i)));
    put(left_, UnitKind::kRequests, FrameType::kMessage, sent.back());
    move();
    if (i % 20 == 19) {
      const std::vector<std::string> more = come(UnitKind::kRequests);
      got.insert(got.end(), more.begin(), more.end());
    }
  }
  move();
  const std::vector<std::string> more = come(UnitKind::kRequests);
  got.insert(got.end(), more.begin(), more.end());
  EXPECT_EQ(got, sent);
}

class UdpRuns : public UdpLanes {
 protected:
  /// Puts a frame that announces these messages.
  void put_run() {
    std::string parts;
    for (const std::string& message : messages_) {
      const model::PullPart part = {reinterpret_cast<uintptr_t>(message.data()),
                                    static_cast<uint32_t>(message.size()), 0};
      parts.append(reinterpret_cast<const char*>(&part), sizeof(part));
    }
    position_ = left_.out(UnitKind::kRequests)->tail();
    put(left_, UnitKind::kRequests, FrameType::kPull, parts);
  }
  std::vector<std::string> pulled() {
    std::vector<std::string> all;
    model::FrameReader& reader = *right_.in(UnitKind::kRequests);
    const model::InFrame* const frame = reader.peek();
    if (frame == nullptr || frame->type != FrameType::kPull) {
      return all;
    }
    for (size_t i = 0; i < frame->length / sizeof(model::PullPart); ++i) {
      model::PullPart part;
      std::memcpy(&part, frame->payload() + i * sizeof(part), sizeof(part));
      std::string text(part.length, 0);
      const model::PullPiece piece = {reinterpret_cast<uint8_t*>(text.data()), part.address,
                                      part.length};
      EXPECT_EQ(right_.puller()->pull({&piece, 1}), part.length);
      all.push_back(text);
    }
    reader.pop(frame);
    reader.release();
    return all;
  }
  std::vector<std::string> messages_ = {std::string(4096, 'a'), std::string(4096, 'b'),
                                        std::string(777, 'c')};
  uint32_t position_ = 0;
};

TEST_F(UdpRuns, BytesOfLongMessagesFollowTheirFrame) {
  put_run();
  put(left_, UnitKind::kRequests, FrameType::kMessage, "next");
  move();
  EXPECT_EQ(pulled(), messages_);
  EXPECT_EQ(come(UnitKind::kRequests), std::vector<std::string>{"next"});
}

TEST_F(UdpRuns, NoOtherMemoryCanBePulled) {
  put_run();
  move();
  uint8_t to = 0;
  const model::PullPiece piece = {&to, reinterpret_cast<uintptr_t>(&position_), 1};
  EXPECT_EQ(right_.puller()->pull({&piece, 1}), 0u);
}

TEST_F(UdpRuns, AddressesOfTheSenderAreNotSent) {
  put_run();
  static_cast<void>(left_.gather(&a_));
  std::vector<uint8_t> datagram(a_.datagram_bytes());
  datagram.resize(a_.send(1, datagram));
  const auto address = reinterpret_cast<uintptr_t>(messages_[0].data());
  const std::string text(datagram.begin(), datagram.end());
  EXPECT_EQ(text.find(std::string(reinterpret_cast<const char*>(&address), sizeof(address))),
            std::string::npos);
}

TEST_F(UdpRuns, MessagesGivenUpEarlyAreNotSent) {
  put_run();
  left_.out(UnitKind::kRequests)->revoke(position_);
  put(left_, UnitKind::kRequests, FrameType::kMessage, "next");
  move();
  EXPECT_EQ(come(UnitKind::kRequests), std::vector<std::string>{"next"});
}

TEST_F(UdpRuns, MessagesGivenUpOnTheirWayAreNotDelivered) {
  for (int i = 0; i < 20; ++i) {  // more than may be under way
    messages_.push_back(std::string(4096, 'x'));
  }
  put_run();
  static_cast<void>(left_.gather(&a_));
  left_.out(UnitKind::kRequests)->revoke(position_);
  put(left_, UnitKind::kRequests, FrameType::kMessage, "next");
  messages_.clear();  // its memory is the host's again
  move();
  EXPECT_EQ(come(UnitKind::kRequests), std::vector<std::string>{"next"});
  EXPECT_FALSE(right_.foul());
}

TEST_F(UdpLanes, FramesThatNoHonestPeerSendsAreFoul) {
  Frame good;
  good.clear();
  good.bytes = sizeof(Frame);
  good.type = FrameType::kDoorbell;
  take(good, sizeof(Frame));
  ASSERT_FALSE(right_.foul());
  const auto fouls = [](Frame frame, size_t bytes) {
    FrameUnits lanes{kRight};
    std::vector<uint8_t> unit(bytes);
    std::memcpy(unit.data(), static_cast<const void*>(&frame), sizeof(frame));
    static_cast<void>(lanes.take(UnitKind::kRequests, unit));
    return lanes.foul() && lanes.taken();
  };
  for (const uint32_t bytes : {0u, 31u, 33u, 1u << 20, 0xffffffffu}) {
    Frame frame = good;
    frame.bytes = bytes;
    EXPECT_TRUE(fouls(frame, 64)) << bytes;
  }
  for (const FrameType type : {FrameType::kSkip, FrameType::kAcks, FrameType::kResponse,
                               FrameType::kRevoked, FrameType::kPulled, FrameType{200}}) {
    Frame frame = good;
    frame.type = type;
    EXPECT_TRUE(fouls(frame, 32)) << static_cast<int>(type);
  }
  Frame frame = good;
  frame.source = 2;  // it has two destIDs
  EXPECT_TRUE(fouls(frame, 32));
  frame = good;
  frame.dest = 1;
  EXPECT_TRUE(fouls(frame, 32));
  frame = good;
  frame.type = FrameType::kPull;
  EXPECT_TRUE(fouls(frame, 32));  // without messages
  frame.length = 64 * 16 + 16;
  frame.bytes = model::frame_bytes(frame.length);
  EXPECT_TRUE(fouls(frame, frame.bytes));  // with too many messages
  frame.length = 16;
  frame.bytes = model::frame_bytes(frame.length);
  EXPECT_TRUE(fouls(frame, frame.bytes));  // with a message without bytes
}

}  // namespace
}  // namespace rio::wire::udp
