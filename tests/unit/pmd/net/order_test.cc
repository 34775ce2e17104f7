#include "pmd/net/order.hpp"
#include "tests/support/seed.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace rio::pmd {
namespace {

using Turn = Order::Turn;
constexpr uint64_t kForever = UINT64_MAX;

/// A bundle in a buffer.
struct Bundle {
  Bundle(uint16_t epoch, uint16_t number) : header{1, epoch, number} {
    store_word(bytes, header.encode());
    mbuf->buf_addr = bytes;
  }
  BundleHeader header;
  uint8_t bytes[8];
  std::unique_ptr<rte_mbuf> mbuf{new rte_mbuf{}};
};

class OrderTest : public testing::Test {
 protected:
  OrderTest() { order_.start(16, kForever); }

  /// A bundle comes, and is looked at if it is its turn; then those that it has let go.
  Turn comes(Source& source, uint16_t epoch, uint16_t number) {
    auto bundle = std::make_unique<Bundle>(epoch, number);
    const Turn turn = order_.turn_of(source, bundle->header, bundle->mbuf.get());
    if (turn == Turn::kParked) {
      rte_mbuf* const buffer = bundle->mbuf.get();
      parked_[buffer] = std::move(bundle);
      owners_[buffer] = source.dest_id;
      take_ready();
      return turn;
    }
    looked_at_.push_back(number);
    order_.looked_at(source);
    take_ready();
    return turn;
  }
  void take_ready() {
    while (order_.has_next()) {
      Source* source = nullptr;
      rte_mbuf* const buffer = order_.next(&source);
      const auto found = parked_.find(buffer);
      ASSERT_NE(found, parked_.end()) << "one that was not parked, or a second time";
      EXPECT_EQ(source->dest_id, owners_[buffer]);
      EXPECT_EQ(buffer->next, nullptr);
      looked_at_.push_back(found->second->header.number);
      parked_.erase(found);
      order_.looked_at(*source);
    }
    EXPECT_EQ(order_.parked(), parked_.size());
  }
  Source& source(uint32_t dest_id) { return *sources_->find(dest_id); }

  using Numbers = std::vector<uint32_t>;
  std::unique_ptr<Sources> sources_ = std::make_unique<Sources>();
  Order order_;
  std::map<rte_mbuf*, std::unique_ptr<Bundle>> parked_;
  std::map<rte_mbuf*, uint32_t> owners_;  // destIDs; of buffers that are back, too
  Numbers looked_at_;
};

TEST_F(OrderTest, InOrderNothingWaits) {
  for (const uint16_t number : std::initializer_list<uint16_t>{5, 6, 7}) {
    EXPECT_EQ(comes(source(1), 9, number), Turn::kNow) << number;
  }
  EXPECT_EQ(order_.parked(), 0u);
}

TEST_F(OrderTest, EarlyOnesWaitForThoseBefore) {
  EXPECT_EQ(comes(source(1), 9, 0), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 3), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 5), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 1), Turn::kNow);
  EXPECT_EQ(looked_at_, (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(comes(source(1), 9, 4), Turn::kNow);
  EXPECT_EQ(looked_at_, (Numbers{0, 1, 2, 3, 4, 5}));
}

TEST_F(OrderTest, NumbersWrap) {
  EXPECT_EQ(comes(source(1), 9, 65533), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 0), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 65535), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 1), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 65534), Turn::kNow);
  EXPECT_EQ(looked_at_, (Numbers{65533, 65534, 65535, 0, 1}));
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kNow);
  for (uint32_t i = 3; i < 0x20000; ++i) {
    ASSERT_EQ(comes(source(1), 9, static_cast<uint16_t>(i)), Turn::kNow) << i;
  }
}

TEST_F(OrderTest, LateOnesAreLate) {
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 1), Turn::kLate);
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kLate) << "twice";
  EXPECT_EQ(comes(source(1), 9, 65535), Turn::kLate);
  EXPECT_EQ(comes(source(1), 9, 3), Turn::kNow) << "they change nothing";
}

TEST_F(OrderTest, AnotherEpochBeginsAnew) {
  EXPECT_EQ(comes(source(1), 9, 500), Turn::kNow);
  EXPECT_EQ(comes(source(1), 10, 0), Turn::kNow);
  EXPECT_EQ(comes(source(1), 10, 1), Turn::kNow);
  EXPECT_EQ(comes(source(1), 10, 3), Turn::kParked);
}

TEST_F(OrderTest, TheRestOfAnEpochComesBeforeTheNext) {
  EXPECT_EQ(comes(source(1), 9, 500), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 502), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 503), Turn::kParked);
  EXPECT_EQ(comes(source(1), 10, 0), Turn::kNow);
  EXPECT_EQ(order_.parked(), 0u) << "501 is not waited for any more";
  EXPECT_EQ(looked_at_, (Numbers{500, 0, 502, 503}));
  for (uint16_t number = 1; number < 600; ++number) {
    EXPECT_EQ(comes(source(1), 10, number), Turn::kNow) << "of numbers of another epoch";
  }
}

TEST_F(OrderTest, WhereNothingMayBeParkedNothingWaits) {
  order_.start(0, kForever);
  EXPECT_EQ(comes(source(1), 9, 0), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kNow) << "1 is given up";
  EXPECT_EQ(comes(source(1), 9, 1), Turn::kLate);
  EXPECT_EQ(comes(source(1), 9, 3), Turn::kNow);
}

TEST_F(OrderTest, NowhereToPark) {
  order_.start(2, kForever);
  EXPECT_EQ(comes(source(1), 9, 0), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 4), Turn::kParked);
  EXPECT_EQ(comes(source(2), 9, 0), Turn::kNow);
  looked_at_ = {0};
  EXPECT_EQ(comes(source(1), 9, 5), Turn::kParked);
  EXPECT_EQ(looked_at_, (Numbers{0, 2})) << "1 is given up, and the first of those goes";
  EXPECT_EQ(order_.parked(), 2u);
  EXPECT_EQ(comes(source(1), 9, 3), Turn::kNow);
  EXPECT_EQ(looked_at_, (Numbers{0, 2, 3, 4, 5})) << "in order all the same";
  EXPECT_EQ(order_.parked(), 0u);
  EXPECT_EQ(comes(source(1), 9, 6), Turn::kNow);
}

TEST_F(OrderTest, TheSenderThatParksMostGivesWay) {
  order_.start(2, kForever);
  EXPECT_EQ(comes(source(1), 9, 0), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 4), Turn::kParked);
  EXPECT_EQ(comes(source(2), 9, 100), Turn::kNow);
  EXPECT_EQ(comes(source(2), 9, 102), Turn::kParked);
  EXPECT_EQ(looked_at_, (Numbers{0, 100, 2})) << "not the one that has just begun to wait";
  EXPECT_EQ(order_.parked(), 2u);
  EXPECT_EQ(comes(source(2), 9, 101), Turn::kNow);
  EXPECT_EQ(looked_at_, (Numbers{0, 100, 2, 101, 102}));
}

/// A stream that always has something parked, but always moves on, is no reason to end a wait.
TEST_F(OrderTest, AWaitThatHasEndedWellIsNotCounted) {
  constexpr uint64_t kWait = uint64_t{1} << 50;
  order_.start(16, kWait);
  EXPECT_EQ(comes(source(1), 9, 0), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 4), Turn::kParked);
  EXPECT_EQ(comes(source(2), 9, 0), Turn::kNow);
  source(1).since_ticks -= kWait;
  EXPECT_EQ(comes(source(2), 9, 2), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 1), Turn::kNow);
  order_.look_at_the_clock();
  EXPECT_FALSE(order_.has_next()) << "it was waited for 1 so long, not for 3";
  source(1).since_ticks -= kWait;
  order_.look_at_the_clock();
  ASSERT_TRUE(order_.has_next());
  take_ready();
  EXPECT_EQ(looked_at_, (Numbers{0, 0, 1, 2, 4}));
  order_.look_at_the_clock();
  EXPECT_FALSE(order_.has_next()) << "the other source has its own clock";
}

TEST_F(OrderTest, GivenUpByTheClock) {
  EXPECT_EQ(comes(source(1), 9, 0), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 2), Turn::kParked);
  EXPECT_EQ(comes(source(1), 9, 5), Turn::kParked);
  order_.look_at_the_clock();
  EXPECT_FALSE(order_.has_next()) << "it is not over";
  order_.start(16, 0);
  order_.look_at_the_clock();
  ASSERT_TRUE(order_.has_next());
  take_ready();
  EXPECT_EQ(looked_at_, (Numbers{0, 2}));
  EXPECT_EQ(comes(source(1), 9, 3), Turn::kNow);
  EXPECT_EQ(comes(source(1), 9, 4), Turn::kNow);
  EXPECT_EQ(looked_at_, (Numbers{0, 2, 3, 4, 5}));
  EXPECT_EQ(comes(source(1), 9, 1), Turn::kLate);
}

TEST_F(OrderTest, AllThatIsParkedComesOutAtTheEnd) {
  std::set<uint32_t> wanted;
  for (uint32_t id = 1; id <= 4; ++id) {
    EXPECT_EQ(comes(source(id), 9, 0), Turn::kNow);
    for (const uint16_t number : std::initializer_list<uint16_t>{9, 7, 3}) {
      EXPECT_EQ(comes(source(id), 9, number), Turn::kParked);
    }
  }
  uint32_t count = 0;
  for (order_.give_up_waiting(true); order_.has_next(); order_.give_up_waiting(true)) {
    Source* source = nullptr;
    EXPECT_EQ(parked_.erase(order_.next(&source)), 1u);
    ++count;
  }
  EXPECT_EQ(count, 12u);
  EXPECT_EQ(order_.parked(), 0u);
  EXPECT_TRUE(parked_.empty());
}

TEST_F(OrderTest, SourcesWaitForThemselvesAlone) {
  for (uint32_t id = 1; id <= 8; ++id) {
    EXPECT_EQ(comes(source(id), static_cast<uint16_t>(id), 100), Turn::kNow);
    EXPECT_EQ(comes(source(id), static_cast<uint16_t>(id), 102), Turn::kParked);
  }
  EXPECT_EQ(order_.parked(), 8u);
  EXPECT_EQ(comes(source(9), 9, 100), Turn::kNow);
  EXPECT_EQ(comes(source(9), 9, 102), Turn::kNow) << "a ninth one does not wait";
  EXPECT_EQ(order_.parked(), 8u);
  EXPECT_EQ(comes(source(3), 3, 101), Turn::kNow);
  EXPECT_EQ(order_.parked(), 7u);
  EXPECT_EQ(comes(source(9), 9, 104), Turn::kParked) << "now there is a place";
}

TEST_F(OrderTest, PlaceForSoManySources) {
  for (uint32_t id = 0; id < Sources::kMax; ++id) {
    Source* const found = sources_->find(id * 16);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->dest_id, id * 16);
  }
  EXPECT_EQ(sources_->find(1), nullptr);
  EXPECT_EQ(sources_->find(65520)->dest_id, 65520u) << "who is known stays so";
  uint32_t count = 0;
  sources_->for_each([&](Source&) { ++count; });
  EXPECT_EQ(count, Sources::kMax);
}

/// With any numbers, each buffer comes back once, no more are parked than may be, and those of an
/// honest source in its order.
TEST_F(OrderTest, HostileNumbers) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  uint16_t next = 0;
  for (uint32_t i = 0; i < 100'000 && !HasFailure(); ++i) {
    if (random() % 8 == 0) {
      const size_t before = looked_at_.size();
      ASSERT_EQ(comes(source(77), 1, next), Turn::kNow);
      ASSERT_EQ(looked_at_.size(), before + 1);
      ++next;
      continue;
    }
    const auto id = static_cast<uint32_t>(1 + random() % 12);
    const uint16_t number = static_cast<uint16_t>(random() % 4 == 0 ? random() : random() % 64);
    comes(source(id), static_cast<uint16_t>(random() % 3), number);
    ASSERT_LE(order_.parked(), 16u);
    if (random() % 64 == 0) {
      order_.give_up_waiting(true);
      if (order_.has_next()) {
        Source* from = nullptr;
        ASSERT_EQ(parked_.erase(order_.next(&from)), 1u);
        order_.looked_at(*from);
        take_ready();
      }
    }
  }
}

TEST_F(OrderTest, AShuffledStreamComesOutInOrder) {
  const uint32_t seed = rio::test::first_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  EXPECT_EQ(comes(source(1), 9, 65000), Turn::kNow);
  std::vector<uint16_t> some;
  for (uint32_t block = 0; block < 10'000 / 8; ++block) {
    some.clear();
    for (uint32_t i = 0; i < 8; ++i) {
      some.push_back(static_cast<uint16_t>(65001 + block * 8 + i));
    }
    std::shuffle(some.begin(), some.end(), random);
    for (const uint16_t number : some) {
      ASSERT_NE(comes(source(1), 9, number), Turn::kLate);
    }
  }
  for (size_t i = 0; i < looked_at_.size(); ++i) {
    ASSERT_EQ(looked_at_[i], (65000 + i) % 65536);
  }
  EXPECT_EQ(looked_at_.size(), 10'001u);
}

}  // namespace
}  // namespace rio::pmd
