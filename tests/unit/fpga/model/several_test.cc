// Messages of several segments in fast mode: how they leave the card, and how frames that a card
// sent arrive.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "fpga/model/copy.hpp"
#include "tests/fuzz/fuzz_card.hpp"

namespace rio::test {
namespace {

using Control = regs::tx_desc::Control;

constexpr uint32_t kPeer = 2;
constexpr uint32_t kPageBytes = 4096;
constexpr uint32_t kLetters = 4;

class Several : public testing::Test {
 protected:
  Several() {
    card_.start_all();
    // Without dedicated queues for mailbox 0 its messages are plain.
    for (const uint32_t ring : {8u, 12u}) {
      card_.write(regs::qp::ring_control(0, ring), 2u << 16);
    }
    card_.step(40);
    card_.post_receive();
  }
  void post(uint32_t length_bytes) {
    regs::TxDesc desc{};
    desc.control = Control::ssize.put(14);
    desc.dest_id = kPeer;
    desc.length = length_bytes;
    desc.addr = FuzzCard::buffers_iova();
    std::memcpy(card_.ring(0) + tail_ * sizeof(desc), &desc, sizeof(desc));
    card_.write(regs::qp::tail(0, 0), ++tail_);
  }
  void answer(const std::vector<model::Frame>& sent) {
    model::Frame frame{};
    frame.type = model::FrameType::kAcks;
    frame.source = kPeer;
    frame.dest = FuzzCard::kId;
    std::vector<model::Ack> acks;
    acks.reserve(sent.size());
    for (const model::Frame& each : sent) {
      acks.push_back(model::Ack::of(each.place, 0, model::Answer::kDone));
    }
    frame.length = static_cast<uint16_t>(acks.size() * sizeof(model::Ack));
    EXPECT_TRUE(
        card_.send(frame, reinterpret_cast<const uint8_t*>(acks.data()), frame.length, true, true));
  }
  /// A frame with a message for the shared queue.
  [[nodiscard]] static model::Frame frame_of(uint32_t length_bytes) {
    model::Frame frame{};
    frame.type = model::FrameType::kMessage;
    frame.source = kPeer;
    frame.dest = FuzzCard::kId;
    frame.length = static_cast<uint16_t>(length_bytes);
    frame.segments = static_cast<uint8_t>((length_bytes + 255) / 256);
    frame.ssize = 256;
    return frame;
  }

  FuzzCard card_{false, 0, 1};
  uint32_t tail_ = 0;
};

TEST_F(Several, AMessageIsOneFrame) {
  post(1000);
  card_.card().step_to_send();
  const std::vector<model::Frame> sent = card_.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].type, model::FrameType::kMessage);
  EXPECT_EQ(sent[0].length, 1000u);
  EXPECT_EQ(sent[0].segments, 4u);
}

TEST_F(Several, NoMoreFlyThanThereAreLetters) {
  for (uint32_t i = 0; i < kLetters + 1; ++i) {
    post(512);
    card_.card().step_to_send();
  }
  const std::vector<model::Frame> sent = card_.take_sent();
  ASSERT_EQ(sent.size(), kLetters);
  for (uint32_t i = 1; i < kLetters; ++i) {
    EXPECT_NE(sent[i].place, sent[i - 1].place);
  }
  card_.step(2);
  EXPECT_TRUE(card_.take_sent().empty());
}

/// The letter of an answer that is there already is free for a message that is posted now: the host
/// may not step the card again for long.
TEST_F(Several, OneStepReadsTheAnswersAndSends) {
  for (const bool doorbell : {false, true}) {
    for (uint32_t i = 0; i < kLetters; ++i) {
      post(512);
      card_.card().step();
    }
    const std::vector<model::Frame> sent = card_.take_sent();
    ASSERT_EQ(sent.size(), kLetters);
    answer(sent);
    post(512);
    if (doorbell) {
      card_.card().step_to_send();
    } else {
      card_.card().step();
    }
    const std::vector<model::Frame> last = card_.take_sent();
    ASSERT_EQ(last.size(), 1u) << doorbell;
    answer(last);
    card_.step(20);
  }
}

/// Lengths and counts of segments that do not fit together are refused, and nothing is written.
TEST_F(Several, FramesThatNoCardSendsAreRefused) {
  std::vector<uint8_t> payload(kPageBytes, 0xCD);
  model::Frame frame = frame_of(1000);
  ASSERT_TRUE(card_.send(frame, payload.data(), 1000, false, true));
  frame.segments = 3;
  ASSERT_TRUE(card_.send(frame, payload.data(), 1000, false, true));
  frame = frame_of(1000);
  ASSERT_TRUE(card_.send(frame, payload.data(), 256, false, true));  // shorter than it says
  frame.length = 4097;
  frame.segments = 16;
  ASSERT_TRUE(card_.send(frame, payload.data(), kPageBytes, false, true));
  frame = frame_of(4096);
  ASSERT_TRUE(card_.send(frame, payload.data(), kPageBytes, false, true));
  card_.step(4);
  regs::SharedCpl cpls[3];
  std::memcpy(cpls, card_.completions(1), sizeof(cpls));
  EXPECT_EQ(cpls[0].length, 1000u);
  EXPECT_EQ(cpls[1].length, 4096u);
  EXPECT_EQ(cpls[1].segments, 16u);
  EXPECT_EQ(cpls[2].status, 0u);
  EXPECT_EQ(card_.card().statistics().port.rx_errors, 1u);
  EXPECT_EQ(std::memcmp(card_.buffers() + kPageBytes, payload.data(), kPageBytes), 0);
  card_.check();
}

/// A run that carries its bytes ends at the first message whose bytes are not all in the frame.
TEST_F(Several, ARunWithItsBytes) {
  constexpr uint32_t kBytes = 2048;
  std::vector<uint8_t> bytes(kBytes, 0xCD);
  const model::PullPart parts[] = {{64, 600, 0}, {664, 1001, 0}, {kBytes - 299, 300, 0}};
  std::memcpy(bytes.data(), parts, sizeof(parts));
  model::Frame frame = frame_of(kBytes);
  frame.type = model::FrameType::kPull;
  frame.op = model::kBytesBehind;
  frame.segments = 3;
  ASSERT_TRUE(card_.send(frame, bytes.data(), kBytes, false, true));
  card_.step(2);
  const auto* const answer = reinterpret_cast<const model::Frame*>(card_.answers());
  EXPECT_EQ(answer->type, model::FrameType::kPulled);
  EXPECT_EQ(answer->ssize, 2u);
  EXPECT_EQ(answer->op, static_cast<uint8_t>(model::Answer::kError));
  for (uint32_t i = 0; i < 2; ++i) {
    regs::SharedCpl cpl;
    std::memcpy(&cpl, card_.completions(1) + i * sizeof(cpl), sizeof(cpl));
    EXPECT_EQ(cpl.status, 1u << 31);
    EXPECT_EQ(cpl.length, model::padded(parts[i].length));
    const uint8_t* const at = card_.buffers() + i * kPageBytes;
    EXPECT_EQ(std::memcmp(at, bytes.data() + parts[i].address, parts[i].length), 0);
    EXPECT_EQ(at[parts[i].length], 0) << "padding";
  }
  card_.check();
}

}  // namespace
}  // namespace rio::test
