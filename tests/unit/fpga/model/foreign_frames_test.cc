// Frames that no card sends. tests/fuzz/wire_fuzz finds such; what it found stands here.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace rio::test
