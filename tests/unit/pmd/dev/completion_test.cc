// Completions of which some words are not there yet, or never come: all ones. docs/decisions/0039
#include "pmd/dev/completion.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "pmd/dev/dedicated_rx_queue.hpp"
#include "pmd/dev/notice_queue.hpp"
#include "pmd/dev/shared_rx_queue.hpp"
#include "pmd/dev/tx_queue.hpp"
#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kOnes = 0xFFFFFFFF;

template <class Queue>
class TornTest : public test::QueueFixture<Queue> {
 protected:
  /// Opens a ring of four entries.
  void open(uint32_t ring, uint32_t entry_bytes, uint32_t cpl_bytes, uint32_t start = 0) {
    this->open_ring({.ring = ring,
                     .log2 = 2,
                     .start = start,
                     .entry_bytes = entry_bytes,
                     .cpl_bytes = cpl_bytes});
  }
  /// Writes the words but those of `missing`, one bit each, which come in the second poll: until
  /// then the driver sees what it has left there.
  void arrive_torn(uint32_t at, std::vector<uint32_t> words, uint32_t missing) {
    std::vector<uint32_t> first = words;
    std::vector<uint32_t> left(words.size());
    std::memcpy(left.data(), this->script_.completion(*this->bus_, at), words.size() * 4);
    for (size_t i = 0; i < words.size(); ++i) {
      first[i] = (missing >> i & 1) != 0 ? left[i] : words[i];
    }
    this->arrive_words(at, first);
    this->bus_->polls = 0;
    this->bus_->on_poll = [this, at, words] {
      if (this->bus_->polls == 2) {
        this->arrive_words(at, words);
      }
    };
  }
};

class TornDedicated : public TornTest<DedicatedRxQueue> {
 protected:
  void open_and_post(uint32_t start = 0) {
    open(9, 16, 16, start);
    const DedicatedEntry entries[] = {{0x1000, 10, 256}, {0x2000, 11, 256}, {0x3000, 12, 256}};
    expect_tail(start + 3);
    ASSERT_EQ(queue_->post(entries, 3), 3);
  }
  test::Cookies reap() {
    return cookies<EntryDone>(4, [this](EntryDone* out, uint16_t n) {
      n = queue_->reap(out, n);
      EXPECT_TRUE(std::all_of(out, out + n, [](const EntryDone& d) { return d.bytes == 256; }));
      return n;
    });
  }
};

TEST_F(TornDedicated, WordsMayComeInAnyOrder) {
  for (uint32_t missing = 1; missing < 8; ++missing) {
    open_and_post();
    arrive_words(1, {0, 1, 256, 0});
    arrive_torn(0, {0, 0, 256, 0}, missing);
    EXPECT_EQ(reap(), (test::Cookies{10, 11})) << missing;
    EXPECT_EQ(bus_->polls, missing == 1 ? 0u : 2u) << "the cookie is not used";
    EXPECT_EQ(queue_->stats().bad_completions, 0u);
  }
}

TEST_F(TornDedicated, AnIndexThatStaysWrongIsDroppedAndTheRingGoesOn) {
  for (const uint32_t wrong : {kOnes, 3u}) {
    open_and_post();
    arrive_words(0, {0, wrong, 256, 0});
    arrive_words(1, {0, 0, 256, 0});
    EXPECT_EQ(reap(), (test::Cookies{10}));
    EXPECT_EQ(bus_->polls, kTornLooks);
    EXPECT_EQ(queue_->stats().bad_completions, 1u);
    arrive_words(2, {0, 1, 256, 0});
    arrive_words(3, {0, 2, 256, 0});
    EXPECT_EQ(reap(), (test::Cookies{11, 12}));
    EXPECT_EQ(bus_->polls, kTornLooks);
  }
}

TEST_F(TornDedicated, AnIndexOfAllOnesIsTakenInTheEnd) {
  open_and_post(0xFFFFFFFE);
  for (uint32_t i = 0; i < 3; ++i) {
    arrive_words(0xFFFFFFFE + i, {0, 0xFFFFFFFE + i, 256, 0});
  }
  EXPECT_EQ(reap(), (test::Cookies{10, 11, 12}));
  EXPECT_EQ(bus_->polls, kTornLooks);
  EXPECT_EQ(queue_->stats().bad_completions, 0u);
}

TEST_F(TornDedicated, ATakenCompletionKeepsItsPhaseOnly) {
  open_and_post();
  arrive_words(0, {1, 0, 256, 0});
  arrive_words(1, {2, 1, 256, 0});
  arrive_words(2, {3, 2, 256, 0});
  ASSERT_EQ(reap(), (test::Cookies{10, 11, 12}));
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t words[4];
    std::memcpy(words, script_.completion(*bus_, i), sizeof words);
    EXPECT_EQ(words[0] & words[1] & words[2], kOnes) << i;
    EXPECT_EQ(words[3], i < 3 ? kOnes : kOnes >> 1) << i;
  }
}

class TornDoorbells : public TornTest<DoorbellQueue> {};

TEST_F(TornDoorbells, WordsMayComeInAnyOrderOrStay) {
  open(2, 0, 16);
  DoorbellEvent got[4];
  arrive_torn(0, {1, 2, 3, 4}, 0b111);
  expect_tail(5);
  ASSERT_EQ(queue_->burst(got, 4), 1);
  EXPECT_EQ(bus_->polls, 2u);
  EXPECT_EQ(got[0].source, 1u);
  EXPECT_EQ(got[0].dest_id, 2u);
  EXPECT_EQ(got[0].time_ticks, 3u);
  EXPECT_EQ(got[0].info, 4u);
  bus_->polls = 3;
  arrive_words(1, {1, 2, kOnes, 4});
  arrive_words(2, {1, 2, 5, 4});
  expect_tail(7);
  ASSERT_EQ(queue_->burst(got, 4), 2);
  EXPECT_EQ(bus_->polls, 3 + kTornLooks);
  EXPECT_EQ(got[0].time_ticks, kOnes);
  EXPECT_EQ(got[1].time_ticks, 5u);
}

class TornTx : public TornTest<TxQueue> {};

TEST_F(TornTx, WordsMayComeInAnyOrderOrStay) {
  open(0, 32, 16);
  const TxMessage message = {
      .iova = 8, .cookie = 7, .dest_id = 1, .length_bytes = 8, .mbox = 0, .flags = 0};
  for (uint32_t index = 0; index < 8; ++index) {
    expect_tail(index + 1);
    ASSERT_EQ(queue_->burst(&message, 1), 1);
    arrive_torn(index, {0, index, index == 7 ? kOnes : 9, 0}, index);
    TxDone done{};
    ASSERT_EQ(queue_->reap(&done, 1), 1) << index;
    EXPECT_EQ(bus_->polls, index == 7 ? kTornLooks : index < 2 ? 0 : 2) << index;
    EXPECT_EQ(done.time_ticks, index == 7 ? kOnes : 9);
    EXPECT_EQ(done.cookie, 7u);
  }
  EXPECT_EQ(queue_->stats().bad_completions, 0u);
}

// In the later laps the driver has left completions of the laps before, each taken alone.
TEST_F(TornTx, WordsOfSinglesMayComeInAnyOrder) {
  const TxMessage message = {
      .iova = 8, .cookie = 7, .dest_id = 1, .length_bytes = 8, .mbox = 0, .flags = 0};
  for (const uint32_t start : {0u, 0xFFFFFFF1u}) {
    open(0, 32, 16, start);
    for (uint32_t i = 0; i < 64; ++i) {
      const uint32_t index = start + i;
      const uint32_t missing = i % 7 < 4 ? 0 : i % 8;
      expect_tail(index + 1);
      ASSERT_EQ(queue_->burst(&message, 1), 1);
      arrive_torn(index, {0, index, i, 0}, missing);
      TxDone done{};
      ASSERT_EQ(queue_->reap(&done, 1), 1) << i;
      EXPECT_EQ(done.time_ticks, i);
      EXPECT_EQ(done.cookie, 7u);
      if (index != kOnes) {
        EXPECT_EQ(bus_->polls, missing < 2 ? 0u : 2u) << i;
      }
    }
    EXPECT_EQ(queue_->stats().messages, 64u);
    EXPECT_EQ(queue_->stats().bad_completions, 0u);
  }
}

TEST_F(TornTx, AnIndexOfAllOnesMayBeAnotherOne) {
  open(0, 32, 16, 0xFFFFFFFE);
  for (uint32_t i = 0; i < 3; ++i) {
    const TxMessage message = {
        .iova = 8, .cookie = i, .dest_id = 1, .length_bytes = 8, .mbox = 0, .flags = 0};
    expect_tail(0xFFFFFFFF + i);
    ASSERT_EQ(queue_->burst(&message, 1), 1);
  }
  TxDone done{};
  arrive_torn(0xFFFFFFFE, {0, 0xFFFFFFFE, 1, 0}, 0);
  ASSERT_EQ(queue_->reap(&done, 1), 1);
  arrive_torn(0xFFFFFFFF, {0, 0, 1, 0}, 0b10);  // of index 0, which is not there
  ASSERT_EQ(queue_->reap(&done, 1), 1);
  EXPECT_EQ(done.cookie, 2u);
}

class TornShared : public TornTest<SharedRxQueue> {};

TEST_F(TornShared, WordsOfLongCompletionsMayComeInAnyOrder) {
  open(1, 8, 32);
  for (uint32_t index = 0; index < 7; ++index) {
    const RxBuffer buffer{0x1000, 5};
    expect_tail(index + 1);
    ASSERT_EQ(queue_->post(&buffer, 1), 1);
    arrive_torn(index, {1, 2, 64 | 1 << 16, index, 3, 4, 0, 0}, 1u << index);
    RxMessage got{};
    ASSERT_EQ(queue_->burst(&got, 1), 1) << index;
    EXPECT_EQ(bus_->polls, 2u) << index;
    EXPECT_EQ(got.source, 1u);
    EXPECT_EQ(got.dest_id, 2u);
    EXPECT_EQ(got.length_bytes, 64u);
    EXPECT_EQ(got.arrival, 3u);
    EXPECT_EQ(got.time_ticks, 4u);
  }
}

}  // namespace
}  // namespace rio::pmd
