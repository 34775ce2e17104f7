// The host's traffic, and packets: without I/O, in an order that the test determines.
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "fpga/model/frame_ring.hpp"
#include "fpga/wire/relay/packet.hpp"
#include "fpga/wire/relay/traffic.hpp"

namespace rio::wire::relay {
namespace {

using model::Frame;
using model::FrameType;
using model::InFrame;
using model::RingBox;

constexpr uint32_t kRingBytes = 64 * 1024;

std::vector<uint8_t> frame(uint32_t source, uint32_t dest, uint32_t payload, uint8_t fill,
                           FrameType type = FrameType::kMessage) {
  Frame head{};
  head.clear();
  head.bytes = model::frame_bytes(payload);
  head.type = type;
  head.source = source;
  head.dest = dest;
  head.length = static_cast<uint16_t>(payload);
  std::vector<uint8_t> bytes(head.bytes, fill);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

/// A process with its rings; its destID is 10 * number.
struct Process {
  explicit Process(uint32_t n) : number(n) {}
  [[nodiscard]] Ends ends() {
    return {{&up[0].reader, &up[1].reader}, {&down[0].writer, &down[1].writer}};
  }
  [[nodiscard]] Announce head(uint32_t dest, uint32_t lane = 0) {
    return {.bytes = 0,
            .id = kControlBit,
            .zero = {},
            .sequence = sequence[lane][dest],
            .source_process = number,
            .dest_process = dest,
            .source_port = 10 * number,
            .dest_port = 10 * dest,
            .length = 0};
  }
  [[nodiscard]] bool send(uint32_t dest, uint32_t payload, uint8_t fill, uint32_t lane = 0) {
    const FrameType type = lane == 0 ? FrameType::kMessage : FrameType::kAcks;
    const bool sent = put_transfer(up[lane].writer, head(dest, lane),
                                   frame(10 * number, 10 * dest, payload, fill, type));
    sequence[lane][dest] += sent ? 1 : 0;
    return sent;
  }
  /// Takes everything that has arrived: frames by source process, credits by process.
  void take() {
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      while (const InFrame* in = down[lane].reader.peek()) {
        take_one(lane, *in);
        down[lane].reader.pop(in);
      }
      down[lane].reader.release();
    }
  }
  void take_one(uint32_t lane, const InFrame& in) {
    bool whole = false;
    if (id_of(in) == kCreditBit) {
      const auto credit = packet_as<Credit>(in);
      credits[credit.process] += credit.taken;
    } else if (id_of(in) == kControlBit) {
      const auto announce = packet_as<Announce>(in);
      EXPECT_EQ(announce.dest_process, number);
      EXPECT_EQ(in_of[lane][announce.source_process].announce(announce), nullptr);
    } else {
      const auto data = packet_as<Data>(in);
      Assembler& assembler = in_of[lane][data.source_process];
      EXPECT_EQ(assembler.data(data, {in.payload(), in.bytes - sizeof(Data)}, &whole), nullptr);
      if (whole) {
        const auto bytes = assembler.frame();
        got[data.source_process].emplace_back(bytes.begin(), bytes.end());
      }
    }
  }

  uint32_t number;
  RingBox up[kLanes] = {RingBox(kRingBytes), RingBox(kRingBytes)};
  RingBox down[kLanes] = {RingBox(kRingBytes), RingBox(kRingBytes)};
  std::map<uint32_t, uint32_t> sequence[kLanes];
  std::map<uint32_t, Assembler> in_of[kLanes];
  std::map<uint32_t, std::vector<std::vector<uint8_t>>> got;
  std::map<uint32_t, uint32_t> credits;
};

class RelayTraffic : public testing::Test {
 protected:
  RelayTraffic() {
    for (Process* const process : {&one_, &two_, &three_}) {
      traffic_.add(process->number, 10 * process->number, 1, process->ends());
    }
  }
  void sweep() {
    while (traffic_.sweep()) {
    }
  }
  /// The process that broke a rule, and the rule; 0: none.
  uint32_t foul(std::string* what) {
    const std::vector<Traffic::Foul> fouls = traffic_.take_fouls();
    EXPECT_LE(fouls.size(), 1u);
    *what = fouls.empty() ? "" : fouls.front().second;
    return fouls.empty() ? 0 : fouls.front().first;
  }
  void expect_foul(const char* part) {
    sweep();
    std::string what;
    EXPECT_EQ(foul(&what), 1u);
    EXPECT_NE(what.find(part), std::string::npos) << what;
  }

  Process one_{1};
  Process two_{2};
  Process three_{3};
  Traffic traffic_;
};

TEST_F(RelayTraffic, PacketsAgreeWithThePaper) {
  ASSERT_TRUE(put_transfer(one_.up[0].writer, one_.head(2), frame(10, 20, 4096, 7)));
  uint32_t fragments[] = {0, 1, 2, 3};
  uint32_t lengths[] = {0, 2016, 2016, 96};
  for (uint32_t i = 0; i < 4; ++i) {
    const InFrame* in = one_.up[0].reader.peek();
    ASSERT_NE(in, nullptr);
    EXPECT_EQ(id_of(*in), i == 0 ? 1 : 2);  // bit 0: control; bit 1: data
    EXPECT_LE(in->bytes, kBufferBytes);
    if (i == 0) {
      EXPECT_EQ(packet_as<Announce>(*in).length, 4128u);
    } else {
      EXPECT_EQ(packet_as<Data>(*in).fragment, fragments[i]);
      EXPECT_EQ(packet_as<Data>(*in).length, lengths[i]);
    }
    one_.up[0].reader.pop(in);
  }
  EXPECT_EQ(one_.up[0].reader.peek(), nullptr);
  ASSERT_TRUE(put_transfer(one_.up[0].writer, one_.head(2), frame(10, 20, 8, 7)));
  one_.up[0].reader.pop(one_.up[0].reader.peek());
  EXPECT_EQ(packet_as<Data>(*one_.up[0].reader.peek()).fragment, 0u);  // there is only one
}

TEST_F(RelayTraffic, NeverMixesTheDataOfTwoProcesses) {
  for (uint32_t round = 0; round < 50; ++round) {
    ASSERT_TRUE(one_.send(3, 1 + round * 80, 0xAA));
    ASSERT_TRUE(two_.send(3, 4096 - round * 80, 0x55));
    ASSERT_TRUE(one_.send(2, 100, 0x11));
    sweep();
    two_.take();
    three_.take();
    sweep();
  }
  std::string what;
  EXPECT_EQ(foul(&what), 0u) << what;
  ASSERT_EQ(three_.got[1].size(), 50u);
  ASSERT_EQ(three_.got[2].size(), 50u);
  EXPECT_EQ(two_.got[1].size(), 50u);
  EXPECT_TRUE(two_.got[3].empty());
  EXPECT_TRUE(one_.got.empty());
  for (uint32_t round = 0; round < 50; ++round) {
    EXPECT_EQ(three_.got[1][round], frame(10, 30, 1 + round * 80, 0xAA));
    EXPECT_EQ(three_.got[2][round], frame(20, 30, 4096 - round * 80, 0x55));
  }
}

TEST_F(RelayTraffic, AStoppedReceiverStopsNoOther) {
  // Its rings are small: frames without room are queued.
  RingBox small[kLanes] = {RingBox(16384), RingBox(16384)};
  Process four(4);
  traffic_.add(4, 40, 1,
               {{four.ends().up[0], four.ends().up[1]}, {&small[0].writer, &small[1].writer}});
  for (Process* const process : {&three_, &one_}) {
    for (uint32_t i = 0; i < 3; ++i) {  // all that the window allows
      ASSERT_TRUE(process->send(4, 4096, 1));
    }
    sweep();
  }
  EXPECT_EQ(one_.credits[4], 0u);
  EXPECT_EQ(traffic_.counts(4).frames_down, 3u);
  EXPECT_EQ(traffic_.counts(4).queued_bytes, 3u * 4128);
  ASSERT_TRUE(one_.send(2, 4096, 9));
  ASSERT_TRUE(one_.send(4, 64, 2, kResponses));  // a response does not wait behind requests
  sweep();
  two_.take();
  EXPECT_EQ(two_.got[1].size(), 1u);
  EXPECT_EQ(traffic_.counts(4).frames_down, 4u);
  sweep();
  one_.take();
  EXPECT_EQ(one_.credits[2], 4128u);
  EXPECT_EQ(one_.credits[4], 0u);
  // It continues: the rest arrives in order, and is credited.
  uint32_t bytes = 0;
  while (const InFrame* in = small[0].reader.peek()) {
    bytes += id_of(*in) == kDataBit ? packet_as<Data>(*in).length : 0;
    small[0].reader.pop(in);
    small[0].reader.release();
    sweep();
  }
  EXPECT_EQ(bytes, 6u * 4128);
  sweep();
  one_.take();
  EXPECT_EQ(one_.credits[4], 3u * 4128);
  EXPECT_EQ(traffic_.counts(4).queued_bytes, 0u);
  EXPECT_EQ(traffic_.counts(4).queued_most, 3u * 4128 + 96);
}

TEST_F(RelayTraffic, ASenderBeyondItsWindowIsCutOff) {
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(one_.send(2, 4096, 1));
  }
  expect_foul("more than its window");
}

TEST_F(RelayTraffic, FramesOfADeadProcessArriveBeforeItsDeathIsReported) {
  ASSERT_TRUE(one_.send(2, 300, 5));
  traffic_.remove(1, true);
  using Departures = std::vector<Traffic::Departure>;
  EXPECT_EQ(traffic_.take_departures(), (Departures{{1, 3}}));  // three waits for nothing
  sweep();
  two_.take();
  EXPECT_EQ(two_.got[1].size(), 1u);
  EXPECT_EQ(traffic_.take_departures(), (Departures{{1, 2}}));
  // A process that has not heard of the death breaks no rule.
  ASSERT_TRUE(two_.send(1, 300, 5));
  sweep();
  std::string what;
  EXPECT_EQ(foul(&what), 0u) << what;
}

TEST_F(RelayTraffic, FramesOfACutOffProcessAreDropped) {
  ASSERT_TRUE(one_.send(2, 300, 5));
  traffic_.remove(1, false);
  sweep();
  two_.take();
  EXPECT_TRUE(two_.got.empty());
}

TEST_F(RelayTraffic, RefusesAnotherProcessAsSource) {
  Announce head = one_.head(2);
  head.source_process = 3;
  ASSERT_TRUE(put_transfer(one_.up[0].writer, head, frame(10, 20, 8, 1)));
  expect_foul("announces a transfer in another's name");
}

TEST_F(RelayTraffic, RefusesDataOfAnotherProcess) {
  ASSERT_TRUE(one_.send(2, 8, 1));
  // The data packet, behind the announcement of 32 bytes; 12: its source process.
  one_.up[0].memory.data()->bytes[32 + 12] = 3;
  expect_foul("sends data in another's name");
}

TEST_F(RelayTraffic, RefusesAnotherProcessesPortAsSource) {
  Announce head = one_.head(2);
  head.source_port = 30;
  ASSERT_TRUE(put_transfer(one_.up[0].writer, head, frame(30, 20, 8, 1)));
  expect_foul("announces a transfer in another's name");
}

TEST_F(RelayTraffic, RefusesAPortOfAnotherDestination) {
  Announce head = one_.head(2);
  head.dest_port = 30;
  ASSERT_TRUE(put_transfer(one_.up[0].writer, head, frame(10, 30, 8, 1)));
  expect_foul("a port of another process");
}

TEST_F(RelayTraffic, RefusesAnUnknownProcess) {
  ASSERT_TRUE(one_.send(99, 8, 1));
  expect_foul("never was");
}

TEST_F(RelayTraffic, RefusesAFrameWithAnotherSource) {
  ASSERT_TRUE(put_transfer(one_.up[0].writer, one_.head(2), frame(30, 20, 8, 1)));
  expect_foul("no card sends");
}

TEST_F(RelayTraffic, RefusesAResponseAmongRequests) {
  ASSERT_TRUE(put_transfer(one_.up[0].writer, one_.head(2), frame(10, 20, 8, 1, FrameType::kAcks)));
  expect_foul("no card sends");
}

TEST_F(RelayTraffic, RefusesTransfersOutOfSequence) {
  Announce head = one_.head(2);
  head.sequence = 1;
  ASSERT_TRUE(put_transfer(one_.up[0].writer, head, frame(10, 20, 8, 1)));
  expect_foul("out of sequence");
}

TEST(RelayAssembler, RefusesWrongFragments) {
  const Announce head{.bytes = 32,
                      .id = 1,
                      .zero = {},
                      .sequence = 0,
                      .source_process = 1,
                      .dest_process = 2,
                      .source_port = 10,
                      .dest_port = 20,
                      .length = 4128};
  const std::vector<uint8_t> payload(kDataMax);
  const Data first{.bytes = 2048,
                   .id = 2,
                   .zero = {},
                   .sequence = 0,
                   .source_process = 1,
                   .dest_process = 2,
                   .fragment = 1,
                   .length = 2016,
                   .zero2 = 0};
  bool whole = false;
  for (int wrong = 0; wrong < 7; ++wrong) {
    Assembler assembler;
    ASSERT_EQ(assembler.announce(head), nullptr);
    EXPECT_NE(assembler.announce(head), nullptr);
    Data data = first;
    data.fragment = wrong == 0 ? 2 : wrong == 1 ? 0 : 1;
    data.length = wrong == 2 ? 2015 : 2016;
    data.sequence = wrong == 3 ? 1 : 0;
    data.zero2 = wrong == 4 ? 1 : 0;
    data.bytes = wrong == 5 ? 4096 : 2048;
    const size_t there = wrong == 6 ? 2015 : 2016;
    EXPECT_NE(assembler.data(data, std::span(payload).first(there), &whole), nullptr) << wrong;
  }
  for (const uint32_t length : {0u, 31u, 33u, 4160u, ~0u}) {
    Assembler assembler;
    Announce other = head;
    other.length = length;
    EXPECT_NE(assembler.announce(other), nullptr) << length;
  }
}

}  // namespace
}  // namespace rio::wire::relay
