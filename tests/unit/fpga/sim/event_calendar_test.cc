// Events come back by time, then by insertion, as from a priority queue that sorts by both.
#include "fpga/sim/event_calendar.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <queue>
#include <tuple>
#include <vector>

#include "base/random.hpp"

namespace rio::sim {
namespace {

/// As large as the event of a network.
struct Event {
  uint32_t number;
  uint32_t rest[4];
};
using Calendar = EventCalendar<Event>;

constexpr uint64_t kForever = UINT64_MAX;

/// Takes one event. @return its number; UINT32_MAX: there is none.
[[nodiscard]] uint32_t pop_one(Calendar& calendar, uint64_t limit_ns = kForever) {
  Event event{};
  return calendar.pop(limit_ns, {&event, 1}) == 1 ? event.number : UINT32_MAX;
}

void push(Calendar& calendar, uint64_t time_ns, uint32_t number) {
  calendar.push(time_ns, Event{number, {}});
}

TEST(EventCalendar, AnEmptyOneHasNothing) {
  Calendar calendar;
  EXPECT_TRUE(calendar.is_empty());
  EXPECT_EQ(pop_one(calendar), UINT32_MAX);
  EXPECT_EQ(calendar.now(), 0u);
  EXPECT_EQ(calendar.bytes(), 0u);
}

TEST(EventCalendar, EventsOfOneTimeKeepTheirOrder) {
  // Far more events than one chunk holds, pushed while others of the same time are taken.
  Calendar calendar;
  constexpr uint32_t kEvents = 1000;
  for (uint32_t i = 0; i < kEvents; ++i) {
    push(calendar, 5, i);
  }
  for (uint32_t i = 0; i < 3 * kEvents; ++i) {
    ASSERT_EQ(pop_one(calendar), i);
    ASSERT_EQ(calendar.now(), 5u);
    if (i < 2 * kEvents) {
      push(calendar, 5, kEvents + i);
    }
  }
  EXPECT_TRUE(calendar.is_empty());
  push(calendar, 5, 77);
  EXPECT_EQ(pop_one(calendar), 77u);
}

TEST(EventCalendar, EventsOfOneTimeKeepTheirOrderWhereverTheyWaited) {
  // Events of one time are in the far tier and in each wheel, as now() comes closer.
  constexpr uint64_t kTime = (uint64_t{3} << 32) + (5u << 22) + (7u << 12) + 9;
  const uint64_t steps[] = {0, uint64_t{3} << 32, kTime - 9 - (7u << 12), kTime - 9, kTime};
  Calendar calendar;
  uint32_t number = 0;
  for (const uint64_t step : steps) {
    push(calendar, step, 1000);
    ASSERT_EQ(pop_one(calendar), step == kTime ? 0u : 1000u) << step;
    ASSERT_EQ(calendar.now(), step);
    for (int i = 0; i < 50 && step != kTime; ++i) {
      push(calendar, kTime, number++);
    }
  }
  for (uint32_t i = 1; i < number; ++i) {
    ASSERT_EQ(pop_one(calendar), i);
  }
  EXPECT_EQ(pop_one(calendar), 1000u);
}

TEST(EventCalendar, NothingAfterTheLimitIsTaken) {
  const uint64_t times[] = {0,
                            1,
                            4095,
                            4096,
                            4097,
                            1u << 22,
                            (1u << 22) + 4096,
                            uint64_t{1} << 32,
                            (uint64_t{1} << 32) + 1,
                            (uint64_t{9} << 32) + 5,
                            kForever};
  Calendar calendar;
  for (uint32_t i = 0; i < std::size(times); ++i) {
    push(calendar, times[i], i);
  }
  for (uint32_t i = 0; i < std::size(times); ++i) {
    if (times[i] > 0) {
      ASSERT_EQ(pop_one(calendar, times[i] - 1), UINT32_MAX) << times[i];
      ASSERT_LE(calendar.now(), times[i] - 1);
    }
    ASSERT_EQ(pop_one(calendar, times[i]), i);
    ASSERT_EQ(calendar.now(), times[i]);
  }
}

TEST(EventCalendar, AnEventBeforeTheOneThatWaitsIsTakenFirst) {
  // A pop() that finds nothing up to its limit may not move past it.
  for (const uint64_t distance : {10ull, 5000ull, 5'000'000ull, 5'000'000'000ull}) {
    Calendar calendar;
    push(calendar, distance, 1);
    for (uint64_t limit = 0; limit < distance; limit += 1 + limit) {
      ASSERT_EQ(pop_one(calendar, limit), UINT32_MAX);
      push(calendar, limit, 2);
      ASSERT_EQ(pop_one(calendar), 2u);
      ASSERT_EQ(calendar.now(), limit);
    }
    ASSERT_EQ(pop_one(calendar), 1u);
    ASSERT_EQ(calendar.now(), distance);
  }
}

TEST(EventCalendar, ABurstHasEventsOfOneTime) {
  Calendar calendar;
  for (uint32_t i = 0; i < 60; ++i) {
    push(calendar, i / 30, i);
  }
  std::vector<Event> burst(20);
  EXPECT_EQ(calendar.pop(kForever, burst), 20u);
  EXPECT_EQ(calendar.pop(kForever, burst), 10u);
  EXPECT_EQ(burst[9].number, 29u);
  EXPECT_EQ(calendar.pop(0, burst), 0u);
  EXPECT_EQ(calendar.size(), 30u);
  EXPECT_EQ(calendar.pop(1, burst), 20u);
  EXPECT_EQ(burst[0].number, 30u);
}

/// Random delays like those of one kind of traffic.
struct Traffic {
  const char* name;
  uint32_t in_flight;
  std::function<uint64_t(base::Random&)> delay_ns;
};

TEST(EventCalendar, AgreesWithAPriorityQueue) {
  const Traffic all[] = {
      {"ties", 300, [](base::Random& random) { return random.below(3); }},
      {"hops", 2000, [](base::Random& random) { return 100 + 8 * random.below(20); }},
      {"turns of the first wheel", 500,
       [](base::Random& random) { return 4090 + random.below(12); }},
      {"turns of the second wheel", 100,
       [](base::Random& random) { return (1u << 22) - 2 + random.below(4); }},
      {"turns of the third wheel", 100,
       [](base::Random& random) { return (uint64_t{1} << 32) - 2 + random.below(4); }},
      {"every distance", 1000,
       [](base::Random& random) { return random.next() >> (24 + random.below(40)); }},
      {"hops and a few time-outs", 1000,
       [](base::Random& random) -> uint64_t {
         return random.below(100) == 0 ? 5'000'000'000u : 108;
       }},
  };
  for (const Traffic& traffic : all) {
    SCOPED_TRACE(traffic.name);
    using Expected = std::tuple<uint64_t, uint32_t>;  // time, insertion
    std::priority_queue<Expected, std::vector<Expected>, std::greater<>> expected;
    Calendar calendar;
    base::Random random(11);
    uint32_t number = 0;
    const auto add = [&] {
      const uint64_t time_ns = calendar.now() + traffic.delay_ns(random);
      expected.emplace(time_ns, number);
      push(calendar, time_ns, number++);
    };
    for (uint32_t i = 0; i < traffic.in_flight; ++i) {
      add();
    }
    for (uint32_t i = 0; i < 100'000 && !expected.empty(); ++i) {
      const auto [time_ns, next] = expected.top();
      expected.pop();
      ASSERT_EQ(pop_one(calendar), next);
      ASSERT_EQ(calendar.now(), time_ns);
      // The calendar grows at first, then shrinks to nothing.
      for (uint32_t more = random.below(i < 45'000 ? 4 : 2); more > 0 && i < 60'000; --more) {
        add();
      }
      ASSERT_EQ(calendar.size(), expected.size());
    }
  }
}

TEST(EventCalendar, MemoryIsUsedAgain) {
  Calendar calendar;
  base::Random random(3);
  size_t bytes = 0;
  for (int round = 0; round < 20; ++round) {
    for (uint32_t i = 0; i < 50'000; ++i) {
      push(calendar, calendar.now() + random.below(10'000), i);
    }
    while (pop_one(calendar) != UINT32_MAX) {
    }
    bytes = round == 0 ? calendar.bytes() : bytes;
    // The memory is at most a chunk more for each bucket of a turn.
    ASSERT_LE(calendar.bytes(), bytes + (2u << 20));
  }
  EXPECT_LE(bytes, 50'000u * 24 + 8192u * 256 + (2u << 20));
}

}  // namespace
}  // namespace rio::sim
