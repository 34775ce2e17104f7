// Ports with several cards: paths are found, messages keep their order, and a lost rail loses
// nothing.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "fpga/model/card.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/unit/lib/msg/large_fixture.hpp"
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

class LostCard : public RailsTest, public testing::WithParamInterface<std::tuple<bool, uint32_t>> {
 protected:
  static void lose(MessagePort& port) {
    const auto [vanishes, rail] = GetParam();
    pmd::Bus& bus = port.rails().at(rail).endpoint.card().bus();
    model::Card& card = *dynamic_cast<pmd::EmuBus&>(bus).card();
    vanishes ? card.vanish() : card.lose_state();
  }
};

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
  lose(a);
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

TEST_F(RailsTest, LargeDataGoesOverBothRailsAndSurvivesACut) {
  MessagePort& a = port(config_of(1, "xy"));
  MessagePort& b = port(config_of(2, "xy"));
  const Member from = member(a, 0);
  const Member to = member(b, 0);
  ASSERT_EQ(from.context->accept_large(), 0);
  ASSERT_EQ(to.context->accept_large(), 0);
  const Route way = route(from, 2, 0);
  EXPECT_EQ(exchange(from, way, to, 0, 1), numbers(0, 1));
  ASSERT_TRUE(work_until([&] { return path_count(a, 2) == 2 && path_count(b, 1) == 2; }));
  constexpr uint64_t kBytes = 3 << 20;
  constexpr uint32_t kTransfers = 8;
  std::vector<std::vector<uint8_t>> sent(kTransfers);
  std::vector<std::vector<uint8_t>> got(kTransfers, std::vector<uint8_t>(kBytes));
  std::vector<SendTransfer> sends(kTransfers);
  std::vector<RecvTransfer> receives(kTransfers);
  for (uint32_t round = 0; round < 3; ++round) {
    for (uint32_t i = 0; i < kTransfers; ++i) {
      sent[i].resize(kBytes);
      test::fill(sent[i].data(), kBytes, round * kTransfers + i);
      int rc = -EAGAIN;
      ASSERT_TRUE(work_until([&] {
        return (rc = from.context->send_large(way, i, sent[i].data(), kBytes, sends[i])) != -EAGAIN;
      }));
      ASSERT_EQ(rc, 0);
    }
    uint32_t taken = 0;
    uint32_t done = 0;
    uint32_t rails = 0;
    bool is_cut = false;
    ASSERT_TRUE(work_until([&] {
      for (; !to.inbox().empty(); ++taken) {
        to.context->receive_large(to.context->take_request(), got[taken].data(), kBytes,
                                  receives[taken]);
      }
      for (uint32_t i = 0; i < taken; ++i) {
        rails |= receives[i].path != nullptr ? 1u << receives[i].path->rail.index : 0;
      }
      while (from.context->next_sent() != nullptr) {
        ++done;
      }
      while (to.context->next_received() != nullptr) {
        ++done;
      }
      if (!is_cut && done >= 2 && round != 0) {
        is_cut = true;
        set_link(a, round - 1, false);
      }
      return done == 2 * kTransfers;
    })) << round
        << ": " << done;
    EXPECT_EQ(rails, 3u) << "both rails";
    for (uint32_t i = 0; i < kTransfers; ++i) {
      EXPECT_EQ(sends[i].status, 0) << i;
      EXPECT_EQ(receives[i].status, 0) << i;
      EXPECT_TRUE(sent[i] == got[i]) << round << ", " << i;
    }
    if (round != 0) {
      set_link(a, round - 1, true);
      ASSERT_TRUE(work_until([&] { return a.known_link(2)->paths[round - 1]->state.is_up(); }));
      ASSERT_TRUE(work_until([&] { return b.known_link(1)->paths[round - 1]->state.is_up(); }));
    }
  }
  EXPECT_EQ(a.sessions_ended() + b.sessions_ended(), 0u);
}

}  // namespace
}  // namespace rio::msg::test
