// Groups of Meetings on a transport that delivers the notifications of a pair in order, and those
// of different pairs in any order.
#include "lib/barrier/meeting.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "lib/barrier/schedule_check.hpp"
#include "lib/barrier/scheme.hpp"

namespace rio::barrier {
namespace {

struct Notification {
  uint32_t round;
  uint32_t epoch;
};

/// A group whose steps the test chooses: a member arrives, or the oldest notification of a pair is
/// delivered.
class Network {
 public:
  Network(const Scheme& scheme, uint32_t ranks, uint32_t epoch = 0) {
    std::vector<Schedule> schedules;
    EXPECT_EQ(
        make_all(
            ranks,
            [&](uint32_t rank, Schedule* out) { return make_schedule(scheme, ranks, rank, out); },
            &schedules),
        0);
    for (const Schedule& schedule : schedules) {
      members_.emplace_back(schedule, epoch);
    }
    arrivals_.resize(ranks);
  }

  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(members_.size()); }
  [[nodiscard]] Meeting& member(uint32_t rank) { return members_[rank]; }
  [[nodiscard]] uint32_t arrivals(uint32_t rank) const { return arrivals_[rank]; }

  [[nodiscard]] auto sender(uint32_t from) {
    return [this, from](uint32_t to, uint32_t round) {
      wires_[{from, to}].push_back({round, members_[from].epoch()});
    };
  }

  void arrive(uint32_t rank) {
    ++arrivals_[rank];
    members_[rank].arrive(sender(rank));
    check(rank);
  }
  /// Pairs with a notification on its way.
  [[nodiscard]] std::vector<std::pair<uint32_t, uint32_t>> pairs() const {
    std::vector<std::pair<uint32_t, uint32_t>> all;
    for (const auto& [pair, queue] : wires_) {
      if (!queue.empty()) {
        all.push_back(pair);
      }
    }
    return all;
  }
  void deliver(std::pair<uint32_t, uint32_t> pair) {
    std::deque<Notification>& queue = wires_[pair];
    const Notification oldest = queue.front();
    queue.pop_front();
    const auto [from, to] = pair;
    EXPECT_NE(members_[to].receive(from, oldest.round, oldest.epoch, sender(to)),
              Meeting::Taken::kForeign);
    check(to);
  }
  [[nodiscard]] const Meeting& member(uint32_t rank) const { return members_[rank]; }
  [[nodiscard]] std::string describe() const {
    std::string text;
    for (uint32_t rank = 0; rank < ranks(); ++rank) {
      text +=
          std::to_string(arrivals_[rank]) + "," + std::to_string(members_[rank].missing()) + ";";
    }
    for (const auto& [pair, queue] : wires_) {
      text += std::to_string(pair.first) + ">" + std::to_string(pair.second);
      for (const Notification& notification : queue) {
        text += "," + std::to_string(notification.epoch) + "." + std::to_string(notification.round);
      }
    }
    return text;
  }
  /// Removes the notifications of a member that are on their way.
  void lose(uint32_t from) {
    std::erase_if(wires_, [&](const auto& wire) { return wire.first.first == from; });
  }

 private:
  /// Expects that every member has arrived at each barrier that a member has passed.
  void check(uint32_t rank) {
    if (members_[rank].has_passed()) {
      for (uint32_t other = 0; other < ranks(); ++other) {
        ASSERT_GE(arrivals_[other], arrivals_[rank]) << rank << " has passed without " << other;
      }
    }
  }

  std::vector<Meeting> members_;
  std::vector<uint32_t> arrivals_;
  std::map<std::pair<uint32_t, uint32_t>, std::deque<Notification>> wires_;
};

const Scheme kSchemes[] = {Classic{}, TwoWay{}, Tree{2}, Tree{3}};

/// Runs barriers in a random order. Members that have passed arrive again at once, or later.
/// @param dead a rank that dies after so many steps; kNoPeer: none.
void run(Network& net, uint32_t barriers, uint64_t seed, uint32_t dead = kNoPeer,
         uint32_t dies_after = 0) {
  base::Random random(seed);
  for (uint32_t step = 0;; ++step) {
    const bool is_dead = dead != kNoPeer && step >= dies_after;
    if (is_dead) {
      net.lose(dead);
    }
    std::vector<uint32_t> free;
    for (uint32_t rank = 0; rank < net.ranks(); ++rank) {
      if (net.member(rank).has_passed() && net.arrivals(rank) < barriers &&
          !(is_dead && rank == dead)) {
        free.push_back(rank);
      }
    }
    const auto pairs = net.pairs();  // those to a dead member arrive unseen
    if (free.empty() && pairs.empty()) {
      break;
    }
    const uint32_t pick = random.below(static_cast<uint32_t>(free.size() + pairs.size()));
    if (pick < free.size()) {
      net.arrive(free[pick]);
    } else {
      net.deliver(pairs[pick - free.size()]);
    }
    if (testing::Test::HasFatalFailure()) {
      return;
    }
  }
  for (uint32_t rank = 0; rank < net.ranks() && dead == kNoPeer; ++rank) {
    EXPECT_EQ(net.arrivals(rank), barriers);
    EXPECT_TRUE(net.member(rank).has_passed()) << rank << " hangs";
  }
}

TEST(Meeting, EverySchemeAndSizeInRandomOrders) {
  for (const Scheme& scheme : kSchemes) {
    for (uint32_t ranks = 1; ranks <= 9; ++ranks) {
      for (uint64_t seed = 0; seed < 40; ++seed) {
        Network net(scheme, ranks);
        run(net, 5, seed);
        ASSERT_FALSE(HasFailure()) << to_string(scheme) << ", " << ranks << ", seed " << seed;
      }
    }
  }
}

TEST(Meeting, ManyRanks) {
  for (const Scheme& scheme : {Scheme{TwoWay{}}, Scheme{Torus{{3, {4, 4, 3}}}}}) {
    Network net(scheme, 48);
    run(net, 4, 1);
  }
}

TEST(Meeting, EpochsWrapAround) {
  for (uint32_t back = 0; back < 4; ++back) {
    Network net(TwoWay{}, 5, UINT32_MAX - back);
    run(net, 6, back);
  }
}

/// Visits every state that a small group can reach, in every order of its steps.
class EveryOrder {
 public:
  explicit EveryOrder(uint32_t barriers) : barriers_(barriers) {}

  void visit(const Network& net) {
    if (testing::Test::HasFailure() || !seen_.insert(net.describe()).second) {
      return;
    }
    bool has_ended = true;
    const auto go_on = [&](const auto& step) {
      has_ended = false;
      Network next = net;
      step(next);
      visit(next);
    };
    for (const auto& pair : net.pairs()) {
      go_on([&](Network& next) { next.deliver(pair); });
    }
    for (uint32_t rank = 0; rank < net.ranks(); ++rank) {
      if (net.member(rank).has_passed() && net.arrivals(rank) < barriers_) {
        go_on([&](Network& next) { next.arrive(rank); });
      }
    }
    for (uint32_t rank = 0; rank < net.ranks() && has_ended; ++rank) {
      EXPECT_TRUE(net.member(rank).has_passed()) << rank << " hangs";
    }
  }
  [[nodiscard]] size_t states() const { return seen_.size(); }

 private:
  uint32_t barriers_;
  std::set<std::string> seen_;
};

TEST(Meeting, EveryOrderOfSmallGroups) {
  struct Case {
    uint32_t ranks;
    uint32_t barriers;
  };
  for (const Scheme& scheme : kSchemes) {
    for (const Case& one : {Case{2, 4}, Case{3, 3}, Case{4, 2}, Case{5, 1}}) {
      EveryOrder orders(one.barriers);
      orders.visit(Network(scheme, one.ranks));
      EXPECT_GT(orders.states(), one.ranks);
      ASSERT_FALSE(HasFailure()) << to_string(scheme) << ", " << one.ranks;
    }
  }
}

TEST(Meeting, AMemberThatStopsAtAnyStepStopsAll) {
  // After each step of a run one member does nothing more, and its notifications are lost: no other
  // member may pass a barrier at which it has not arrived, which check() sees, and none goes on.
  for (const Scheme& scheme : kSchemes) {
    for (uint32_t ranks = 2; ranks <= 9; ++ranks) {
      for (uint32_t stop = 0; stop < 60; ++stop) {
        Network net(scheme, ranks);
        const uint32_t dead = stop % ranks;
        run(net, 3, stop, dead, stop);
        for (uint32_t rank = 0; rank < ranks; ++rank) {
          EXPECT_LE(net.arrivals(rank), net.arrivals(dead) + 1);
        }
        ASSERT_FALSE(HasFailure()) << to_string(scheme) << ", " << ranks << ", step " << stop;
      }
    }
  }
}

TEST(Meeting, NotificationsThatAreNotAwaitedAreForeign) {
  Schedule schedule;
  ASSERT_EQ(make_schedule(Classic{}, 4, 0, &schedule), 0);
  Meeting meeting(schedule, 7);
  const auto none = [](uint32_t, uint32_t) { FAIL() << "sent before the arrival"; };
  // Notifications of an epoch that is over or too far ahead, of a member that is not awaited, and
  // in another round.
  EXPECT_EQ(meeting.receive(3, 0, 7, none), Meeting::Taken::kForeign);
  EXPECT_EQ(meeting.receive(3, 0, 9, none), Meeting::Taken::kForeign);
  EXPECT_EQ(meeting.receive(3, 0, 6, none), Meeting::Taken::kForeign);
  EXPECT_EQ(meeting.receive(1, 0, 8, none), Meeting::Taken::kForeign);
  EXPECT_EQ(meeting.receive(3, 1, 8, none), Meeting::Taken::kForeign);
  EXPECT_EQ(meeting.receive(3, 31, 8, none), Meeting::Taken::kForeign);
  EXPECT_EQ(meeting.receive(UINT32_MAX, 0, 8, none), Meeting::Taken::kForeign);
  EXPECT_EQ(meeting.receive(3, 0, 8, none), Meeting::Taken::kEarly);
  EXPECT_EQ(meeting.receive(3, 0, 8, none), Meeting::Taken::kForeign);  // a second time
  EXPECT_TRUE(meeting.has_passed());

  std::vector<std::pair<uint32_t, uint32_t>> sent;
  const auto note = [&](uint32_t to, uint32_t round) { sent.emplace_back(to, round); };
  meeting.arrive(note);
  EXPECT_EQ(meeting.epoch(), 8u);
  EXPECT_EQ(sent, (std::vector<std::pair<uint32_t, uint32_t>>{{1, 0}, {2, 1}}));
  EXPECT_EQ(meeting.missing(), peer_bit(1, 0));
  EXPECT_EQ(meeting.receive(2, 1, 8, note), Meeting::Taken::kCounted);
  EXPECT_TRUE(meeting.has_passed());
  EXPECT_EQ(meeting.missing(), 0u);
  EXPECT_EQ(meeting.receive(2, 1, 8, note), Meeting::Taken::kForeign);
}

}  // namespace
}  // namespace rio::barrier
