// Frames that no card sends: cases that tests/fuzz/wire_fuzz has found.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "tests/fuzz/fuzz_card.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kRingBytes = 16384;  // of FuzzCard's wire

/// The frame fills the ring, so the reader meets it again each time that it has read it.
TEST(ForeignFrames, AnAnswerAsLongAsTheRingDoesNotHoldTheCard) {
  for (const bool exact : {false, true}) {
    FuzzCard card(exact, 0);
    card.start_all();
    model::Frame answer{};
    answer.bytes = kRingBytes;
    answer.type = model::FrameType::kResponse;
    answer.dest = FuzzCard::kId;
    EXPECT_FALSE(card.send(answer, nullptr, 0, true, false)) << "its length is believed";
    card.write(regs::id::gen_req(), 7);
    card.step(40);
    EXPECT_EQ(*card.word(regs::id::gen_ack()), 7U);
  }
}

/// A message of one segment with that many bytes.
model::Frame message_of(uint32_t source, uint32_t bytes) {
  model::Frame frame{};
  frame.type = model::FrameType::kMessage;
  frame.source = source;
  frame.dest = FuzzCard::kId;
  frame.length = static_cast<uint16_t>(bytes);
  frame.place = 5;  // mailbox 5: the shared queue
  frame.segments = 1;
  frame.ssize = 256;
  return frame;
}

TEST(ForeignFrames, SourcesThatAreNotTheSendersAreDropped) {
  constexpr uint8_t kPayload[64] = {};
  for (const bool exact : {false, true}) {
    FuzzCard card(exact, 0);
    card.start_all();
    card.post_receive();
    card.in().first_source = 10;
    card.in().more_sources = 1;
    uint32_t taken = 0;
    for (const uint32_t source : {10u, 9u, 11u, 12u, 0u, 0xFFFFFFFFu, 11u}) {
      const model::Frame frame = message_of(source, sizeof kPayload);
      EXPECT_TRUE(card.send(frame, kPayload, sizeof kPayload, false, true));
      card.step(2);
      taken += source == 10 || source == 11 ? 1 : 0;
      EXPECT_EQ(card.card().statistics().port.rx_packets, taken) << source;
    }
  }
}

/// Delivers fewer bytes than the card asks for.
class ShortPuller final : public model::Puller {
 public:
  explicit ShortPuller(uint64_t bytes) : bytes_(bytes) {}
  uint64_t pull(std::span<const model::PullPiece> pieces) override {
    uint64_t left = bytes_;
    for (const model::PullPiece& piece : pieces) {
      const uint64_t here = std::min<uint64_t>(left, piece.len_bytes);
      std::memset(piece.to, 0xAB, here);
      left -= here;
    }
    return bytes_ - left;
  }

 private:
  uint64_t bytes_;
};

/// Send a run of messages to be pulled, at addresses that are never read. @param lengths of the
/// messages.
void send_run(FuzzCard& card, std::span<const uint32_t> lengths) {
  std::vector<model::PullPart> parts;
  for (const uint32_t length : lengths) {
    parts.push_back({0x1000, length, 0});
  }
  const auto bytes = static_cast<uint32_t>(parts.size() * sizeof(model::PullPart));
  model::Frame frame = message_of(2, static_cast<uint16_t>(bytes));
  frame.type = model::FrameType::kPull;
  EXPECT_TRUE(card.send(frame, reinterpret_cast<const uint8_t*>(parts.data()), bytes, false, true));
}
constexpr uint32_t kOne[] = {200};

/// The shared queue's completion `index`.
regs::SharedCpl completion(FuzzCard& card, uint32_t index) {
  regs::SharedCpl cpl;
  std::memcpy(&cpl, card.completions(1) + index * sizeof cpl, sizeof cpl);
  return cpl;
}

TEST(ForeignFrames, AMessageThatCannotBePulledIsReceivedInPart) {
  for (const bool exact : {false, true}) {
    FuzzCard card(exact, 0);
    card.start_all();
    card.post_receive();
    ShortPuller puller(200 + 100);
    card.in().puller = &puller;
    send_run(card, kOne);
    send_run(card, kOne);
    card.step(2);
    EXPECT_EQ(completion(card, 0).status, 0u | 1u << 31);
    EXPECT_EQ(completion(card, 0).length, 200);
    EXPECT_EQ(completion(card, 1).status,
              static_cast<uint32_t>(regs::Status::kReceiveTimeout) | 1u << 31);
    EXPECT_EQ(completion(card, 1).length, 0);
    card.check();
  }
}

/// The sender gives the message up while the card pulls it: the pulled bytes do not count.
TEST(ForeignFrames, AMessageThatIsRevokedMeanwhileIsNotReceived) {
  class Revoker final : public model::Puller {
   public:
    explicit Revoker(FuzzCard& card) : card_(card) {}
    uint64_t pull(std::span<const model::PullPiece> pieces) override {
      card_.ring_to_card()[offsetof(model::Frame, type)] =
          static_cast<uint8_t>(model::FrameType::kRevoked);
      return pieces[0].len_bytes;
    }

   private:
    FuzzCard& card_;
  };
  FuzzCard card(false, 0);
  card.start_all();
  card.post_receive();
  Revoker puller(card);
  card.in().puller = &puller;
  send_run(card, kOne);
  card.step(2);
  EXPECT_EQ(completion(card, 0).status,
            static_cast<uint32_t>(regs::Status::kReceiveTimeout) | 1u << 31);
  EXPECT_EQ(card.card().statistics().port.rx_errors, 1u);
}

/// One answer reports how many messages of a run were taken, and the answer to the next one.
TEST(ForeignFrames, ARunEndsAtTheFirstMessageThatIsNotTaken) {
  constexpr uint64_t kAll = 4096;
  struct {
    std::vector<uint32_t> lengths;
    uint64_t gives;
    uint16_t taken;
    model::Answer answer;
  } const cases[] = {
      {{200, 100, 256}, kAll, 3, model::Answer::kDone},
      {{200, 0, 256}, kAll, 1, model::Answer::kError},
      {{200, 4097}, kAll, 1, model::Answer::kError},
      {{0xFFFFFFFF, 200}, kAll, 0, model::Answer::kError},
      {{200, 100, 256}, 299, 1, model::Answer::kError},
      {{}, kAll, 0, model::Answer::kError},
      {std::vector<uint32_t>(model::kAnnouncedMax, 8), kAll, 8, model::Answer::kRetry},
      {std::vector<uint32_t>(model::kAnnouncedMax + 1, 8), kAll, 0, model::Answer::kError},
  };
  for (const auto& each : cases) {
    FuzzCard card(false, 0);
    card.start_all();
    card.post_receive();
    ShortPuller puller(each.gives);
    card.in().puller = &puller;
    send_run(card, each.lengths);
    card.step(2);
    const auto* const answer = reinterpret_cast<const model::Frame*>(card.answers());
    EXPECT_EQ(answer->type, model::FrameType::kPulled) << each.lengths.size();
    EXPECT_EQ(answer->ssize, each.taken) << each.lengths.size();
    EXPECT_EQ(answer->op, static_cast<uint8_t>(each.answer)) << each.lengths.size();
    EXPECT_EQ(card.card().statistics().port.rx_errors,
              each.answer == model::Answer::kError ? 1u : 0u);
    card.check();
  }
}

/// The receiver may not read the sender's memory, so the bytes follow the frame. Nothing outside of
/// the frame is read.
TEST(ForeignFrames, ARunMayCarryItsBytes) {
  constexpr uint32_t kBytes = 512;
  constexpr auto kOk = model::Answer::kDone;
  constexpr auto kBad = model::Answer::kError;
  const struct {
    std::vector<model::PullPart> parts;
    uint8_t segments;
    uint16_t taken;
    model::Answer answer;
  } cases[] = {
      {{{64, 200, 0}, {264, 100, 0}}, 2, 2, kOk},
      {{{kBytes - 200, 200, 0}}, 1, 1, kOk},
      {{{kBytes - 199, 200, 0}}, 1, 0, kBad},
      {{{64, 200, 0}, {kBytes + 1, 1, 0}}, 2, 1, kBad},
      {{{~0ull - 8, 200, 0}}, 1, 0, kBad},
      {{{64, 0xFFFFFFFF, 0}}, 1, 0, kBad},
      {{{64, 200, 0}}, 0, 0, kBad},
      {{{64, 200, 0}}, kBytes / sizeof(model::PullPart) + 1, 0, kBad},
  };
  for (const auto& each : cases) {
    FuzzCard card(false, 0);
    card.start_all();
    card.post_receive();
    std::vector<uint8_t> bytes(kBytes, 0xCD);
    std::memcpy(bytes.data(), each.parts.data(), each.parts.size() * sizeof(model::PullPart));
    model::Frame frame = message_of(2, kBytes);
    frame.type = model::FrameType::kPull;
    frame.op = model::kBytesBehind;
    frame.segments = each.segments;
    ASSERT_TRUE(card.send(frame, bytes.data(), kBytes, false, true));
    card.step(2);
    const auto* const answer = reinterpret_cast<const model::Frame*>(card.answers());
    EXPECT_EQ(answer->type, model::FrameType::kPulled);
    EXPECT_EQ(answer->ssize, each.taken) << each.parts[0].address << ' ' << each.parts[0].length;
    EXPECT_EQ(answer->op, static_cast<uint8_t>(each.answer));
    for (uint32_t i = 0; i < each.taken; ++i) {
      EXPECT_EQ(completion(card, i).status, 1u << 31);
      EXPECT_EQ(completion(card, i).length, model::padded(each.parts[i].length));
    }
    card.check();
  }
}

/// Counts calls.
class CountingPuller final : public model::Puller {
 public:
  uint64_t pull(std::span<const model::PullPiece> pieces) override {
    ++calls;
    uint64_t bytes = 0;
    for (const model::PullPiece& piece : pieces) {
      std::memset(piece.to, 0xAB, piece.len_bytes);
      bytes += piece.len_bytes;
    }
    return bytes;
  }
  uint32_t calls = 0;
};

/// Small messages between two runs do not keep the card from pulling both at once. A frame that
/// needs an answer of its own, such as a doorbell, does.
TEST(ForeignFrames, RunsArePulledTogether) {
  for (const bool beside : {true, false}) {
    FuzzCard card(false, 0);
    card.start_all();
    card.post_receive();
    CountingPuller puller;
    card.in().puller = &puller;
    const uint8_t bytes[8] = {};
    send_run(card, kOne);
    model::Frame between = message_of(2, sizeof bytes);
    between.type = beside ? model::FrameType::kMessage : model::FrameType::kDoorbell;
    EXPECT_TRUE(card.send(between, bytes, sizeof bytes, false, true));
    send_run(card, kOne);
    card.step(1);
    EXPECT_EQ(puller.calls, beside ? 0u : 1u);  // the host sees the message first
    card.step(2);
    EXPECT_EQ(puller.calls, beside ? 1u : 2u);
    for (uint32_t i = 0; i < (beside ? 3 : 2); ++i) {
      EXPECT_EQ(completion(card, i).status, 1u << 31) << i;
    }
    card.check();
  }
}

TEST(ForeignFrames, NothingIsPulledWithoutAnAgreement) {
  FuzzCard card(false, 0);
  card.start_all();
  card.post_receive();
  send_run(card, kOne);
  card.step(2);
  EXPECT_EQ(card.card().statistics().port.rx_errors, 1u);
  EXPECT_EQ(completion(card, 0).status, 0u);
}

/// Another process may change a header at any time: the card uses the values that it has checked.
TEST(ForeignFrames, HeadersThatChangeWhileTheyAreRead) {
  if (base::kThreadSanitizer) {
    GTEST_SKIP() << "this is a race, on purpose";
  }
  for (uint32_t round = 0; round < 60; ++round) {
    FuzzCard card(round % 3 == 0, 0);
    card.start_all();
    card.post_receive();
    std::atomic<bool> stop{false};
    std::thread flipper([&card, &stop, round] {
      for (uint32_t x = round; !stop.load(std::memory_order_relaxed);) {
        x = x * 1664525u + 1013904223u;
        const uint32_t at = (x >> 12) % 2048;
        if (at % 32 >= 4) {
          __atomic_store_n(card.ring_to_card() + at, static_cast<uint8_t>(x >> 24),
                           __ATOMIC_RELAXED);
        }
      }
    });
    constexpr uint8_t kPayload[256] = {};
    for (uint32_t i = 0; i < 40; ++i) {
      model::Frame frame{};
      frame.type = round % 2 == 0 ? model::FrameType::kMessage : model::FrameType::kRequest;
      frame.op = static_cast<uint8_t>(regs::DmaOp::kNwrite);
      frame.source = 2;
      frame.dest = FuzzCard::kId;
      frame.length = static_cast<uint16_t>(1 + i * 6 % 250);
      frame.segments = 1;
      frame.ssize = 256;
      frame.place = static_cast<uint8_t>(i);
      static_cast<void>(card.send(frame, kPayload, frame.length, false, true));
      card.step(2);
      card.drop_sent();
    }
    stop = true;
    flipper.join();
    card.check();
  }
}

}  // namespace
}  // namespace rio::test
