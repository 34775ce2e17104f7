#include "pmd/dev/shared_rx_queue.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/queue_fixture.hpp"

namespace rio::pmd {
namespace {

using test::Bytes;
using test::Cookies;

class SharedRxQueueTest : public test::QueueFixture<SharedRxQueue> {
 protected:
  void SetUp() override { open(2, 0); }

  void open(uint32_t log2, uint32_t start) {
    open_ring({.ring = 1, .log2 = log2, .start = start, .entry_bytes = 8, .cpl_bytes = 32});
  }
  void give(std::vector<RxBuffer> buffers, uint32_t tail) {
    expect_tail(tail);
    ASSERT_EQ(queue_->post(buffers.data(), static_cast<uint16_t>(buffers.size())), buffers.size());
  }
  void arrive(uint32_t at, uint32_t index, uint32_t length = 64, uint32_t status = 0) {
    arrive_words(at, {0x51, 0xD1, length | 3u << 16 | 0x85u << 24, index, 500 + index, 900 + index,
                      0, status});
  }
  Cookies burst(uint16_t n = 32) {
    return cookies<RxMessage>(
        n, [this](RxMessage* out, uint16_t most) { return queue_->burst(out, most); });
  }
};

TEST_F(SharedRxQueueTest, DescriptorHasTheseBytes) {
  give({{0x1122334455667700, 1}, {0x100, 2}}, 2);
  const uint8_t* const at = script_.entry(*bus_, 0);
  EXPECT_EQ(Bytes(at, at + 16), (Bytes{0x00, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  //
                                       0x00, 0x01, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(queue_->mmio().writes, 1u);
  EXPECT_EQ(queue_->mmio().reads, 0u);
  EXPECT_EQ(queue_->outstanding(), 2);
  EXPECT_EQ(queue_->free_count(), 2);
}

TEST_F(SharedRxQueueTest, PostWithoutBuffersDoesNothing) {
  EXPECT_EQ(queue_->post(nullptr, 0), 0);
  EXPECT_EQ(queue_->mmio().writes, 0u);
}

TEST_F(SharedRxQueueTest, PostsBuffersWithoutAList) {
  open(2, 3);  // beyond the end of the ring
  expect_tail(6);
  std::vector<size_t> asked;
  EXPECT_EQ(queue_->post_each(3,
                              [&](size_t i) {
                                asked.push_back(i);
                                return RxBuffer{0x100 * (i + 1), 7 + i};
                              }),
            3u);
  EXPECT_EQ(asked, (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(entry(3), (Bytes{0x00, 0x01, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(entry(4), (Bytes{0x00, 0x02, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(entry(5), (Bytes{0x00, 0x03, 0, 0, 0, 0, 0, 0}));
  for (uint32_t i = 3; i < 6; ++i) {
    arrive(i, i);
  }
  EXPECT_EQ(burst(), (Cookies{7, 8, 9}));
  expect_tail(10);
  EXPECT_EQ(queue_->post_each(9, [](size_t i) { return RxBuffer{0x100, i}; }), 4u) << "full";
}

TEST_F(SharedRxQueueTest, PostsNoneIfOneIsNotAligned) {
  EXPECT_EQ(queue_->post_each(3,
                              [](size_t i) {
                                return RxBuffer{i == 1 ? 0x101u : 0x100u, i};
                              }),
            0u);
  EXPECT_EQ(queue_->last_reject(), Reject::kAlignment);
  EXPECT_EQ(queue_->outstanding(), 0);
  EXPECT_EQ(queue_->mmio().writes, 0u);
}

TEST_F(SharedRxQueueTest, MessagesHaveAllFields) {
  give({{0x100, 0xF00000001}}, 1);
  const uint8_t completion[32] = {0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,  //
                                  0x00, 0x10, 16,   0xC5, 0,    0,    0,    0,     //
                                  0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44,  //
                                  0xEE, 0xEE, 0xEE, 0xEE, 0x00, 0x00, 0x00, 0x80};
  std::memcpy(script_.completion(*bus_, 0), completion, sizeof completion);
  RxMessage got;
  std::memset(&got, 0xEE, sizeof got);
  ASSERT_EQ(queue_->burst(&got, 1), 1);
  EXPECT_EQ(got.cookie, 0xF00000001u);
  EXPECT_EQ(got.source, 0x14131211u);
  EXPECT_EQ(got.dest_id, 0x24232221u);
  EXPECT_EQ(got.length_bytes, 4096);
  EXPECT_EQ(got.segments, 16);
  EXPECT_EQ(got.mbox, 5);
  EXPECT_EQ(got.letter, 3);
  EXPECT_EQ(got.arrival, 0x34333231u);
  EXPECT_EQ(got.time_ticks, 0x44434241u);
  EXPECT_EQ(got.status, Status::kOk);
  EXPECT_EQ(queue_->stats().messages, 1u);
  EXPECT_EQ(queue_->stats().bytes, 4096u);
  EXPECT_EQ(bus_->polls, 0u);
}

TEST_F(SharedRxQueueTest, DecodesEveryPlace) {
  open(9, 0);
  for (uint32_t place = 0; place < 256; ++place) {
    give({{0x100, place}}, place + 1);
    arrive(place, place, 8);
    script_.completion(*bus_, place)[11] = static_cast<uint8_t>(place);
    RxMessage got;
    ASSERT_EQ(queue_->burst(&got, 1), 1);
    EXPECT_EQ(got.mbox, place & 63);
    EXPECT_EQ(got.letter, place >> 6);
    EXPECT_EQ(got.segments, 3);
  }
}

TEST_F(SharedRxQueueTest, FailedMessagesReturnTheirBuffer) {
  give({{0x100, 1}, {0x200, 2}, {0x300, 3}}, 3);
  arrive(0, 0, 0, 6);
  arrive(1, 1, 512, 8);
  arrive(2, 2, 64, 10);
  RxMessage got[3];
  ASSERT_EQ(queue_->burst(got, 3), 3);
  EXPECT_EQ(got[0].status, Status::kFlushed);
  EXPECT_EQ(got[0].length_bytes, 0);
  EXPECT_EQ(got[1].status, Status::kReceiveTimeout);
  EXPECT_EQ(got[1].length_bytes, 512);
  EXPECT_EQ(got[1].mbox, 5);
  EXPECT_EQ(got[1].letter, 2);
  EXPECT_EQ(got[2].status, Status::kFormat);
  EXPECT_EQ(got[2].cookie, 3u);
  EXPECT_EQ(queue_->stats().failed, 3u);
  EXPECT_EQ(queue_->stats().messages, 0u);
  EXPECT_EQ(queue_->stats().bytes, 0u);
}

TEST_F(SharedRxQueueTest, FullRingAcceptsWhatFits) {
  std::vector<RxBuffer> six;
  for (uint64_t i = 0; i < 6; ++i) {
    six.push_back({0x1000 * (i + 1), i});
  }
  expect_tail(4);
  EXPECT_EQ(queue_->post(six.data(), 6), 4);
  EXPECT_EQ(queue_->post(six.data(), 6), 0);
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
  EXPECT_EQ(queue_->stats().rejected, 0u);
}

TEST_F(SharedRxQueueTest, RefusesMisalignedBuffers) {
  const RxBuffer three[3] = {{0x100, 1}, {0x180, 2}, {0x200, 3}};
  expect_tail(1);
  EXPECT_EQ(queue_->post(three, 3), 1);
  EXPECT_EQ(queue_->last_reject(), Reject::kAlignment);
  EXPECT_EQ(queue_->stats().rejected, 1u);
  EXPECT_EQ(queue_->post(three + 1, 1), 0);
  EXPECT_EQ(queue_->mmio().writes, 1u);
  expect_tail(2);
  EXPECT_EQ(queue_->post(three + 2, 1), 1);
  EXPECT_EQ(queue_->last_reject(), Reject::kNone);
}

TEST_F(SharedRxQueueTest, HandlesDisorderAndAStraggler) {
  give({{0x100, 10}, {0x200, 11}, {0x300, 12}, {0x400, 13}}, 4);
  arrive(0, 1);
  arrive(1, 3);
  arrive(2, 2);
  EXPECT_EQ(burst(), (Cookies{11, 13, 12}));
  EXPECT_EQ(queue_->free_count(), 0);
  EXPECT_EQ(queue_->outstanding(), 1);
  arrive(3, 0);
  EXPECT_EQ(burst(), (Cookies{10}));
  EXPECT_EQ(queue_->free_count(), 4);
  give({{0x100, 20}, {0x200, 21}}, 6);
  arrive(4, 4);
  arrive(5, 5);
  EXPECT_EQ(burst(), (Cookies{20, 21}));
}

TEST_F(SharedRxQueueTest, DropsBadCompletions) {
  give({{0x100, 10}, {0x200, 11}}, 2);
  arrive(0, 2);           // never posted
  arrive(1, 4);           // next lap
  arrive(2, 0xFFFFFFFE);  // last lap
  EXPECT_EQ(burst(), Cookies{});
  EXPECT_EQ(queue_->stats().bad_completions, 3u);
  arrive(3, 0);
  arrive(4, 0);
  arrive(5, 1);
  EXPECT_EQ(burst(), (Cookies{10, 11}));
  EXPECT_EQ(queue_->stats().bad_completions, 4u);
}

TEST_F(SharedRxQueueTest, ImpossibleLengthsReturnAnEmptyBuffer) {
  give({{0x100, 10}, {0x200, 11}, {0x300, 12}}, 3);
  arrive(0, 0, 4097);
  arrive(1, 2, 65535);  // also out of order
  arrive(2, 1, 4096);
  RxMessage got[4];
  ASSERT_EQ(queue_->burst(got, 4), 3);
  EXPECT_EQ(got[0].cookie, 10u);
  EXPECT_EQ(got[0].length_bytes, 0);
  EXPECT_EQ(got[0].status, Status::kFormat);
  EXPECT_EQ(got[1].cookie, 12u);
  EXPECT_EQ(got[1].length_bytes, 0);
  EXPECT_EQ(got[1].status, Status::kFormat);
  EXPECT_EQ(got[2].status, Status::kOk);
  EXPECT_EQ(queue_->stats().bad_completions, 2u);
  EXPECT_EQ(queue_->stats().failed, 2u);
  EXPECT_EQ(queue_->stats().bytes, 4096u);
}

TEST_F(SharedRxQueueTest, PollsOnlyWhenThereIsNothingAndLooksAgain) {
  give({{0x100, 10}}, 1);
  EXPECT_EQ(bus_->polls, 0u);
  EXPECT_EQ(burst(), Cookies{});
  EXPECT_EQ(bus_->polls, 1u);
  bus_->on_poll = [this] { arrive(0, 0); };
  EXPECT_EQ(burst(), (Cookies{10}));
  EXPECT_EQ(bus_->polls, 2u);
}

TEST_F(SharedRxQueueTest, TakesNoMoreThanAsked) {
  give({{0x100, 10}, {0x200, 11}, {0x300, 12}}, 3);
  for (uint32_t i = 0; i < 3; ++i) {
    arrive(i, i);
  }
  EXPECT_EQ(burst(0), Cookies{});
  EXPECT_EQ(burst(2), (Cookies{10, 11}));
  EXPECT_EQ(burst(2), (Cookies{12}));
}

/// With short completions.
class ShortRxQueueTest : public SharedRxQueueTest {
 protected:
  void SetUp() override { open_short(5, 0); }

  void open_short(uint32_t log2, uint32_t start) {
    Caps caps = test::full_caps();
    caps.short_receive = true;
    open_ring(
        {.ring = 1, .log2 = log2, .start = start, .entry_bytes = 8, .cpl_bytes = 16, .format = 1},
        caps);
  }
  void give_many(uint32_t from, uint32_t count) {
    std::vector<RxBuffer> buffers;
    for (uint32_t i = from; i != from + count; ++i) {
      buffers.push_back({0x100, 0xC00000000u + i});
    }
    give(buffers, from + count);
  }
  struct Arrival {
    uint32_t length = 64;
    uint32_t segments = 1;
    uint32_t mbox = 0;
    uint32_t letter = 0;
    uint32_t map_entry = 0;
    uint32_t arrival = 0;
    uint32_t status = 0;
    uint32_t source = 0x51;
  };
  void arrive_short(uint32_t at, uint32_t index, const Arrival& a) {
    arrive_words(
        at, {a.source,
             a.length | (a.segments - 1) << 13 | a.mbox << 17 | a.letter << 23 | a.map_entry << 25,
             index, a.status | (a.arrival & 0x7FFFFF) << 8});
  }
  static void expect_same(const RxMessage& got, const Arrival& want, uint32_t index) {
    EXPECT_EQ(got.cookie, 0xC00000000u + index);
    EXPECT_EQ(got.source, want.source);
    EXPECT_EQ(got.dest_id, 0xD0 + want.map_entry);
    EXPECT_EQ(got.arrival, want.arrival);
    EXPECT_EQ(got.time_ticks, 0u);
    EXPECT_EQ(got.length_bytes, want.length);
    EXPECT_EQ(got.mbox, want.mbox);
    EXPECT_EQ(got.letter, want.letter);
    EXPECT_EQ(got.segments, want.segments);
    EXPECT_EQ(got.status, Status::kOk);
  }
};

// In runs, which are decoded together, and one by one; `odd` is different, so that its run is not.
TEST_F(ShortRxQueueTest, MessagesHaveAllFields) {
  constexpr uint32_t kCount = 24;
  for (const uint32_t start : {0u, 0xFFFFFFFBu}) {
    for (uint32_t odd = 0; odd <= kCount; ++odd) {
      open_short(5, start);
      give_many(start, kCount);
      std::vector<Arrival> all;
      for (uint32_t i = 0; i < kCount; ++i) {
        all.push_back({.length = i == 3 ? 4096 : 8 * i,
                       .segments = 1 + i % 16,
                       .mbox = (7 * i) % 64,
                       .letter = i % 4,
                       .map_entry = i == odd ? 63u : 5u,
                       .arrival = 0x1FFFFFF0 + (i ^ 1),
                       .source = 0xABCD0000 + i});
        arrive_short(start + i, start + i, all.back());
      }
      const uint32_t missing =
          0x20000000;  // the numbers begin near 0: their low bits are all that is known
      RxMessage got[kCount];
      ASSERT_EQ(queue_->burst(got, kCount), kCount) << odd;
      uint64_t bytes = 0;
      for (uint32_t i = 0; i < kCount; ++i) {
        Arrival want = all[i];
        want.arrival = 0x1FFFFFF0 + (i ^ 1) - missing;
        expect_same(got[i], want, start + i);
        bytes += want.length;
      }
      EXPECT_EQ(queue_->stats().bytes, bytes);
      EXPECT_EQ(queue_->free_count(), 32);
    }
  }
}

TEST_F(ShortRxQueueTest, ArrivalNumbersAreExtended) {
  uint32_t arrival = 0;
  for (uint32_t i = 0; i < 64; ++i, arrival += 0x380000) {
    give_many(i, 1);
    arrive_short(i, i, {.arrival = arrival});
    RxMessage got;
    ASSERT_EQ(queue_->burst(&got, 1), 1);
    EXPECT_EQ(got.arrival, arrival);
  }
}

// Singles of which each is like the one before it, until one is not.
TEST_F(ShortRxQueueTest, ASingleMessageThatDiffersIsFound) {
  constexpr uint32_t kLike = 5;
  for (const uint32_t start : {0u, 0xFFFFFFF0u}) {
    for (const Arrival& other : {Arrival{.length = 72}, Arrival{.segments = 4},
                                 Arrival{.letter = 2}, Arrival{.map_entry = 3}, Arrival{.mbox = 63},
                                 Arrival{.source = 9}, Arrival{.arrival = 77}}) {
      open_short(5, start);
      give_many(start, 2 * kLike);
      uint32_t arrival = 0;
      for (uint32_t i = 0; i < 2 * kLike; ++i) {
        Arrival each = i == kLike ? other : Arrival{};
        arrival += 1 + each.arrival;
        each.arrival = arrival;
        each.mbox = i == kLike ? each.mbox : i;
        arrive_short(start + i, start + i, each);
        RxMessage got{};
        ASSERT_EQ(queue_->burst(&got, 1), 1) << i;
        expect_same(got, each, start + i);
        ASSERT_EQ(queue_->burst(&got, 1), 0) << i;
      }
      EXPECT_EQ(queue_->stats().messages, 2u * kLike);
    }
  }
}

TEST_F(ShortRxQueueTest, ASingleCompletionThatIsWrongIsNotTakenForAMessage) {
  constexpr uint32_t kLike = 3;
  const auto run = [this](uint32_t index, const Arrival& last) {
    open_short(5, 0);
    give_many(0, kLike + 1);
    RxMessage got{};
    for (uint32_t i = 0; i < kLike; ++i) {
      arrive_short(i, i, {.arrival = i});
      EXPECT_EQ(queue_->burst(&got, 1), 1);
    }
    arrive_short(kLike, index, last);
    return queue_->burst(&got, 1) == 1 ? got.status : Status::kFlushed;
  };
  EXPECT_EQ(run(kLike, {.arrival = kLike}), Status::kOk);
  EXPECT_EQ(run(kLike, {.arrival = kLike, .status = 10}), Status::kFormat);
  EXPECT_EQ(run(kLike, {.length = 4097, .arrival = kLike}), Status::kFormat);
  for (const uint32_t index : {0u, kLike - 1, kLike + 1, 32 + kLike, 0xFFFFFFFF}) {
    EXPECT_EQ(run(index, {.arrival = kLike}), Status::kFlushed) << index;
    EXPECT_EQ(queue_->stats().bad_completions, 1u);
    EXPECT_EQ(queue_->outstanding(), 1);
  }
}

// An index of all ones may be one that is not there yet: the buffer of index ~0 is not taken for
// it.
TEST_F(ShortRxQueueTest, AnIndexOfAllOnesMayBeAnotherOne) {
  constexpr uint32_t kStart = 0xFFFFFFFD;
  open_short(5, kStart);
  give_many(kStart, 4);
  RxMessage got{};
  for (uint32_t i = 0; i < 2; ++i) {
    arrive_short(kStart + i, kStart + i, {.arrival = i});
    ASSERT_EQ(queue_->burst(&got, 1), 1);
  }
  arrive_short(kStart + 2, 0xFFFFFFFF, {.arrival = 2});
  bus_->polls = 0;
  bus_->on_poll = [this] { arrive_short(kStart + 2, 0, {.arrival = 2}); };
  ASSERT_EQ(queue_->burst(&got, 1), 1);
  EXPECT_EQ(got.cookie, 0xC00000000u) << "index 0";
  bus_->on_poll = nullptr;
  arrive_short(kStart + 3, 0xFFFFFFFF, {.arrival = 3});
  ASSERT_EQ(queue_->burst(&got, 1), 1);
  EXPECT_EQ(got.cookie, 0xCFFFFFFFFu);
  EXPECT_EQ(queue_->stats().bad_completions, 0u);
}

// One completion of a run is not plain: it is handed over, or dropped, with its neighbours.
TEST_F(ShortRxQueueTest, FaultsInARunAreFound) {
  for (uint32_t bad = 0; bad < 16; ++bad) {
    for (const Arrival& fault :
         {Arrival{.status = 10}, Arrival{.length = 4097}, Arrival{.length = 8191}}) {
      open_short(5, 0);
      give_many(0, 16);
      for (uint32_t i = 0; i < 16; ++i) {
        arrive_short(i, i, i == bad ? fault : Arrival{});
      }
      RxMessage got[16];
      ASSERT_EQ(queue_->burst(got, 16), 16);
      for (uint32_t i = 0; i < 16; ++i) {
        EXPECT_EQ(got[i].status, i == bad ? Status::kFormat : Status::kOk);
        EXPECT_LE(got[i].length_bytes, 64);
      }
      EXPECT_EQ(queue_->stats().failed, 1u);
    }
    open_short(5, 0);
    give_many(0, 17);
    for (uint32_t i = 0; i < 16; ++i) {
      arrive_short(i, i == bad ? 99 : i, {});
    }
    RxMessage got[17];
    EXPECT_EQ(queue_->burst(got, 17), 15);
    EXPECT_EQ(queue_->stats().bad_completions, 1u);
    EXPECT_EQ(queue_->outstanding(), 2);
  }
}

TEST_F(ShortRxQueueTest, PlainMessagesAreHandedOverWithoutAList) {
  give_many(0, 3);
  SharedRxQueue::Plain plain{};
  EXPECT_FALSE(queue_->alone(&plain));
  arrive_short(0, 0, {.length = 40, .segments = 3, .map_entry = 1});
  ASSERT_TRUE(queue_->alone(&plain));
  EXPECT_EQ(plain.cookie, 0xC00000000u);
  EXPECT_EQ(plain.source, 0x51u);
  EXPECT_EQ(plain.length_bytes, 40u);
  arrive_short(1, 1, {.length = 48, .mbox = 63});
  EXPECT_FALSE(queue_->alone(&plain));
  std::vector<uint32_t> lengths;
  EXPECT_EQ(queue_->for_each_plain(0x51, 8,
                                   [&](uint64_t, uint32_t length) {
                                     lengths.push_back(length);
                                     return true;
                                   }),
            2u);
  EXPECT_EQ(lengths, (std::vector<uint32_t>{40, 48}));
}

TEST_F(SharedRxQueueTest, TimesAskForLongCompletions) {
  Caps caps = test::full_caps();
  caps.short_receive = true;
  close();
  queue_.reset();
  bus_ = std::make_unique<test::FakeBus>(&bar_);
  script_.expect_start(bar_);
  ASSERT_EQ(SharedRxQueue::create(*bus_, caps, {.ring = 1, .log2 = 2, .times = true}, &queue_), 0);
  give({{0x100, 7}}, 1);
  arrive(0, 0);
  EXPECT_EQ(queue_->for_each_plain(0x51, 1, [](uint64_t, uint32_t) { return true; }), 0u);
  SharedRxQueue::Plain plain{};
  EXPECT_FALSE(queue_->alone(&plain));
  RxMessage got;
  ASSERT_EQ(queue_->burst(&got, 1), 1);
  EXPECT_EQ(got.time_ticks, 900u);
}

class SharedRxQueueWrapTest : public SharedRxQueueTest,
                              public ::testing::WithParamInterface<uint32_t> {};

TEST_P(SharedRxQueueWrapTest, ManyLaps) {
  const uint32_t start = GetParam();
  open(2, start);
  for (uint32_t step = 0; step < 30; ++step) {
    const uint32_t index = start + step * 3;
    give({{0x100, step}, {0x200, step + 100}, {0x300, step + 200}}, index + 3);
    EXPECT_EQ(burst(), Cookies{});
    for (uint32_t i = 0; i < 3; ++i) {
      arrive(index + i, index + i);
    }
    ASSERT_EQ(burst(), (Cookies{step, step + 100, step + 200}));
  }
  EXPECT_EQ(queue_->stats().bad_completions, 0u);
}

INSTANTIATE_TEST_SUITE_P(Starts, SharedRxQueueWrapTest,
                         ::testing::Values(0, 1, 4, 65536 - 21, 0x80000000 - 5, 0xFFFFFFFF - 33,
                                           0xFFFFFFFC, 0xFFFFFFFF));

}  // namespace
}  // namespace rio::pmd
