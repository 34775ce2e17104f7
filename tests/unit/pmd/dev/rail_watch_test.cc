#include "pmd/dev/rail_watch.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/support/fake_bus.hpp"
#include "tests/support/fake_card.hpp"
#include "tests/support/log_capture.hpp"

namespace rio::pmd {
namespace {

using test::FakeBus;
using test::FakeCard;
using test::LogCapture;

constexpr uint32_t kMagic = 0x52494F43;
constexpr uint32_t kStatus = 0x6008;
constexpr uint32_t kControl = 0x700C;
constexpr uint32_t kEnable = 1u << 16;
constexpr uint32_t kTimeoutMs = 2;

class RailWatchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fake_.add_rail();
    ASSERT_EQ(Card::look(bus_, &card_), 0);
    fake_.log.clear();
  }
  [[nodiscard]] int create(uint32_t period_us = 250) {
    return RailWatch::create(*card_, period_us, kTimeoutMs, &watch_);
  }
  /// The words that the card writes.
  uint32_t* words() { return reinterpret_cast<uint32_t*>(bus_.memory(0)); }
  void write_status(uint32_t number) {
    words()[0] = words()[15] = number;
    words()[6] = kMagic;
  }

  LogCapture log_;
  FakeCard fake_;
  FakeBus bus_{&fake_};
  std::unique_ptr<Card> card_;
  std::unique_ptr<RailWatch> watch_;
};

TEST_F(RailWatchTest, WordsAreWrittenThenTheCommand) {
  ASSERT_EQ(create(), 0);
  EXPECT_EQ(fake_.log,
            (std::vector<FakeCard::Write>{
                {0x7000, 0x34000000}, {0x7004, 0x12}, {0x7008, 250}, {kControl, 0x10001}}));
  EXPECT_EQ(bus_.live_blocks(), 1u);
  fake_.log.clear();
  EXPECT_EQ(watch_->close(), 0);
  EXPECT_EQ(fake_.log, (std::vector<FakeCard::Write>{{kControl, 2}}));
  EXPECT_EQ(bus_.live_blocks(), 0u);
  EXPECT_EQ(watch_->close(), 0);
  watch_.reset();
  EXPECT_EQ(fake_.log.size(), 1u);
  ASSERT_EQ(create(), 0);
  watch_.reset();
  EXPECT_EQ(fake_.words[kStatus] & kEnable, 0u) << "the destructor closes";
}

TEST_F(RailWatchTest, CardsWithoutTheBlockAndPeriodsOfNothingAreRefused) {
  EXPECT_EQ(create(0), -EINVAL);
  EXPECT_TRUE(LogCapture::one_line_with({"0 us", "at least 1"}));
  FakeCard other;
  FakeBus bus(&other);
  std::unique_ptr<Card> card;
  ASSERT_EQ(Card::look(bus, &card), 0);
  EXPECT_EQ(RailWatch::create(*card, 1, kTimeoutMs, &watch_), -ENOTSUP);
  EXPECT_TRUE(LogCapture::one_line_with({"no rails block", "destID"}));
  EXPECT_TRUE(other.log.empty());
  EXPECT_EQ(watch_, nullptr);
}

TEST_F(RailWatchTest, ABlockThatWasLeftEnabledIsDisabledFirst) {
  fake_.words[kControl] = fake_.words[kStatus] = kEnable | 0xFFFF;
  ASSERT_EQ(create(), 0);
  ASSERT_EQ(fake_.log.size(), 5u);
  EXPECT_EQ(fake_.log.front(), (FakeCard::Write{kControl, 0})) << "the generation wraps";
  EXPECT_EQ(fake_.log.back(), (FakeCard::Write{kControl, kEnable | 1}));
}

TEST_F(RailWatchTest, ARefusalNamesTheWords) {
  fake_.answers = false;
  bus_.on_poll = [this] { fake_.words[kStatus] = fake_.words[kControl] & 0xFFFF; };
  EXPECT_EQ(create(), -EPROTO);
  EXPECT_TRUE(LogCapture::one_line_with({"refuses", "0x1234000000", "250 us"}));
  EXPECT_EQ(watch_, nullptr);
  EXPECT_EQ(bus_.live_blocks(), 0u);
}

TEST_F(RailWatchTest, MemoryStaysWhereTheCardMayStillWrite) {
  ASSERT_EQ(create(), 0);
  fake_.answers = false;
  EXPECT_EQ(watch_->close(), -ETIMEDOUT);
  EXPECT_TRUE(LogCapture::one_line_with({"no answer", "reset the card"}));
  EXPECT_EQ(bus_.live_blocks(), 1u);
}

TEST_F(RailWatchTest, ACardThatIsGoneWritesNoMore) {
  ASSERT_EQ(create(), 0);
  fake_.gone = true;
  EXPECT_EQ(watch_->close(), -ENODEV);
  EXPECT_EQ(bus_.live_blocks(), 0u);
  EXPECT_EQ(create(), -ENODEV);
}

TEST_F(RailWatchTest, WithoutMemoryNothingIsEnabled) {
  bus_.allocs_until_failure = 0;
  EXPECT_EQ(create(), -ENOMEM);
  EXPECT_TRUE(fake_.log.empty());
}

TEST_F(RailWatchTest, ReadingTakesNoAccessToTheBar) {
  ASSERT_EQ(create(), 0);
  const uint64_t reads = fake_.reads;
  const uint64_t polls = bus_.polls;
  RailState state{};
  EXPECT_EQ(watch_->read(&state), -EPROTO) << "nothing was written yet";
  for (const uint32_t number : {1u, 0xFFFFFFFFu, 0u, 1u}) {
    write_status(number);
    words()[2] = number + 5;
    EXPECT_EQ(watch_->read(&state), 0);
    EXPECT_EQ(state.sequence, number);
    EXPECT_EQ(state.tx_bytes, number + 5);
  }
  EXPECT_EQ(fake_.reads, reads);
  EXPECT_EQ(bus_.polls, polls);
  EXPECT_EQ(watch_->close(), 0);
  EXPECT_EQ(watch_->read(&state), -ENODEV);
}

TEST_F(RailWatchTest, ATornStatusIsLookedAtAgainForABoundedTime) {
  ASSERT_EQ(create(), 0);
  write_status(5);
  words()[0] = 6;
  const uint64_t polls = bus_.polls;
  RailState state{.sequence = 99};
  EXPECT_EQ(watch_->read(&state), -EAGAIN);
  EXPECT_EQ(state.sequence, 99u);
  EXPECT_EQ(bus_.polls - polls, RailWatch::kLooksMost - 1);
  bus_.on_poll = [this, left = 3]() mutable {
    if (--left == 0) {
      write_status(6);
    }
  };
  EXPECT_EQ(watch_->read(&state), 0);
  EXPECT_EQ(state.sequence, 6u);
}

/// The card writes its words in order, as fast as it can, and each status that is taken is of one
/// write.
TEST_F(RailWatchTest, AStatusThatIsBeingWrittenIsNotMixed) {
  constexpr uint32_t kTaken = 20'000;
  ASSERT_EQ(create(), 0);
  write_status(0);
  bus_.on_poll = nullptr;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    uint32_t number = 0xFFFFF000;  // the number wraps
    const auto put = [this](size_t word, uint32_t value) {
      __atomic_store_n(words() + word, value, __ATOMIC_RELEASE);
    };
    while (!stop.load(std::memory_order_relaxed)) {
      ++number;
      put(0, number);
      put(2, number ^ 0x5A5A5A5A);
      put(3, ~number);
      put(5, number + 17);
      put(6, kMagic);
      put(15, number);
    }
  });
  uint32_t taken = 0;
  uint32_t mixed = 0;
  for (uint32_t looks = 0; taken < kTaken && looks < 100 * kTaken; ++looks) {
    RailState state{};
    if (watch_->read(&state) != 0 || state.sequence == 0) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    mixed += state.tx_bytes != (state.sequence ^ 0x5A5A5A5A) || state.rx_bytes != ~state.sequence ||
                     state.time_ticks != state.sequence + 17
                 ? 1
                 : 0;
  }
  stop = true;
  writer.join();
  EXPECT_GT(taken, 0u);
  EXPECT_EQ(mixed, 0u);
}

}  // namespace
}  // namespace rio::pmd
