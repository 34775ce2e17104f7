// Long runs of messages (kPull): one frame announces more than are pulled in one go, and a run
// grows while it is in flight.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <span>
#include <vector>

#include "tests/fuzz/fuzz_card.hpp"

namespace rio::test {
namespace {

using model::Answer;
using model::Frame;
using model::FrameType;
using Control = regs::tx_desc::Control;

constexpr uint32_t kPeer = 2;
constexpr uint32_t kLength = 256;  // of each message received

/// Gives the low byte of each message's number, which is its address / kLength.
class Numbers final : public model::Puller {
 public:
  uint64_t pull(std::span<const model::PullPiece> pieces) override {
    ++calls;
    uint64_t pulled = 0;
    for (const model::PullPiece& piece : pieces) {
      for (uint32_t i = 0; i < piece.len_bytes && pulled < gives; ++i, ++pulled) {
        piece.to[i] = static_cast<uint8_t>((piece.from + i) / kLength);
      }
    }
    gives -= pulled;
    return pulled;
  }
  uint64_t gives = ~0ull;
  uint32_t calls = 0;
};

/// A card with a dedicated ring for mailbox 0 that holds a long run.
class LongRuns : public testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kRing = 8;
  static constexpr uint32_t kLog2 = 8;
  static constexpr uint32_t kBuffers = 8;

  LongRuns() : card_(GetParam(), 0) {
    namespace qp = regs::qp;
    card_.start_all();
    card_.in().puller = &puller_;
    card_.write(qp::ring_control(0, kRing), 2);
    card_.step(40);
    card_.write(qp::ring_size(0, kRing), kLog2 | kLog2 << 8);
    card_.write(qp::ring_control(0, kRing), 3 | 1u << 16);
    card_.step(40);
  }
  void post(uint32_t count) {
    for (; count > 0; --count, ++tail_) {
      const regs::DedicatedDesc entry{FuzzCard::buffers_iova() + tail_ % kBuffers * 4096, kLength,
                                      tail_ * 3};
      std::memcpy(card_.ring(kRing) + (tail_ & ((1u << kLog2) - 1)) * sizeof(entry), &entry,
                  sizeof(entry));
    }
    card_.write(regs::qp::tail(0, kRing), tail_);
  }
  /// Announces messages. @param first number of the first one.
  void send(uint32_t first, uint32_t count) {
    std::vector<model::PullPart> parts;
    for (uint32_t i = first; i < first + count; ++i) {
      parts.push_back({uint64_t{i} * kLength, kLength, 0});
    }
    Frame frame{};
    frame.type = FrameType::kPull;
    frame.source = kPeer;
    frame.dest = FuzzCard::kId;
    frame.length = static_cast<uint16_t>(parts.size() * sizeof(model::PullPart));
    EXPECT_TRUE(card_.send(frame, reinterpret_cast<const uint8_t*>(parts.data()), frame.length,
                           false, true));
  }
  /// Steps the card once, which is to pull messages whose numbers go up from `first`.
  void expect_step(uint32_t first, uint32_t count, Answer answer) {
    card_.step(1);
    const std::vector<Frame> answers = card_.take_answer_frames();
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].type, FrameType::kPulled);
    EXPECT_EQ(answers[0].ssize, count);
    EXPECT_EQ(answers[0].op, static_cast<uint8_t>(answer));
    for (uint32_t i = 0; i < count; ++i, ++seen_) {
      regs::EntryCpl cpl;
      std::memcpy(&cpl, card_.completions(kRing) + seen_ * sizeof(cpl), sizeof(cpl));
      ASSERT_EQ(cpl.status, 1u << 31) << seen_;
      ASSERT_EQ(cpl.cookie, seen_ * 3);
      ASSERT_EQ(cpl.bytes, kLength);
      if (i + kBuffers >= count) {  // not overwritten yet
        ASSERT_EQ(card_.buffers()[seen_ % kBuffers * 4096], static_cast<uint8_t>(first + i));
      }
    }
  }
  void expect_nothing(uint32_t steps) {
    card_.step(steps);
    EXPECT_TRUE(card_.take_answer_frames().empty());
  }
  /// Posts entries of the shared queue.
  void give_buffers(uint32_t count) {
    const uint64_t buffer = FuzzCard::buffers_iova() + (kBuffers + 1) * 4096;
    for (uint32_t i = 0; i < count; ++i) {
      std::memcpy(card_.ring(1) + i * sizeof(buffer), &buffer, sizeof(buffer));
    }
    card_.write(regs::qp::tail(0, 1), count);
  }
  void send_short() {
    const Frame message = FuzzCard::plain_message(kPeer, 8);
    const uint8_t bytes[8] = {};
    EXPECT_TRUE(card_.send(message, bytes, sizeof(bytes), false, true));
  }

  Numbers puller_;
  FuzzCard card_;
  uint32_t tail_ = 0;
  uint32_t seen_ = 0;
};

TEST_P(LongRuns, AreTakenInPartsWithAnAnswerEach) {
  constexpr uint32_t kCount = 2 * model::kPullPartsMax + 30;
  post(kCount + 10);
  send(0, kCount);
  send(1000, 10);
  expect_step(0, model::kPullPartsMax, Answer::kDone);
  expect_step(model::kPullPartsMax, model::kPullPartsMax, Answer::kDone);
  expect_step(2 * model::kPullPartsMax, 30, Answer::kDone);
  EXPECT_EQ(puller_.calls, 3u);
  expect_step(1000, 10, Answer::kDone);
  expect_nothing(4);
  card_.check();
}

TEST_P(LongRuns, ArePulledTogetherUpToTheMaximum) {
  post(80);
  send(0, 4);
  send(1000, 76);
  card_.step(1);
  const std::vector<Frame> answers = card_.take_answer_frames();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].ssize, 4u);
  EXPECT_EQ(answers[1].ssize, model::kPullPartsMax - 4);
  EXPECT_EQ(puller_.calls, 1u);
  seen_ = model::kPullPartsMax;
  expect_step(1000 + model::kPullPartsMax - 4, 80 - model::kPullPartsMax, Answer::kDone);
}

/// The sender of a run that is long enough for a pull of its own has its answer before the next.
TEST_P(LongRuns, ArePulledAloneIfTheyAreLong) {
  post(80);
  send(0, 40);
  send(1000, 40);
  expect_step(0, 40, Answer::kDone);
  expect_step(1000, 40, Answer::kDone);
}

/// Frames behind a run are read before it is taken to its end: a short message among them may be
/// the one for which the sender of other data waits.
TEST_P(LongRuns, AreOvertakenByShortMessages) {
  give_buffers(1);
  post(2 * model::kPullPartsMax);
  send(0, 2 * model::kPullPartsMax);
  send_short();
  card_.step(1);
  regs::SharedCpl cpl;
  std::memcpy(&cpl, card_.completions(1), sizeof(cpl));
  EXPECT_EQ(cpl.status, 1u << 31);
  EXPECT_EQ(puller_.calls, 0u) << "the host sees the message before the copy";
  card_.step(1);
  EXPECT_EQ(puller_.calls, 1u);
  card_.step(1);
  EXPECT_EQ(puller_.calls, 2u);
}

/// Short messages in each step do not keep a run from being pulled.
TEST_P(LongRuns, ArePutOffOnce) {
  constexpr uint32_t kShort = 6;
  give_buffers(kShort);
  post(3 * model::kPullPartsMax);
  send(0, 3 * model::kPullPartsMax);
  for (uint32_t sent = 0; sent < kShort; ++sent) {
    EXPECT_EQ(puller_.calls, sent / 2);
    send_short();
    card_.step(1);
  }
  EXPECT_EQ(puller_.calls, kShort / 2);
}

/// A doorbell must not take as long as a copy.
TEST_P(LongRuns, AreNotPulledForAHostThatOnlySends) {
  post(10);
  send(0, 10);
  card_.card().step_to_send();
  EXPECT_EQ(puller_.calls, 0u);
  expect_step(0, 10, Answer::kDone);
}

TEST_P(LongRuns, ArePulledNowAndThenForAHostThatOnlySends) {
  post(10);
  send(0, 10);
  for (uint32_t sends = 0; sends < 64 && puller_.calls == 0; ++sends) {
    card_.card().step_to_send();
  }
  EXPECT_EQ(puller_.calls, 1u);
}

TEST_P(LongRuns, EndAtAMessageWithoutAnEntry) {
  post(model::kPullPartsMax + 5);
  send(0, model::kPullPartsMax + 10);
  send(1000, 10);
  expect_step(0, model::kPullPartsMax, Answer::kDone);
  card_.step(1);
  const std::vector<Frame> answers = card_.take_answer_frames();
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].ssize, 5u);
  EXPECT_EQ(answers[0].op, static_cast<uint8_t>(Answer::kRetry));
  EXPECT_EQ(answers[1].ssize, 0u);
  seen_ += 5;
  post(10);
  expect_nothing(4);
  send(2000, 10);
  expect_step(2000, 10, Answer::kDone);
}

/// The bytes of the second part do not come: no later message of the frame may be taken.
TEST_P(LongRuns, EndAtAMessageThatCannotBePulled) {
  puller_.gives = (model::kPullPartsMax + 3ull) * kLength;
  post(200);
  send(0, 3 * model::kPullPartsMax);
  expect_step(0, model::kPullPartsMax, Answer::kDone);
  expect_step(model::kPullPartsMax, 3, Answer::kError);
  expect_nothing(4);
  EXPECT_EQ(puller_.calls, 2u);
}

/// A frame that is revoked between two parts is over, and the next one begins with its own first
/// message.
TEST_P(LongRuns, MayBeRevokedBetweenParts) {
  post(200);
  send(0, model::kPullPartsMax + 30);
  expect_step(0, model::kPullPartsMax, Answer::kDone);
  card_.ring_to_card()[offsetof(Frame, type)] = static_cast<uint8_t>(FrameType::kRevoked);
  expect_nothing(4);
  send(1000, 10);
  expect_step(1000, 10, Answer::kDone);
}

INSTANTIATE_TEST_SUITE_P(Modes, LongRuns, testing::Bool());

/// A card that sends long messages to a partner that pulls.
class GrowingRuns : public testing::Test {
 protected:
  static constexpr uint32_t kMbox = 2;

  GrowingRuns() : card_(false, 0, 1) {
    card_.start_all();
    card_.out().pulls = &pulls_;
    card_.out().announced_max = model::kAnnouncedMax;
  }
  void post(uint32_t count, uint32_t mbox = kMbox, uint32_t length = 4096, uint32_t order = 1) {
    for (; count > 0; --count, ++tail_) {
      regs::TxDesc desc{};
      desc.control = Control::op.put(static_cast<uint32_t>(regs::TxOp::kMessage)) |
                     Control::ssize.put(14) | Control::mbox.put(mbox) | Control::order.put(order);
      desc.dest_id = kPeer;
      desc.cookie = tail_ + 100;
      desc.length = length;
      desc.addr = FuzzCard::buffers_iova();
      std::memcpy(card_.ring(0) + tail_ % (1u << FuzzCard::kLog2) * sizeof(desc), &desc,
                  sizeof(desc));
    }
    card_.write(regs::qp::tail(0, 0), tail_);
    card_.step(1);
  }
  /// Expects one frame that announces so many messages. @return its place.
  uint8_t announced(uint32_t count) {
    const std::vector<Frame> sent = card_.take_sent();
    EXPECT_EQ(sent.size(), 1u);
    if (sent.size() != 1) {
      return 0;
    }
    EXPECT_EQ(sent[0].type, FrameType::kPull);
    EXPECT_EQ(sent[0].length / sizeof(model::PullPart), count);
    return sent[0].place;
  }
  void answer(uint8_t place, uint16_t taken, Answer answer) {
    Frame frame{};
    frame.type = FrameType::kPulled;
    frame.source = kPeer;
    frame.dest = FuzzCard::kId;
    frame.place = place;
    frame.ssize = taken;
    frame.op = static_cast<uint8_t>(answer);
    EXPECT_TRUE(card_.send(frame, nullptr, 0, true, true));
    card_.step(1);
  }
  /// Expects the next completions of messages to have these numbers.
  void completed(std::span<const uint32_t> numbers) {
    for (const uint32_t number : numbers) {
      regs::TxCpl cpl;
      std::memcpy(&cpl, card_.completions(0) + seen_ * sizeof(cpl), sizeof(cpl));
      EXPECT_EQ(cpl.cookie, number + 100) << seen_;
      EXPECT_EQ(cpl.index, number);
      EXPECT_EQ(cpl.status, 1u << 31);
      ++seen_;
    }
    regs::TxCpl next;
    std::memcpy(&next, card_.completions(0) + seen_ * sizeof(next), sizeof(next));
    EXPECT_EQ(next.status, 0u) << "there is one more than " << seen_;
  }
  FuzzCard card_;
  uint32_t tail_ = 0;

 private:
  const std::atomic<uint32_t> pulls_{1};
  uint32_t seen_ = 0;
};

TEST_F(GrowingRuns, MessagesJoinTheRunInFlight) {
  post(2);
  const uint8_t place = announced(2);
  post(3);
  EXPECT_TRUE(card_.take_sent().empty());
  post(2, kMbox + 1);  // behind them in the ring, but to another mailbox
  announced(2);
  post(1);
  EXPECT_TRUE(card_.take_sent().empty());
  completed({});
  answer(place, 2, Answer::kDone);
  completed(std::vector<uint32_t>{0, 1});
  EXPECT_EQ(announced(4), place);
  answer(place, 4, Answer::kDone);
  completed(std::vector<uint32_t>{2, 3, 4, 7});
}

/// A short message of the same order does not wait at the head of the ring, where it would hold up
/// what is behind it.
TEST_F(GrowingRuns, ShortMessagesJoinTheRunInFlight) {
  post(2);
  const uint8_t place = announced(2);
  post(1, kMbox, 256);
  post(2, kMbox + 1);
  const uint8_t other = announced(2);
  answer(other, 2, Answer::kDone);
  completed(std::vector<uint32_t>{3, 4});
  answer(place, 2, Answer::kDone);
  completed(std::vector<uint32_t>{0, 1});
  EXPECT_EQ(announced(1), place);
  answer(place, 1, Answer::kDone);
  completed(std::vector<uint32_t>{2});
}

/// Without order a short message takes a letter of its own.
TEST_F(GrowingRuns, ShortMessagesWithoutOrderGoByThemselves) {
  post(4, kMbox, 4096, 0);
  announced(4);
  post(1, kMbox, 256, 0);
  const std::vector<Frame> sent = card_.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].type, FrameType::kMessage);
}

TEST_F(GrowingRuns, AnAnswerMayBeForAPart) {
  post(5);
  const uint8_t place = announced(5);
  post(2);
  answer(place, 2, Answer::kDone);
  completed(std::vector<uint32_t>{0, 1});
  EXPECT_TRUE(card_.take_sent().empty()) << "the other three are still announced";
  answer(place, 4, Answer::kDone);  // more than are announced
  completed({});
  answer(place, 1, Answer::kRetry);
  completed(std::vector<uint32_t>{2});
  card_.step(40);
  EXPECT_EQ(announced(4), place) << "refused, so sent again, with what has joined";
}

/// [T16]
TEST_F(GrowingRuns, NoLaterMessageToTheMailboxPassesOneThatHasJoined) {
  post(2);
  const uint8_t place = announced(2);
  post(1);
  post(1, kMbox + regs::kMultiMailboxes, 100, 0);
  EXPECT_EQ(card_.take_sent().size(), 1u) << "it needs no letter of the run's mailbox";
  post(1, kMbox, 100, 0);
  EXPECT_TRUE(card_.take_sent().empty());
  answer(place, 2, Answer::kDone);
  card_.step(1);
  const std::vector<Frame> sent = card_.take_sent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[0].type, FrameType::kPull);
  EXPECT_EQ(sent[1].type, FrameType::kMessage);
  EXPECT_EQ(sent[1].place % regs::kMailboxes, kMbox);
  post(1, kMbox, 100, 0);
  EXPECT_EQ(card_.take_sent().size(), 1u) << "those before it have left, and it asks for no order";
}

TEST_F(GrowingRuns, LaterMessagesGoWhenTheRunHasFailed) {
  post(2);
  const uint8_t place = announced(2);
  post(1);
  post(1, kMbox, 100, 0);
  EXPECT_TRUE(card_.take_sent().empty());
  answer(place, 0, Answer::kError);
  card_.step(1);
  const std::vector<Frame> sent = card_.take_sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].type, FrameType::kMessage);
}

TEST_F(GrowingRuns, WithoutOrderOnlyFullMessagesArePulled) {
  post(4, 1, 2048, 0);
  const std::vector<Frame> sent = card_.take_sent();
  EXPECT_EQ(sent.size(), 4u);
  for (const Frame& frame : sent) {
    EXPECT_EQ(frame.type, FrameType::kMessage);
  }
  post(4, 2, 4096, 0);
  announced(4);
}

}  // namespace
}  // namespace rio::test
