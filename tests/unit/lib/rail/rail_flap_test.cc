// Two paths in virtual time: how long an application waits when a link fails, how soon a path that
// is back is used, and what a link that flaps costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <vector>

#include "base/random.hpp"
#include "lib/rail/rail_state.hpp"
#include "tests/support/seed.hpp"

namespace rio::rail {
namespace {

constexpr uint64_t kUs = 1000;
constexpr uint64_t kMs = 1000 * kUs;
constexpr uint64_t kStep = 100 * kUs;
constexpr uint64_t kRoundTrip = 100 * kUs;
constexpr uint64_t kService = 1 * kMs;  // of a message on a rail
constexpr uint64_t kStart = 1000 * kMs;

/// Whether a link works at a time.
using Link = std::function<bool(uint64_t now_ns)>;

struct Path {
  Path(uint64_t timeout, Link works)
      : link(std::move(works)), state(timeout), timeout_ns(timeout) {}

  struct Flight {
    uint64_t due_ns;
    uint32_t number;
    bool arrives;
  };

  /// @return messages in doubt. @param arrived takes numbers.
  std::vector<uint32_t> step(uint64_t now, std::vector<bool>& arrived) {
    if (is_probe_out && now >= probe_due_ns) {
      is_probe_out = false;
      probe_works ? state.probe_answered(now) : state.probe_unanswered(now);
    }
    std::vector<uint32_t> doubts;
    std::deque<Flight> left;
    for (const Flight& flight : flights) {
      if (now < flight.due_ns) {
        left.push_back(flight);
      } else if (flight.arrives) {
        arrived[flight.number] = true;
        state.delivered(now);
      } else {
        doubts.push_back(flight.number);
        state.in_doubt(now);
      }
    }
    flights = left;
    if (state.probe_due(now)) {
      state.probe_sent(now);
      is_probe_out = true;
      probe_works = link(now) && link(now + kRoundTrip);
      probe_due_ns = now + (probe_works ? kRoundTrip : timeout_ns);
    }
    return doubts;
  }

  void send(uint64_t now, uint32_t number) {
    free_ns = std::max(now, free_ns) + kService;
    const bool arrives = link(free_ns);
    flights.push_back({arrives ? free_ns : now + timeout_ns, number, arrives});
  }

  Link link;
  RailState state;
  uint64_t timeout_ns;
  std::deque<Flight> flights;
  uint64_t free_ns = 0;
  uint64_t probe_due_ns = 0;
  bool is_probe_out = false;
  bool probe_works = false;
};

struct Result {
  uint32_t in_order = 0;    // messages that the application has
  uint64_t silence_ns = 0;  // longest time without a further one
};

/// Send as fast as two paths can, `window` messages on each, until `end_ns`.
Result run(std::vector<Path>& paths, uint64_t end_ns, size_t window = 2) {
  std::vector<bool> arrived(1'000'000);
  std::deque<uint32_t> again;
  Result result;
  uint32_t next = 0;
  uint64_t last_ns = kStart;
  for (uint64_t now = kStart; now < end_ns; now += kStep) {
    bool any_up = false;
    for (Path& path : paths) {
      const std::vector<uint32_t> doubts = path.step(now, arrived);
      again.insert(again.end(), doubts.begin(), doubts.end());
      any_up = any_up || path.state.is_up();
    }
    std::sort(again.begin(), again.end());
    for (Path& path : paths) {
      if (!any_up) {
        path.state.want(now);
      }
      const bool usable = any_up ? path.state.is_up() : path.state.is_last_resort();
      while (usable && path.flights.size() < window) {
        path.send(now, again.empty() ? next++ : again.front());
        if (!again.empty()) {
          again.pop_front();
        }
      }
    }
    for (; arrived[result.in_order]; ++result.in_order) {
      result.silence_ns = std::max(result.silence_ns, now - last_ns);
      last_ns = now;
    }
  }
  result.silence_ns = std::max(result.silence_ns, end_ns - last_ns);
  return result;
}

bool always(uint64_t /*now_ns*/) {
  return true;
}

TEST(RailFlap, AFailureCostsNoMoreThanThreeTimeouts) {
  base::Random random(test::first_seed());
  for (const uint64_t timeout : {4 * kMs, 20 * kMs, 100 * kMs}) {
    for (int round = 0; round < 20; ++round) {
      const uint64_t fails = kStart + random.below(500'000) * kUs;
      std::vector<Path> paths;
      paths.emplace_back(timeout, [fails](uint64_t now) { return now < fails; });
      paths.emplace_back(timeout, always);
      const Result result = run(paths, fails + 1000 * kMs);
      EXPECT_LE(result.silence_ns, 3 * timeout) << "fails at " << fails;
      EXPECT_GT(result.in_order, (fails + 1000 * kMs - kStart - 3 * timeout) / kService);
    }
  }
}

TEST(RailFlap, APathThatHasJustComeBackCarriesAllIfTheOtherOneFails) {
  base::Random random(test::first_seed());
  for (const uint64_t timeout : {4 * kMs, 20 * kMs, 100 * kMs}) {
    for (int round = 0; round < 20; ++round) {
      // The first one comes back, and within a second the other one fails.
      const uint64_t back = kStart + 1500 * kMs + random.below(700'000) * kUs;
      const uint64_t fails = back + 1 + random.below(1'000'000) * kUs;
      std::vector<Path> paths;
      paths.emplace_back(timeout,
                         [back](uint64_t now) { return now < kStart + 100 * kMs || now >= back; });
      paths.emplace_back(timeout, [fails](uint64_t now) { return now < fails; });
      EXPECT_LE(run(paths, fails + 1000 * kMs).silence_ns, 3 * timeout)
          << "back at " << back << ", fails at " << fails;
    }
  }
}

TEST(RailFlap, APathIsUsedWithinTwoSecondsOfItsReturn) {
  base::Random random(test::first_seed());
  for (const uint64_t timeout : {kMs, 10 * kMs, 100 * kMs}) {
    for (int round = 0; round < 20; ++round) {
      const uint64_t back = kStart + 200 * kMs + random.below(5'000'000) * kUs;
      std::vector<Path> paths;
      paths.emplace_back(timeout,
                         [back](uint64_t now) { return now < kStart + 100 * kMs || now >= back; });
      paths.emplace_back(timeout, always);
      run(paths, back + 2000 * kMs);
      EXPECT_EQ(paths[0].state.counts().downs, 1u);
      EXPECT_TRUE(paths[0].state.is_up()) << "back at " << back;
    }
  }
}

/// Messages that one steady path brings in ten seconds, and two of which one flaps, with the number
/// of times that this one was used again.
struct Flapping {
  uint32_t one = 0;
  uint32_t two = 0;
  uint64_t returns = 0;
};

Flapping flap(uint64_t timeout, uint64_t down_ns, uint64_t up_ns) {
  constexpr uint64_t kEnd = kStart + 10'000 * kMs;
  std::vector<Path> one;
  one.emplace_back(timeout, always);
  std::vector<Path> two;
  two.emplace_back(timeout, [=](uint64_t now) { return now % (down_ns + up_ns) < up_ns; });
  two.emplace_back(timeout, always);
  Flapping result;
  result.one = run(one, kEnd).in_order;
  result.two = run(two, kEnd).in_order;
  result.returns = two[0].state.counts().returns;
  return result;
}

TEST(RailFlap, APathThatFlapsTenTimesASecondIsLeftAlone) {
  for (const uint64_t timeout : {kMs, 10 * kMs, 100 * kMs}) {
    const Flapping result = flap(timeout, 50 * kMs, 50 * kMs);
    EXPECT_GE(result.two, 0.95 * result.one) << "time-out " << timeout;
    EXPECT_LE(result.returns, 1u) << "time-out " << timeout;
  }
}

TEST(RailFlap, NoRhythmOfFlappingCostsMoreThanAFifth) {
  base::Random random(test::first_seed());
  for (int round = 0; round < 40; ++round) {
    const uint64_t timeout = std::vector<uint64_t>{kMs, 10 * kMs, 100 * kMs}[random.below(3)];
    const uint64_t down = (10 + random.below(400)) * kMs;
    const uint64_t up = (10 + random.below(800)) * kMs;
    const Flapping result = flap(timeout, down, up);
    EXPECT_GE(result.two, 0.8 * result.one)
        << "time-out " << timeout << ", down for " << down << ", up for " << up;
  }
}

}  // namespace
}  // namespace rio::rail
