// A host that waits for messages uses a shorter step (Card::step_to_receive), here called a look.
// It must have the same result as full steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "tests/fuzz/fuzz_card.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kPageBytes = 4096;
constexpr uint32_t kBuffers = 8;

/// Two cards with the same input: one makes full steps, the other one looks.
class Look : public testing::TestWithParam<uint32_t> {
 protected:
  Look() {
    for (FuzzCard* card : {&stepped_, &looking_}) {
      card->start_all();
      card->post_receive();
      card->in().first_source = kSource;
      card->in().more_sources = 1;
    }
    work(200);  // both cards know the time, which stands still from now on
  }
  uint32_t random(uint32_t below) {
    x_ = x_ * 1664525u + 1013904223u;
    return (x_ >> 8) % below;
  }
  /// Mostly a plain message; sometimes one field is not that of a plain message.
  model::Frame any_frame() {
    model::Frame frame{};
    source_ = random(16) == 0 ? kSource + random(2) : source_;
    frame.type = model::FrameType::kMessage;
    frame.source = source_;
    frame.dest = FuzzCard::kId;
    frame.length = static_cast<uint16_t>(1 + random(256));
    frame.place = static_cast<uint8_t>(random(256));
    frame.segments = 1;
    frame.ssize = 256;
    switch (random(24)) {
      case 0:
        frame.source = kSource + 2;
        break;
      case 1:
        frame.dest = FuzzCard::kId + 1;
        break;
      case 2:
        frame.length = random(2) == 0 ? 0 : 257;
        break;
      case 3:
        frame.segments = 2;
        break;
      case 4:
        frame.ssize = 128;
        break;
      case 5:
        frame.segment = 1;
        break;
      case 6:
        frame.type = model::FrameType::kDoorbell;
        break;
      case 7:
        frame.op = 1;
        break;
      case 8:
      case 9:
      case 10:
      case 11:
        frame.length = static_cast<uint16_t>(257 + random(4096 - 256));
        frame.segments = static_cast<uint8_t>((frame.length + 255u) / 256 - (random(8) == 0));
        frame.place = static_cast<uint8_t>(random(4) | random(4) << 6);
        break;
      default:
        break;
    }
    return frame;
  }
  static model::Frame plain() { return FuzzCard::plain_message(kSource, 24); }
  void send(const model::Frame& frame) {
    uint8_t payload[4096];
    for (uint8_t& byte : payload) {
      byte = static_cast<uint8_t>(random(256));
    }
    for (FuzzCard* card : {&stepped_, &looking_}) {
      ASSERT_TRUE(card->send(frame, payload, (frame.length + 7u) & ~7u, false, true));
    }
  }
  void work(uint32_t looks) {
    for (uint32_t i = 0; i < looks; ++i) {
      stepped_.card().step();
    }
    looking_.look(looks);
  }
  void post(uint32_t count) {
    for (; count > 0 && tail_ - taken() < kBuffers; --count) {
      for (FuzzCard* card : {&stepped_, &looking_}) {
        const uint64_t addr = FuzzCard::buffers_iova() + tail_ % kBuffers * kPageBytes;
        std::memcpy(card->ring(1) + tail_ % (1u << FuzzCard::kLog2) * sizeof(addr), &addr,
                    sizeof(addr));
        card->write(regs::qp::tail(0, 1), tail_ + 1);
      }
      ++tail_;
    }
  }
  /// Number of buffers that the card has filled; each has a completion.
  uint32_t taken() {
    uint32_t n = seen_;
    for (;; ++n) {
      const uint32_t size = 1u << FuzzCard::kLog2;
      regs::SharedCpl cpl;
      std::memcpy(&cpl, stepped_.completions(1) + n % size * sizeof(cpl), sizeof(cpl));
      const bool phase = (cpl.status >> 31) != 0;
      const bool even = (n / size) % 2 == 0;
      if (phase != even) {
        return seen_ = n;
      }
    }
  }
  /// Without dedicated queues for mailbox 0 its messages are plain.
  void stop_dedicated() {
    for (FuzzCard* card : {&stepped_, &looking_}) {
      for (const uint32_t ring : {8u, 12u}) {
        card->write(regs::qp::ring_control(0, ring), 2u << 16);
      }
      for (uint32_t i = 0; i < 200; ++i) {
        card->card().step();
      }
    }
  }
  void compare_completions(uint32_t round) {
    ASSERT_EQ(std::memcmp(stepped_.completions(1), looking_.completions(1), kPageBytes), 0)
        << round;
    ASSERT_EQ(std::memcmp(stepped_.buffers(), looking_.buffers(), kBuffers * kPageBytes), 0)
        << round;
  }
  void compare(uint32_t round) {
    compare_completions(round);
    ASSERT_EQ(stepped_.take_answers(), looking_.take_answers()) << round;
  }
  /// Compares the counters, which makes the next look a full step.
  void compare_counts(uint32_t round) {
    const model::PortCounts a = stepped_.card().statistics().port;
    const model::PortCounts b = looking_.card().statistics().port;
    ASSERT_EQ(std::memcmp(&a, &b, sizeof(a)), 0) << round;
  }

  static constexpr uint32_t kSource = 1;  // the dedicated queues are for the source after this one
  // Of cards with two queue pairs only the first one runs.
  FuzzCard stepped_{false, 0, 1 + GetParam() % 2};
  FuzzCard looking_{false, 0, 1 + GetParam() % 2};
  uint32_t x_ = GetParam();
  uint32_t source_ = kSource;
  uint32_t tail_ = kBuffers;
  uint32_t seen_ = 0;
};
INSTANTIATE_TEST_SUITE_P(Seeds, Look, testing::Range(1u, 9u));

TEST_P(Look, ALookFindsWhatAStepFinds) {
  for (uint32_t round = 0; round < 400; ++round) {
    for (uint32_t n = random(8) == 0 ? 1 + random(6) : 1; n > 0; --n) {
      send(any_frame());
    }
    work(2 + random(3));  // the first look takes one of several messages, the second one the others
    if (random(3) == 0) {
      post(1 + random(4));
    }
    work(4);  // finds nothing, so that the next message arrives alone
    compare(round);
    if (round % 32 == 31) {
      compare_counts(round);
    }
  }
  EXPECT_GT(taken(), 100u);
}

TEST_P(Look, TheNextLookOrStepAnswersASingleMessage) {
  send(plain());
  looking_.look(4);  // the first one of a sender takes a full step
  ASSERT_EQ(looking_.take_answers(), std::vector<uint16_t>{9});
  for (const bool looks : {true, false}) {
    looking_.look(4);
    send(plain());
    looking_.look(1);
    EXPECT_TRUE(looking_.take_answers().empty()) << "the host may reply first";
    if (looks) {
      looking_.look(1);
    } else {
      looking_.card().step();
    }
    EXPECT_EQ(looking_.take_answers(), std::vector<uint16_t>{9});
    looking_.look(4);
    EXPECT_TRUE(looking_.take_answers().empty());
  }
}

/// Looks go on while a second queue pair runs.
TEST(LookOfTwo, GoesOnWhileTheSecondPairRuns) {
  namespace qp = regs::qp;
  FuzzCard card(false, 0, 2);
  card.start_all();
  card.post_receive();
  const model::Frame frame = FuzzCard::plain_message(1, 8);
  const uint8_t payload[8] = {};
  const auto answers_after_a_look = [&] {
    card.look(4);
    card.take_answers();
    EXPECT_TRUE(card.send(frame, payload, sizeof payload, false, true));
    card.look(1);
    return card.take_answers().size();
  };
  card.look(1);
  answers_after_a_look();  // the first one of a sender takes a full step
  EXPECT_EQ(answers_after_a_look(), 0u) << "the next look answers";
  for (const auto& [to, from] : {std::pair{qp::ring_base_lo(1, 3), qp::ring_base_lo(0, 3)},
                                 std::pair{qp::ring_base_hi(1, 3), qp::ring_base_hi(0, 3)},
                                 std::pair{qp::ring_cbase_lo(1, 3), qp::ring_cbase_lo(0, 3)},
                                 std::pair{qp::ring_cbase_hi(1, 3), qp::ring_cbase_hi(0, 3)},
                                 std::pair{qp::ring_size(1, 3), qp::ring_size(0, 3)}}) {
    card.write(to, *card.word(from));
  }
  card.write(qp::ring_control(1, 3), 1 | 1u << 16);
  card.step(40);
  EXPECT_EQ(answers_after_a_look(), 0u) << "a look, no step";
}

/// A message of several segments that comes alone lands as by a step, with the zeros behind it, and
/// is answered by the next look, as one of one segment.
TEST_P(Look, ASingleMessageOfSeveralSegments) {
  stop_dedicated();
  send(plain());
  work(4);
  compare(0);
  for (const uint32_t length_bytes :
       {257u, 264u, 280u, 287u, 288u, 289u, 312u, 319u, 511u, 512u, 513u, 1048u, 4065u, 4096u}) {
    post(1);
    for (FuzzCard* card : {&stepped_, &looking_}) {
      std::memset(card->buffers(), 0xA5, kBuffers * kPageBytes);
    }
    model::Frame frame = plain();
    frame.length = static_cast<uint16_t>(length_bytes);
    frame.segments = static_cast<uint8_t>((length_bytes + 255) / 256);
    frame.place = 0;
    send(frame);
    work(1);
    compare_completions(length_bytes);
    ASSERT_TRUE(looking_.take_answers().empty()) << "a step has taken " << length_bytes;
    ASSERT_EQ(stepped_.take_answers().size(), 1u);
    work(4);
    ASSERT_EQ(looking_.take_answers().size(), 1u);
  }
}

/// A look leaves a message to the next step whose buffer ends before the message does.
TEST_P(Look, ASingleMessageThatEndsBehindTheMemory) {
  stop_dedicated();
  for (FuzzCard* card : {&stepped_, &looking_}) {
    // In place of the second buffer.
    const uint64_t addr = FuzzCard::end_iova() - 1024;
    std::memcpy(card->ring(1) + sizeof(addr), &addr, sizeof(addr));
  }
  send(plain());
  work(4);
  compare(0);
  model::Frame frame = plain();
  frame.length = 2000;
  frame.segments = 8;
  frame.place = 0;
  send(frame);
  work(4);
  compare(1);
  EXPECT_EQ(stepped_.card().statistics().refused, looking_.card().statistics().refused);
  EXPECT_NE(looking_.card().statistics().refused, 0u);
}

/// A host that closes its card after a message makes no look or step any more.
TEST_P(Look, ACardThatLeavesAnswersASingleMessage) {
  send(plain());
  looking_.look(4);
  ASSERT_EQ(looking_.take_answers(), std::vector<uint16_t>{9});
  send(plain());
  looking_.look(1);
  ASSERT_TRUE(looking_.take_answers().empty());
  looking_.card().leave();
  EXPECT_EQ(looking_.take_answers(), std::vector<uint16_t>{9});
}

/// A card that has answered a request of one partner answers the next message to the sender of that
/// message.
TEST_P(Look, AnswersGoToTheSenders) {
  looking_.answer_apart(kSource + 1);
  stepped_.answer_apart(kSource + 1);
  send(plain());
  work(1);  // the first message comes shortly after the last step
  work(4);
  send(plain());
  work(4);
  ASSERT_EQ(looking_.take_answers().size(), 2u);
  model::Frame read{};
  read.type = model::FrameType::kRequest;
  read.op = static_cast<uint8_t>(regs::DmaOp::kNread);
  read.source = kSource + 1;
  read.dest = FuzzCard::kId;
  read.length = 8;
  send(read);
  work(4);
  ASSERT_EQ(looking_.take_apart_frames().size(), 1u);
  send(plain());
  work(4);
  EXPECT_EQ(looking_.take_answers(), std::vector<uint16_t>{9});
  EXPECT_TRUE(looking_.take_apart_frames().empty());
}

/// Messages in quick succession are taken and answered by one look, together.
TEST_P(Look, AStreamIsAnsweredTogether) {
  send(plain());
  work(4);
  send(plain());
  work(2);  // the look that takes it, and the one that answers it and finds nothing
  ASSERT_EQ(looking_.take_answers().size(), 2u);
  for (uint32_t n = 0; n < 3; ++n) {
    send(plain());
  }
  work(1);
  compare_completions(0);
  const std::vector<model::Frame> answers = looking_.take_answer_frames();
  ASSERT_EQ(answers.size(), 1u);
  EXPECT_EQ(answers[0].length, 3 * sizeof(uint16_t));
  EXPECT_EQ(stepped_.take_answers().size(), 5u);
}

/// No message of a stream waits for its answer once the look that takes it is over: its host may
/// compute from then on.
TEST_P(Look, AnEndlessStreamIsAnswered) {
  send(plain());
  work(4);
  uint32_t answered = 0;
  for (uint32_t n = 1; n < 400; ++n) {
    send(plain());
    work(1);
    post(1);
    answered += static_cast<uint32_t>(looking_.take_answers().size());
    EXPECT_GE(answered, n);
    stepped_.drop_sent();
  }
  compare_completions(0);
}

/// The looking card sends messages, too, and its peer answers them.
class Exchange : public Look {
 protected:
  /// Post and send the next message. @return its place.
  uint8_t send_own() {
    const regs::TxDesc desc = {.control = regs::tx_desc::Control::ssize.put(14),
                               .dest_id = kSource,
                               .cookie = 5 + posted_,
                               .length = 24,
                               .addr = FuzzCard::buffers_iova(),
                               .aux = 0};
    std::memcpy(looking_.ring(0) + posted_ * sizeof(desc), &desc, sizeof(desc));
    looking_.write(regs::qp::tail(0, 0), ++posted_);
    looking_.card().step_to_send();
    const std::vector<model::Frame> sent = looking_.take_sent();
    EXPECT_EQ(sent.size(), 1u);
    return sent.empty() ? uint8_t{0} : sent[0].place;
  }
  void answer(uint8_t place) {
    model::Frame acks{};
    acks.type = model::FrameType::kAcks;
    acks.source = kSource;
    acks.dest = FuzzCard::kId;
    acks.length = sizeof(uint16_t);
    const uint8_t ack[8] = {place};
    ASSERT_TRUE(looking_.send(acks, ack, sizeof(ack), true, true));
  }
  bool is_completed(uint32_t index) {
    regs::TxCpl cpl;
    std::memcpy(&cpl, looking_.completions(0) + index * sizeof(cpl), sizeof(cpl));
    return cpl.status != 0 && cpl.index == index && cpl.cookie == 5 + index;
  }
  /// Send and receive once, by steps: short ways serve those that a step has served.
  void begin() {
    answer(send_own());
    send(plain());
    looking_.card().step_to_reap();
    EXPECT_TRUE(is_completed(0));
    looking_.look(4);
    EXPECT_EQ(looking_.take_answers().size(), 1u);
  }
  /// Post an access of remote memory, which only a step finds.
  void post_for_step() {
    const regs::DmaDesc bad = {
        .control = 0, .dest_id = 0, .length = 0, .cookie = kCookie, .rio_addr = 0, .bus_addr = 0};
    std::memcpy(looking_.ring(kDma), &bad, sizeof(bad));
    looking_.write(regs::qp::tail(0, kDma), 1);
  }
  bool was_stepped() {
    regs::EntryCpl cpl;
    std::memcpy(&cpl, looking_.completions(kDma), sizeof(cpl));
    return cpl.cookie == kCookie;
  }

 private:
  static constexpr uint32_t kCookie = 77;
  static constexpr auto kDma = static_cast<uint32_t>(regs::Ring::kDma);
  uint32_t posted_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Seeds, Exchange, testing::Range(1u, 3u));

/// The peer's answers come with its reply: they are not left for a later step, which finds many.
TEST_P(Exchange, TheLookThatAnswersTakesThePeersAnswers) {
  answer(send_own());
  send(plain());
  looking_.look(1);  // a full step, as above: it takes no answers
  looking_.look(4);
  EXPECT_FALSE(is_completed(0)) << "a look is for messages only";
  send(plain());
  looking_.look(2);
  EXPECT_TRUE(is_completed(0));
}

/// A host that sends and receives in turn reaps each message: that is no reason for a step.
TEST_P(Exchange, AReapTakesAnswersAndMessages) {
  begin();
  const uint8_t place = send_own();
  send(plain());
  looking_.look(1);
  ASSERT_EQ(looking_.take_answers().size(), 0u) << "the answer follows";
  post_for_step();
  answer(place);
  send(plain());
  looking_.card().step_to_reap();
  EXPECT_TRUE(is_completed(1));
  EXPECT_GE(looking_.take_answers().size(), 1u);
  EXPECT_FALSE(was_stepped());
}

/// A host that goes on without messages of its peer needs steps: timers and other frames wait.
TEST_P(Exchange, ReapsWithoutMessagesAreSteps) {
  begin();
  answer(send_own());
  send(plain());
  looking_.look(1);
  post_for_step();
  for (uint32_t i = 0; i < 4; ++i) {
    looking_.card().step_to_reap();
    EXPECT_FALSE(was_stepped());
  }
  looking_.card().step_to_reap();
  EXPECT_TRUE(was_stepped());
}

/// A change of a card takes effect at once, however many looks are left until the next full step.
TEST_P(Look, ALookSeesEachChangeAtOnce) {
  for (uint32_t i = 0; i < 3; ++i) {
    send(plain());
    work(5);
  }
  compare(0);
  ASSERT_EQ(taken(), 3u);
  looking_.card().hold_ring(0, 1, true);
  stepped_.card().hold_ring(0, 1, true);
  send(plain());
  work(2);
  compare(1);
  EXPECT_EQ(taken(), 3u) << "refused";
  looking_.card().hold_ring(0, 1, false);
  stepped_.card().hold_ring(0, 1, false);
  send(plain());
  work(2);
  EXPECT_EQ(taken(), 4u);
  looking_.card().set_link(false);
  stepped_.card().set_link(false);
  send(plain());
  work(2);
  compare(2);
  EXPECT_EQ(taken(), 4u) << "lost";
  looking_.card().vanish();
  looking_.look(4);
  EXPECT_EQ(*looking_.word(regs::id::magic()), regs::kAllOnes);
}

}  // namespace
}  // namespace rio::test
