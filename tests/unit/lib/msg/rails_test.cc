// Ports with several cards: paths are found, messages keep their order, and a lost rail loses
// nothing.
#include <gtest/gtest.h>

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

TEST_F(RailsTest, MessagesGoOnByAnotherRailAndComeBack) {
  MessagePort& a = port(config_of(1, "xy"));
  MessagePort& b = port(config_of(2, "xy"));
  const Member at_a = member(a, 0);
  const Member at_b = member(b, 0);
  const Route to_b = route(at_a, 2, 0);
  const Route to_a = route(at_b, 1, 0);
  EXPECT_EQ(exchange(at_a, to_b, at_b, 0, 100), numbers(0, 100));
  EXPECT_EQ(exchange(at_b, to_a, at_a, 0, 100), numbers(0, 100));
  ASSERT_TRUE(work_until([&] { return path_count(a, 2) == 2 && path_count(b, 1) == 2; }));
  for (uint32_t round = 0; round < 6; ++round) {
    const bool is_a = round % 2 == 0;
    MessagePort& cut = is_a ? a : b;
    const uint32_t peer = is_a ? 2 : 1;
    const uint32_t rail = rail_of(cut, peer);
    const auto send = [&](uint32_t from) {
      return is_a ? exchange(at_a, to_b, at_b, from, from + 300)
                  : exchange(at_b, to_a, at_a, from, from + 300);
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
  EXPECT_EQ(a.sessions_ended() + b.sessions_ended(), 0u);
  EXPECT_EQ(a.stats().cut_off + b.stats().cut_off, 0u);
}

class LostCard : public RailsTest,
                 public testing::WithParamInterface<std::tuple<bool, uint32_t>> {};

TEST_P(LostCard, LosesNoMessage) {
  MessagePort& a = port(config_of(1, "xy"));
  MessagePort& b = port(config_of(2, "xy"));
  const Member at_a = member(a, 0);
  const Member at_b = member(b, 0);
  const Route to_b = route(at_a, 2, 0);
  const Route to_a = route(at_b, 1, 0);
  EXPECT_EQ(exchange(at_a, to_b, at_b, 0, 100), numbers(0, 100));
  EXPECT_EQ(exchange(at_b, to_a, at_a, 0, 100), numbers(0, 100));
  ASSERT_TRUE(work_until([&] { return path_count(a, 2) == 2 && path_count(b, 1) == 2; }));
  uint32_t sent = 0;
  while (try_send(at_a, to_b, std::to_string(sent)) == 0) {
    ++sent;  // these are in the ring of the card
  }
  ASSERT_NE(sent, 0u);
  const auto [vanishes, rail] = GetParam();
  lose(a, rail, vanishes);
  std::vector<std::string> got;
  ASSERT_TRUE(work_until([&] {
    while (!at_b.inbox().empty()) {
      got.push_back(at_b.take());
    }
    return got.size() >= sent;
  }));
  EXPECT_EQ(got, numbers(0, sent));
  EXPECT_EQ(exchange(at_a, to_b, at_b, 0, 500), numbers(0, 500));
  EXPECT_EQ(exchange(at_b, to_a, at_a, 0, 500), numbers(0, 500));
  EXPECT_EQ(a.error(), 0) << "one card is left";
  EXPECT_EQ(a.sessions_ended() + b.sessions_ended(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Rails, LostCard, testing::Combine(testing::Bool(), testing::Values(0, 1)));

}  // namespace
}  // namespace rio::msg::test
