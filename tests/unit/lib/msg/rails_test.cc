// Ports with several cards: paths are found, messages keep their order, and a lost rail loses
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/lib/msg/rails_fixture.hpp"

namespace rio::msg::test {
namespace {

TEST_F(RailsTest, EachRailFindsItsPath) {
  MessagePort& a = port(config_of(1, "xyz"));
  MessagePort& b = port(config_of(2, "xyz"));
  const Member from = member(a, 0);
  const Member to = member(b, 0);
  const Route way = route(from, 2, 0);
  EXPECT_EQ(exchange(from, way, to, 0, 100), numbers(0, 100));
  EXPECT_TRUE(work_until([&] { return path_count(a, 2) == 3 && path_count(b, 1) == 3; }));
  EXPECT_EQ(exchange(from, way, to, 100, 200), numbers(100, 200));
}

TEST_F(RailsTest, RailsInAnotherOrderFindEachOther) {
  MessagePort& a = port(config_of(1, "xyz"));
  MessagePort& b = port(config_of(2, "xzy"));
  const Member from = member(a, 0);
  const Member to = member(b, 0);
  EXPECT_EQ(exchange(from, route(from, 2, 0), to, 0, 10), numbers(0, 10));
  ASSERT_TRUE(work_until([&] { return path_count(a, 2) == 3 && path_count(b, 1) == 3; }));
  EXPECT_EQ(a.known_link(2)->paths[1]->remote, 2u);
  EXPECT_EQ(a.known_link(2)->paths[2]->remote, 1u);
}

// All cards are on one network, where each reaches each.
class OneNetwork : public RailsTest,
                   public testing::WithParamInterface<std::tuple<uint32_t, uint32_t>> {
 protected:
  static PortConfig on_one(uint32_t id, uint32_t rails) {
    constexpr uint32_t kApart = 10;
    PortConfig config = config_of(id, "x");
    for (uint32_t i = 1; i < rails; ++i) {
      config.card += "+shm:x,id=" + std::to_string(id + i * kApart);
    }
    return config;
  }
};

TEST_P(OneNetwork, EachRailHasAPathOfItsOwn) {
  const auto [rails_of_a, rails_of_b] = GetParam();
  MessagePort& a = port(on_one(1, rails_of_a));
  MessagePort& b = port(on_one(2, rails_of_b));
  const Member at_a = member(a, 0);
  const Member at_b = member(b, 0);
  const Route to_b = route(at_a, 2, 0);
  const Route to_a = route(at_b, 1, 0);
  EXPECT_EQ(exchange(at_a, to_b, at_b, 0, 100), numbers(0, 100));
  const uint32_t paths = std::min(rails_of_a, rails_of_b);
  ASSERT_TRUE(work_until([&] { return path_count(a, 2) == paths && path_count(b, 1) == paths; }));
  const auto end = std::chrono::steady_clock::now() + milliseconds(100);
  while (std::chrono::steady_clock::now() < end) {
    turn();  // rails without a path go on asking
  }
  for (uint32_t rail = 0; rail < rails_of_a; ++rail) {
    const std::unique_ptr<Path>& there = a.known_link(2)->paths[rail];
    if (there == nullptr || !there->is_found) {
      continue;  // the peer has fewer rails
    }
    const std::unique_ptr<Path>& back = b.known_link(1)->paths[there->remote];
    ASSERT_TRUE(back != nullptr && back->is_found) << rail;
    EXPECT_EQ(back->remote, rail);
    EXPECT_EQ(there->dest_id, b.rails().at(there->remote).endpoint.dest_id());
    EXPECT_EQ(back->dest_id, a.rails().at(rail).endpoint.dest_id());
  }
  // Any of them carries messages.
  for (uint32_t rail = 0; rail < rails_of_a; ++rail) {
    const std::unique_ptr<Path>& there = a.known_link(2)->paths[rail];
    if (there == nullptr || !there->is_found) {
      continue;
    }
    a.rails().at(rail).outbox.use(*there);
    EXPECT_EQ(exchange(at_a, to_b, at_b, 0, 100), numbers(0, 100)) << rail;
    EXPECT_EQ(exchange(at_b, to_a, at_a, 0, 100), numbers(0, 100)) << rail;
  }
  EXPECT_EQ(a.stats().bad + b.stats().bad, 0u);
  EXPECT_EQ(a.sessions_ended() + b.sessions_ended(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Rails, OneNetwork,
                         testing::Values(std::tuple(2, 2), std::tuple(3, 2), std::tuple(2, 3),
                                         std::tuple(8, 8)));

TEST_F(RailsTest, APeerWithOneRailIsReachedByOne) {
  MessagePort& a = port(config_of(1, "xy"));
  MessagePort& b = port(config_of(2, "x"));
  const Member from = member(a, 0);
  const Member to = member(b, 0);
  const Member back = member(b, 1);
  const Member home = member(a, 1);
  EXPECT_EQ(exchange(from, route(from, 2, 0), to, 0, 100), numbers(0, 100));
  EXPECT_EQ(exchange(back, route(back, 1, 1), home, 0, 100), numbers(0, 100));
  EXPECT_EQ(path_count(a, 2), 0u) << "nothing is searched";
  EXPECT_EQ(a.stats().bad + b.stats().bad, 0u);
}

/// Two ports with two rails each, which have exchanged messages and found all paths.
class TwoPorts : public RailsTest {
 protected:
  TwoPorts() {
    EXPECT_EQ(exchange(at_a_, to_b_, at_b_, 0, 100), numbers(0, 100));
    EXPECT_EQ(exchange(at_b_, to_a_, at_a_, 0, 100), numbers(0, 100));
    EXPECT_TRUE(work_until([&] { return path_count(a_, 2) == 2 && path_count(b_, 1) == 2; }));
  }

  MessagePort& a_ = port(config_of(1, "xy"));
  MessagePort& b_ = port(config_of(2, "xy"));
  const Member at_a_ = member(a_, 0);
  const Member at_b_ = member(b_, 0);
  const Route to_b_ = route(at_a_, 2, 0);
  const Route to_a_ = route(at_b_, 1, 0);
};

TEST_F(TwoPorts, MessagesGoOnByAnotherRailAndComeBack) {
  for (uint32_t round = 0; round < 6; ++round) {
    const bool is_a = round % 2 == 0;
    MessagePort& cut = is_a ? a_ : b_;
    const uint32_t peer = is_a ? 2 : 1;
    const uint32_t rail = rail_of(cut, peer);
    const auto send = [&](uint32_t from) {
      return is_a ? exchange(at_a_, to_b_, at_b_, from, from + 300)
                  : exchange(at_b_, to_a_, at_a_, from, from + 300);
    };
    set_link(cut, rail, false);
    EXPECT_EQ(send(0), numbers(0, 300)) << round << ": some before the card has noticed";
    ASSERT_TRUE(work_until([&] { return !cut.rails().at(rail).endpoint.card().link().up; }));
    EXPECT_EQ(send(0), numbers(0, 300)) << round;
    EXPECT_NE(rail_of(cut, peer), rail) << round;
    set_link(cut, rail, true);
    EXPECT_EQ(send(300), numbers(300, 600)) << round;
    ASSERT_TRUE(work_until([&] { return cut.known_link(peer)->paths[rail]->state.is_up(); }))
        << round << ": state "
        << static_cast<int>(cut.known_link(peer)->paths[rail]->state.state());
  }
  EXPECT_EQ(a_.sessions_ended() + b_.sessions_ended(), 0u);
  EXPECT_EQ(a_.stats().cut_off + b_.stats().cut_off, 0u);
}

class LostCard : public TwoPorts, public testing::WithParamInterface<std::tuple<bool, uint32_t>> {};

TEST_P(LostCard, LosesNoMessage) {
  uint32_t sent = 0;
  while (try_send(at_a_, to_b_, std::to_string(sent)) == 0) {
    ++sent;  // these are in the ring of the card
  }
  ASSERT_NE(sent, 0u);
  const auto [vanishes, rail] = GetParam();
  lose(a_, rail, vanishes);
  std::vector<std::string> got;
  ASSERT_TRUE(work_until([&] {
    while (!at_b_.inbox().empty()) {
      got.push_back(at_b_.take());
    }
    return got.size() >= sent;
  }));
  EXPECT_EQ(got, numbers(0, sent));
  EXPECT_EQ(exchange(at_a_, to_b_, at_b_, 0, 500), numbers(0, 500));
  EXPECT_EQ(exchange(at_b_, to_a_, at_a_, 0, 500), numbers(0, 500));
  EXPECT_EQ(a_.error(), 0) << "one card is left";
  EXPECT_EQ(a_.sessions_ended() + b_.sessions_ended(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Rails, LostCard, testing::Combine(testing::Bool(), testing::Values(0, 1)));

// The card of each rail reports by itself that a process has gone. Its successor may have a
// session, whose paths are not found yet, before the second rail reports.
TEST_F(RailsTest, ALateReportOfAGoneProcessDoesNotEndTheSessionOfItsSuccessor) {
  MessagePort& a = port(config_of(1, "xy"));
  MessagePort& b = port(config_of(2, "xy"));
  const Member from = member(a, 0);
  {
    const Member to = member(b, 0);
    EXPECT_EQ(exchange(from, route(from, 2, 0), to, 0, 10), numbers(0, 10));
    ASSERT_TRUE(work_until([&] { return path_count(a, 2) == 2 && path_count(b, 1) == 2; }));
  }
  close(b);
  for (const auto& path : a.known_link(2)->paths) {
    if (path != nullptr) {
      path->is_found = false;
    }
  }
  Silence& second = a.rails().at(1).silence;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!second.has_gone(2) && std::chrono::steady_clock::now() < end) {
    second.look_for_gone([] {});
  }
  ASSERT_TRUE(second.has_gone(2));
  EXPECT_EQ(a.sessions_ended(), 0u);
  EXPECT_EQ(a.known_link(2)->state, LinkState::kUp);
}

}  // namespace
}  // namespace rio::msg::test
