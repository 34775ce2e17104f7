// A host that waits for messages uses a shorter step (Card::step_to_receive), here called a look.
// It must have the same result as full steps.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
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
      default:
        break;
    }
    return frame;
  }
  void send(const model::Frame& frame) {
    uint8_t payload[512];
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
  void compare(uint32_t round) {
    ASSERT_EQ(std::memcmp(stepped_.completions(1), looking_.completions(1), kPageBytes), 0)
        << round;
    ASSERT_EQ(std::memcmp(stepped_.buffers(), looking_.buffers(), kBuffers * kPageBytes), 0)
        << round;
    ASSERT_EQ(stepped_.take_answers(), looking_.take_answers()) << round;
  }
  /// Compares the counters, which makes the next look a full step.
  void compare_counts(uint32_t round) {
    const model::PortCounts a = stepped_.card().statistics().port;
    const model::PortCounts b = looking_.card().statistics().port;
    ASSERT_EQ(std::memcmp(&a, &b, sizeof(a)), 0) << round;
  }

  static constexpr uint32_t kSource = 1;  // the dedicated queues are for the source after this one
  FuzzCard stepped_{false, 0, 1};
  FuzzCard looking_{false, 0, 1};
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

/// A change of a card takes effect at once, however many looks are left until the next full step.
TEST_P(Look, ALookSeesEachChangeAtOnce) {
  const auto plain = [] {
    model::Frame frame{};
    frame.type = model::FrameType::kMessage;
    frame.source = kSource;
    frame.dest = FuzzCard::kId;
    frame.length = 24;
    frame.place = 9;
    frame.segments = 1;
    frame.ssize = 256;
    return frame;
  };
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
