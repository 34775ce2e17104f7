// A burst of one does what a longer burst does: the same entries, doorbells, refusals, completions
// and counts, on a BAR that the driver writes without a tap.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/random.hpp"
#include "pmd/dev/shared_rx_queue.hpp"
#include "pmd/dev/tx_queue.hpp"
#include "tests/support/plain_card.hpp"
#include "tests/support/seed.hpp"

namespace rio::pmd {
namespace {

constexpr uint32_t kLog2 = 4;
constexpr uint32_t kEntries = 1u << kLog2;
constexpr uint32_t kRounds = 4000;
constexpr uint32_t kNearWrap = 0u - 300u;  // of the free-running index
constexpr uint32_t kCode = 3;              // of a message that was not delivered

/// A queue on memory in place of a BAR.
template <class Queue, regs::Ring kRing>
struct Rig {
  explicit Rig(const Caps& caps) {
    RingConfig config;
    config.ring = static_cast<uint32_t>(kRing);
    config.log2 = kLog2;
    config.start_index = kNearWrap;
    EXPECT_EQ(Queue::create(card, caps, config, &queue), 0);
  }
  test::PlainCard card;
  SharedPtr<Queue> queue;
};
using TxRig = Rig<TxQueue, regs::Ring::kTx>;
using RxRig = Rig<SharedRxQueue, regs::Ring::kShared>;

template <class A, class B>
void expect_same_counts(A& one, B& many) {
  const QueueStats a = one.queue->stats();
  const QueueStats b = many.queue->stats();
  EXPECT_EQ(a.messages, b.messages);
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.failed, b.failed);
  EXPECT_EQ(a.rejected, b.rejected);
  EXPECT_EQ(a.bad_completions, b.bad_completions);
  EXPECT_EQ(one.queue->mmio().writes, many.queue->mmio().writes);
  EXPECT_EQ(one.queue->mmio().reads, 0u);
  EXPECT_EQ(one.queue->outstanding(), many.queue->outstanding());
  EXPECT_EQ(one.queue->last_reject(), many.queue->last_reject());
}

/// Mostly like the one before it.
class Messages {
 public:
  explicit Messages(base::Random& random) : random_(random) {
    for (size_t i = 0; i < bytes_.size(); ++i) {
      bytes_[i] = static_cast<uint8_t>(i + 1);
    }
  }
  TxMessage next() {
    message_.cookie = random_.next();
    message_.mbox = static_cast<uint8_t>(random_.below(random_.below(8) == 0 ? 80 : 64));
    if (random_.below(4) == 0) {
      message_.flags = static_cast<uint8_t>(random_.below(2) * TxFlags::kInline + random_.below(3) +
                                            random_.below(2) * TxFlags::kOrder);
      message_.dest_id = random_.below(3);
      message_.length_bytes = static_cast<uint16_t>(random_.below(40));
    }
    if (random_.below(32) == 0) {
      message_.flags = TxFlags::kDoorbell;
    }
    if ((message_.flags & TxFlags::kDoorbell) != 0) {
      message_.info = random_.below(0x10000);
    } else if ((message_.flags & TxFlags::kInline) != 0) {
      message_.data = bytes_.data() + random_.below(16);
    } else {
      message_.iova = random_.below(1000) * uint64_t{8} + (random_.below(16) == 0 ? 4 : 0);
    }
    return message_;
  }

 private:
  base::Random& random_;
  std::array<uint8_t, 64> bytes_{};
  TxMessage message_{
      .iova = 0, .cookie = 0, .dest_id = 1, .length_bytes = 16, .mbox = 0, .flags = 0};
};

/// Completes entries of both queues alike: mostly as delivered, some failed, late or not whole.
class Fates {
 public:
  explicit Fates(base::Random& random) : random_(random) {}
  template <class Cpl>
  void complete(regs::Ring ring, uint32_t first, uint32_t count, test::PlainCard& one,
                test::PlainCard& many, const auto& fill) {
    std::vector<Cpl> all(count);
    for (uint32_t i = 0; i < count; ++i) {
      all[i].index = first + i;
      all[i].status = random_.below(16) == 0 ? kCode : 0;
      fill(&all[i], random_);
    }
    if (count > 1 && random_.below(8) == 0) {
      std::swap(all[0], all[1]);
    }
    for (test::PlainCard* const card : {&one, &many}) {
      card->complete<Cpl>(ring, cpl_, count,
                          [&](Cpl* cpl, uint32_t index) { *cpl = all[index - cpl_]; });
    }
    cpl_ += count;
  }

 private:
  base::Random& random_;
  uint32_t cpl_ = kNearWrap;
};

TEST(OneMessage, IsPostedAndReapedAsInALongerBurst) {
  base::Random random(test::first_seed());
  Caps caps = test::full_caps();
  caps.inline_units = 1;  // each message has one entry
  TxRig one(caps);
  TxRig many(caps);
  Messages messages(random);
  Fates fates(random);
  uint32_t completed = kNearWrap;
  uint32_t singles = 0;
  for (uint32_t round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    const TxMessage message = messages.next();
    const uint32_t head = one.queue->next_index();
    const uint16_t posted = one.queue->burst(&message, 1);
    const uint32_t staged = many.queue->begin_stage();
    ASSERT_EQ(many.queue->stage(&message, 1), posted);
    many.queue->end_burst(staged);
    ASSERT_EQ(one.queue->next_index(), many.queue->next_index());
    const uint32_t slot = head & (kEntries - 1);
    if (posted != 0) {
      ++singles;
      ASSERT_EQ(std::memcmp(one.card.entries<regs::TxDesc>(regs::Ring::kTx) + slot,
                            many.card.entries<regs::TxDesc>(regs::Ring::kTx) + slot,
                            sizeof(regs::TxDesc)),
                0)
          << "round " << round;
    }
    ASSERT_EQ(one.card.tail(regs::Ring::kTx), many.card.tail(regs::Ring::kTx));
    ASSERT_EQ(one.queue->last_reject(), many.queue->last_reject());
    if (random.below(3) == 0 || one.queue->free_count() == 0) {
      const uint32_t count = one.queue->next_index() - completed;
      fates.complete<regs::TxCpl>(regs::Ring::kTx, completed, count, one.card, many.card,
                                  [](regs::TxCpl* cpl, base::Random& r) {
                                    cpl->time = r.below(20) == 0 ? ~0u : r.below(1000);
                                    cpl->cookie = ~0u;  // the driver does not use it
                                  });
      completed += count;
      TxDone all[kEntries + 1];
      const uint16_t n = many.queue->reap(all, kEntries + 1);
      for (uint16_t i = 0; i < n; ++i) {
        TxDone done{};
        ASSERT_EQ(one.queue->reap(&done, 1), 1);
        EXPECT_EQ(done.cookie, all[i].cookie);
        EXPECT_EQ(done.time_ticks, all[i].time_ticks);
        EXPECT_EQ(done.status, all[i].status);
        EXPECT_EQ(done.retries, all[i].retries);
      }
      TxDone none{};
      ASSERT_EQ(one.queue->reap(&none, 1), 0);
      expect_same_counts(one, many);
    }
  }
  EXPECT_GT(singles, 1000u);
}

TEST(OneMessage, IsRefusedAsInALongerBurstBeforeAnyOther) {
  TxRig one(test::full_caps());
  TxRig two(test::full_caps());
  const TxMessage empty[2] = {};
  EXPECT_EQ(one.queue->burst(empty, 1), 0);
  EXPECT_EQ(two.queue->burst(empty, 2), 0);
  expect_same_counts(one, two);
}

constexpr TxMessage kMessage = {
    .iova = 64, .cookie = 7, .dest_id = 1, .length_bytes = 64, .mbox = 0, .flags = 0};

/// Completes one entry as delivered, or one message of 64 bytes as received.
void complete(TxRig& rig, uint32_t index) {
  rig.card.complete<regs::TxCpl>(regs::Ring::kTx, index, 1,
                                 [](regs::TxCpl* cpl, uint32_t at) { cpl->index = at; });
}
void complete(RxRig& rig, uint32_t index) {
  using Status = regs::shared_short_cpl::Status;
  rig.card.complete<regs::SharedShortCpl>(
      regs::Ring::kShared, index, 1, [](regs::SharedShortCpl* cpl, uint32_t at) {
        cpl->index = at;
        cpl->place = regs::shared_short_cpl::Place::length.put(64);
        cpl->status = Status::arrival.put((at - kNearWrap) & Status::arrival.max());
      });
}
[[nodiscard]] bool post(TxRig& rig) {
  return rig.queue->burst(&kMessage, 1) == 1;
}
[[nodiscard]] bool post(RxRig& rig) {
  const RxBuffer buffer = {4096, 7};
  return rig.queue->post(&buffer, 1) == 1;
}
[[nodiscard]] bool take(TxRig& rig) {
  TxDone done{};
  return rig.queue->reap(&done, 1) == 1;
}
[[nodiscard]] bool take(RxRig& rig) {
  RxMessage message{};
  return rig.queue->burst(&message, 1) == 1;
}
[[nodiscard]] Caps short_caps() {
  Caps caps = test::full_caps();
  caps.short_receive = true;
  return caps;
}

template <class RigType>
void fill_and_empty(RigType& rig, regs::Ring ring) {
  uint32_t posted = kNearWrap;
  uint32_t taken = kNearWrap;
  for (uint32_t round = 0; round < 100; ++round) {
    while (posted - taken < kEntries) {
      ASSERT_TRUE(post(rig)) << round;
      ++posted;
    }
    ASSERT_FALSE(post(rig)) << "the ring is full";
    ASSERT_EQ(rig.queue->last_reject(), Reject::kNone);
    ASSERT_EQ(rig.card.tail(ring), posted);
    for (uint32_t n = round % kEntries + 1; n > 0; --n) {
      complete(rig, taken);
      ASSERT_TRUE(take(rig)) << round;
      ++taken;
    }
    ASSERT_FALSE(take(rig));
  }
}

TEST(OneMessage, IsPostedOnlyWhereThereIsRoom) {
  TxRig tx(test::full_caps());
  fill_and_empty(tx, regs::Ring::kTx);
  RxRig rx(short_caps());
  fill_and_empty(rx, regs::Ring::kShared);
}

/// A card that completes what is not outstanding.
template <class RigType>
void complete_too_much(RigType& rig) {
  uint32_t index = kNearWrap;
  for (; index != kNearWrap + 3; ++index) {
    ASSERT_TRUE(post(rig));
    complete(rig, index);
    ASSERT_TRUE(take(rig));
  }
  complete(rig, index);
  ASSERT_FALSE(take(rig));
  ASSERT_EQ(rig.queue->outstanding(), 0u);
}

TEST(OneMessage, IsNotTakenBeforeItIsPosted) {
  TxRig tx(test::full_caps());
  complete_too_much(tx);
  RxRig rx(short_caps());
  complete_too_much(rx);
}

/// A card that writes behind the end of its completions what would be the next one there.
template <class Cpl, class RigType>
void write_behind_the_end(RigType& rig, regs::Ring ring) {
  uint32_t index = kNearWrap;
  const auto all = rig.card.template completions<Cpl>(ring);
  do {
    ASSERT_TRUE(post(rig));
    complete(rig, index);
    if ((index + 1) % all.count == 0) {
      Cpl* const behind = all.first + all.count;  // still within a page
      *behind = all.first[all.count - 1];
      ++behind->index;
      if constexpr (requires { behind->place; }) {
        behind->status += 1u << regs::shared_short_cpl::Status::arrival.lsb;
      }
    }
    ASSERT_TRUE(take(rig));
    ++index;
  } while (index % all.count != 0);
  ASSERT_TRUE(post(rig));
  ASSERT_FALSE(take(rig)) << "the ring goes on at its beginning";
  complete(rig, index);
  ASSERT_TRUE(take(rig));
}

TEST(OneMessage, IsNotLookedForBehindTheEndOfTheRing) {
  TxRig tx(test::full_caps());
  write_behind_the_end<regs::TxCpl>(tx, regs::Ring::kTx);
  RxRig rx(short_caps());
  write_behind_the_end<regs::SharedShortCpl>(rx, regs::Ring::kShared);
}

// Neither is told of what the other one takes.
TEST(OneMessage, TakesTurnsWithPlainMessages) {
  RxRig rig(short_caps());
  uint32_t index = kNearWrap;
  for (uint32_t i = 0; i < 600; ++i, ++index) {
    ASSERT_TRUE(post(rig));
    complete(rig, index);
    SharedRxQueue::Plain plain{};
    if (i % 5 < 3 || !rig.queue->peek(&plain)) {
      ASSERT_TRUE(take(rig)) << i;
    } else {
      rig.queue->pass(plain);
    }
    ASSERT_EQ(rig.queue->outstanding(), 0u);
    // A card that says once more what it has said.
    complete(rig, index);
    ASSERT_FALSE(take(rig)) << i;
    ASSERT_EQ(rig.queue->outstanding(), 0u);
  }
}

void take_one_by_one(const Caps& caps) {
  base::Random random(test::first_seed());
  RxRig one(caps);
  RxRig many(caps);
  Fates fates(random);
  uint32_t posted = kNearWrap;
  uint32_t completed = kNearWrap;
  uint32_t arrivals = 0;
  uint32_t place = 0;
  for (uint32_t round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    const RxBuffer buffer = {random.below(1000) * uint64_t{256} + (random.below(16) == 0 ? 8 : 0),
                             random.next()};
    const uint32_t given = many.queue->post_each(1, [&](size_t /*i*/) { return buffer; });
    ASSERT_EQ(one.queue->post(&buffer, 1), given);
    posted += given;
    ASSERT_EQ(one.card.tail(regs::Ring::kShared), many.card.tail(regs::Ring::kShared));
    ASSERT_EQ(one.queue->last_reject(), many.queue->last_reject());
    if (random.below(3) != 0 && one.queue->free_count() != 0) {
      continue;
    }
    const uint32_t count = posted - completed;
    if (caps.short_receive) {
      fates.complete<regs::SharedShortCpl>(
          regs::Ring::kShared, completed, count, one.card, many.card,
          [&](regs::SharedShortCpl* cpl, base::Random& r) {
            using Place = regs::shared_short_cpl::Place;
            if (r.below(8) == 0) {
              const uint32_t entry = r.below(8) == 0 ? r.below(4) : 1;
              place = Place::length.put(r.below(16) == 0 ? 5000 : r.below(4097)) |
                      Place::segments.put(r.below(16)) | Place::letter.put(r.below(4)) |
                      Place::map_entry.put(entry);
            }
            cpl->source = r.below(30) == 0 ? ~0u : r.below(9);
            cpl->place = r.below(30) == 0 ? ~0u : place | Place::mbox.put(r.below(64));
            using Status = regs::shared_short_cpl::Status;
            arrivals += r.below(8) == 0 ? r.below(5) : 1;
            cpl->status |= Status::arrival.put(arrivals & Status::arrival.max());
          });
    } else {
      fates.complete<regs::SharedCpl>(regs::Ring::kShared, completed, count, one.card, many.card,
                                      [](regs::SharedCpl* cpl, base::Random& r) {
                                        cpl->length = static_cast<uint16_t>(r.below(4097));
                                      });
    }
    completed += count;
    RxMessage all[kEntries + 1];
    const uint16_t n = many.queue->burst(all, kEntries + 1);
    for (uint16_t i = 0; i < n; ++i) {
      RxMessage message{};
      uint16_t got = 0;
      for (uint32_t looks = 0; looks < kEntries && got == 0; ++looks) {
        got = one.queue->burst(&message, 1);  // 0: a completion that makes no sense
      }
      ASSERT_EQ(got, 1);
      EXPECT_EQ(message.cookie, all[i].cookie);
      EXPECT_EQ(message.source, all[i].source);
      EXPECT_EQ(message.dest_id, all[i].dest_id);
      EXPECT_EQ(message.arrival, all[i].arrival);
      EXPECT_EQ(message.time_ticks, all[i].time_ticks);
      EXPECT_EQ(message.length_bytes, all[i].length_bytes);
      EXPECT_EQ(message.mbox, all[i].mbox);
      EXPECT_EQ(message.letter, all[i].letter);
      EXPECT_EQ(message.segments, all[i].segments);
      EXPECT_EQ(message.status, all[i].status);
    }
    RxMessage none{};
    for (uint32_t looks = 0; looks < kEntries; ++looks) {
      ASSERT_EQ(one.queue->burst(&none, 1), 0);
    }
    expect_same_counts(one, many);
  }
  EXPECT_GT(one.queue->stats().messages, 1000u);
}

TEST(OneMessage, IsTakenAsInALongerBurst) {
  Caps caps = test::full_caps();
  take_one_by_one(caps);
  caps.short_receive = true;
  take_one_by_one(caps);
}

}  // namespace
}  // namespace rio::pmd
