// Push mode from the driver to the emulated card and back: each message once, in order.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/random.hpp"
#include "pmd/api/riopmd.hpp"

namespace rio {
namespace {

constexpr uint32_t kId = 9;
constexpr uint32_t kBuffers = 64;
constexpr uint32_t kMessages = 500;
constexpr uint32_t kPollsMax = 100000000;

class PushMode : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    EndpointConfig config;
    config.dest_id = kId;
    config.message_buffers = 2 * kBuffers;
    config.queues.tx_log2 = 5;
    config.queues.start_index = 0xFFFFFF00;  // the indices wrap
    config.queues.push = true;
    ASSERT_EQ(Endpoint::open(GetParam(), config, &end_), 0);
    ASSERT_EQ(end_->wait_link(10000), 0);
    ASSERT_EQ(end_->buffers()->get(buffers_.data(), 2 * kBuffers), 2 * kBuffers);
    for (uint32_t i = 0; i < kBuffers; ++i) {
      give(i);
    }
  }
  void give(uint64_t buffer) {
    const pmd::RxBuffer empty{end_->buffers()->iova(buffers_[buffer]), buffer};
    ASSERT_EQ(end_->shared().post(&empty, 1), 1);
  }
  /// A message of 8 to 80 bytes that begins with its number: by address, or inline.
  [[nodiscard]] pmd::TxMessage message(uint32_t number) {
    const uint32_t place = number % kBuffers;
    uint8_t* const bytes = end_->buffers()->va(buffers_[kBuffers + place]);
    pmd::TxMessage one{};
    one.length_bytes = static_cast<uint16_t>(8 + 8 * random_.below(10));
    std::memset(bytes, 0x80 | static_cast<int>(number), one.length_bytes);
    std::memcpy(bytes, &number, sizeof number);
    one.dest_id = kId;
    one.cookie = number;
    one.flags = pmd::TxFlags::kOrder;
    if (random_.below(2) == 0) {
      one.iova = end_->buffers()->iova(buffers_[kBuffers + place]);
    } else {
      one.data = bytes;
      one.flags |= pmd::TxFlags::kInline;
    }
    return one;
  }
  /// Sends bursts of 1 to 8 as far as there is room.
  void send() {
    std::array<pmd::TxMessage, 8> some;
    const uint32_t count = 1 + random_.below(8);
    // A place is used again when its message has completed.
    if (sent_ + count > kMessages || sent_ + count - done_ > kBuffers) {
      return;
    }
    for (uint32_t i = 0; i < count; ++i) {
      some[i] = message(sent_ + i);
    }
    sent_ += end_->tx().burst(some.data(), static_cast<uint16_t>(count));
    ASSERT_EQ(end_->tx().last_reject(), pmd::Reject::kNone);
  }
  void receive() {
    pmd::TxDone done[8];
    done_ += end_->tx().reap(done, 8);
    pmd::RxMessage got[8];
    const uint16_t n = end_->shared().burst(got, 8);
    for (uint32_t i = 0; i < n; ++i) {
      const uint8_t* const bytes = end_->buffers()->va(buffers_[got[i].cookie]);
      uint32_t number = 0;
      std::memcpy(&number, bytes, sizeof number);
      ASSERT_EQ(number, received_);
      for (uint32_t k = sizeof number; k < got[i].length_bytes; ++k) {
        ASSERT_EQ(bytes[k], 0x80 | (number & 0xFF)) << "byte " << k << " of message " << number;
      }
      ++received_;
      give(got[i].cookie);
    }
  }

  std::unique_ptr<Endpoint> end_;
  std::array<uint32_t, 2 * kBuffers> buffers_{};
  base::Random random_{3};
  uint32_t sent_ = 0;
  uint32_t done_ = 0;
  uint32_t received_ = 0;
};

TEST_P(PushMode, EachMessageComesOnceAndInOrder) {
  for (uint32_t i = 0; i < kPollsMax && (done_ < kMessages || received_ < kMessages); ++i) {
    send();
    receive();
    if (HasFatalFailure()) {
      return;
    }
  }
  EXPECT_EQ(done_, kMessages);
  EXPECT_EQ(received_, kMessages);
  EXPECT_EQ(end_->tx().stats().failed, 0u);
  EXPECT_EQ(end_->tx().stats().bad_completions, 0u);
  EXPECT_GT(end_->tx().pushed(), kMessages / 20);
  EXPECT_LT(end_->tx().pushed(), kMessages);
  EXPECT_EQ(end_->close(), 0);
}

INSTANTIATE_TEST_SUITE_P(Cards, PushMode,
                         testing::Values("emu:loop,push_slots=1", "emu:loop,push_slots=8",
                                         "emu:loop,push_slots=3,exact=1",
                                         "emu:loop,push_slots=3,pcie=7",
                                         "emu:loop,push_slots=3,stepping=thread"));

}  // namespace
}  // namespace rio
