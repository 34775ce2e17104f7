// Frames that no card sends. tests/fuzz/wire_fuzz finds such; what it found stands here.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/fuzz/fuzz_card.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kRingBytes = 16384;  // of FuzzCard's wire

/// The reader comes back to the frame each time that it has taken it.
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

/// As another process may: what was checked is what is used.
TEST(ForeignFrames, HeadersThatChangeWhileTheyAreLookedAt) {
  if (model::kThreadSanitizer) {
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
