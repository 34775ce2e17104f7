// Counters and events of rails.
#include "lib/msg/rail_news.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "fpga/model/card.hpp"
#include "pmd/bus/emu/emu_bus.hpp"
#include "tests/support/log_capture.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/lib/msg/rails_fixture.hpp"

namespace rio::msg::test {
namespace {

using rio::test::LogCapture;

class RailNewsTest : public RailsTest {
 protected:
  /// No message is in doubt only because the machine is slow.
  static PortConfig patient(uint32_t id, const std::string& fabrics) {
    PortConfig config = config_of(id, fabrics);
    config.response_timeout_us = 2'000'000;
    return config;
  }
  /// Two ports with a session, each rail of which has its path.
  void meet(const std::string& fabrics) {
    a_ = &port(patient(1, fabrics));
    b_ = &port(patient(2, fabrics));
    at_a_ = member(*a_, 0);
    at_b_ = member(*b_, 0);
    to_b_ = route(at_a_, 2, 0);
    EXPECT_EQ(exchange(at_a_, to_b_, at_b_, 0, 100), numbers(0, 100));
    const auto count = static_cast<uint32_t>(fabrics.size());
    ASSERT_TRUE(
        work_until([&] { return path_count(*a_, 2) == count && path_count(*b_, 1) == count; }));
    turns(kTurns);  // each port observes its paths every now and then
  }
  /// Works until an event of `port` arrives.
  RailEvent next_event(const MessagePort& port, RailEvents& events) {
    RailEvent event;
    EXPECT_TRUE(work_until([&] { return events.next(port.rail_news(), &event); }));
    return event;
  }
  static std::vector<std::string> lines_with(const std::string& part) {
    std::vector<std::string> found;
    for (const std::string& line : LogCapture::lines()) {
      if (line.find(part) != std::string::npos) {
        found.push_back(line);
      }
    }
    return found;
  }

  static constexpr uint32_t kTurns = 200;
  MessagePort* a_ = nullptr;
  MessagePort* b_ = nullptr;
  Member at_a_;
  Member at_b_;
  Route to_b_;
};

TEST_F(RailNewsTest, CountsOfARailAreThoseOfItsCard) {
  meet("xy");
  const uint32_t rail = rail_of(*a_, 2);
  const RailStats before = a_->rail_stats(rail);
  const RailStats before_at_b = b_->rail_stats(rail);
  EXPECT_EQ(exchange(at_a_, to_b_, at_b_, 0, 500), numbers(0, 500));
  ASSERT_EQ(a_->flush(20000), 0);
  const RailStats stats = a_->rail_stats(rail);
  EXPECT_GE(stats.sent - before.sent, 500u);
  EXPECT_GE(stats.sent_bytes - before.sent_bytes, 500u * (kHeaderBytes + 1));
  EXPECT_LT(a_->rail_stats(1 - rail).sent, 100u) << "the messages to a peer stay on one rail";
  const RailStats at_other_side = b_->rail_stats(rail);
  EXPECT_GE(at_other_side.received - before_at_b.received, 500u);
  EXPECT_GE(at_other_side.received_bytes - before_at_b.received_bytes, 500u * (kHeaderBytes + 1));
  for (uint32_t each = 0; each < 2; ++each) {
    const RailStats of_each = a_->rail_stats(each);
    EXPECT_EQ(of_each.paths, 1u);
    EXPECT_EQ(of_each.paths_up, 1u);
    EXPECT_EQ(of_each.moves + of_each.downs + of_each.again + of_each.failed, 0u);
    EXPECT_EQ(of_each.gone, 0u);
  }
}

TEST_F(RailNewsTest, APortWithOneCardHasOneRail) {
  a_ = &port(1);
  b_ = &port(2);
  at_a_ = member(*a_, 0);
  at_b_ = member(*b_, 0);
  EXPECT_EQ(a_->rail_stats(0).paths, 0u);
  EXPECT_EQ(exchange(at_a_, route(at_a_, 2, 0), at_b_, 0, 100), numbers(0, 100));
  ASSERT_EQ(a_->flush(20000), 0);
  const RailStats stats = a_->rail_stats(0);
  EXPECT_GT(stats.sent, 100u);
  EXPECT_GT(stats.received, 0u);
  EXPECT_EQ(stats.paths, 1u);
  EXPECT_EQ(stats.paths_up, 1u);
  RailEvents events;
  RailEvent event;
  EXPECT_FALSE(events.next(a_->rail_news(), &event));
}

TEST_F(RailNewsTest, ACutIsCountedToldAndLogged) {
  meet("xy");
  RailEvents events;
  RailEvent event;
  EXPECT_FALSE(events.next(a_->rail_news(), &event)) << "a path that is found is no event";
  const uint32_t rail = rail_of(*a_, 2);
  const LogCapture log;
  const uint64_t cut_ns = base::now_ns();
  set_link(*a_, rail, false);
  EXPECT_EQ(exchange(at_a_, to_b_, at_b_, 0, 1000), numbers(0, 1000));
  event = next_event(*a_, events);
  EXPECT_EQ(event.rail, rail);
  EXPECT_EQ(event.dest_id, 2u);
  EXPECT_FALSE(event.is_up);
  EXPECT_EQ(event.reason, RailReason::kLinkDown);
  EXPECT_GE(event.time_ns, cut_ns);
  EXPECT_LE(event.time_ns, base::now_ns());
  const RailStats cut = a_->rail_stats(rail);
  EXPECT_EQ(cut.downs, 1u);
  EXPECT_GE(cut.moves, 1u);
  EXPECT_EQ(cut.paths_up, 0u);
  EXPECT_EQ(a_->rail_stats(1 - rail).paths_up, 1u);
  EXPECT_EQ(a_->rail_stats(1 - rail).downs, 0u);

  set_link(*a_, rail, true);
  const uint64_t down_ns = event.time_ns;
  event = next_event(*a_, events);
  EXPECT_EQ(event.rail, rail);
  EXPECT_TRUE(event.is_up);
  EXPECT_EQ(event.reason, RailReason::kLinkDown);
  EXPECT_GT(event.time_ns, down_ns);
  EXPECT_FALSE(events.next(a_->rail_news(), &event));
  EXPECT_EQ(a_->rail_stats(rail).paths_up, 1u);
  EXPECT_EQ(a_->rail_stats(rail).downs, 1u);

  const std::string name = "shm:" + std::string(rail == 0 ? "x" : "y") + "/1";
  const std::vector<std::string> lines = lines_with(name);
  ASSERT_EQ(lines.size(), 2u) << "once when it goes down, once when it is back";
  EXPECT_NE(lines[0].find("link down, so destID 2"), std::string::npos) << lines[0];
  EXPECT_NE(lines[1].find("reaches all its peers again"), std::string::npos) << lines[1];
}

TEST_F(RailNewsTest, AReaderThatComesLateHearsOfTheLastEventOnly) {
  meet("xy");
  const uint32_t rail = rail_of(*a_, 2);
  RailEvents early;
  set_link(*a_, rail, false);
  static_cast<void>(next_event(*a_, early));
  set_link(*a_, rail, true);
  static_cast<void>(next_event(*a_, early));
  RailEvents late;
  RailEvent event;
  ASSERT_TRUE(late.next(a_->rail_news(), &event));
  EXPECT_TRUE(event.is_up);
  EXPECT_FALSE(late.next(a_->rail_news(), &event));
}

TEST_F(RailNewsTest, RefusedMessagesAreCountedOnTheRailThatResendsThem) {
  meet("xy");
  const uint32_t rail = rail_of(*a_, 2);
  set_link(*a_, rail, false);
  pmd::Card& card = a_->rails().at(rail).endpoint.card();
  const pmd::PollHook step = card.bus().poll_hook(0);
  ASSERT_TRUE(rio::test::wait_until([&] {
    step.fn(step.ctx);
    return !card.link().up;
  }));
  // The port does not know yet, so the card refuses these.
  uint32_t sent = 0;
  while (sent < 4 && try_send(at_a_, to_b_, std::to_string(sent)) == 0) {
    ++sent;
  }
  ASSERT_NE(sent, 0u);
  std::vector<std::string> got;
  ASSERT_TRUE(work_until([&] {
    while (!at_b_.inbox().empty()) {
      got.push_back(at_b_.take());
    }
    return got.size() >= sent;
  }));
  EXPECT_EQ(got, numbers(0, sent));
  EXPECT_GT(a_->rail_stats(1 - rail).again, 0u);
  EXPECT_EQ(a_->rail_stats(0).again + a_->rail_stats(1).again, a_->stats().again);
  EXPECT_GT(a_->rail_stats(rail).failed, 0u);
}

TEST_F(RailNewsTest, ACardThatVanishesIsToldForEachPeer) {
  meet("xy");
  MessagePort& c = port(patient(3, "xy"));
  const Member at_c = member(c, 0);
  const Route to_c = route(at_a_, 3, 0);
  EXPECT_EQ(exchange(at_a_, to_c, at_c, 0, 10), numbers(0, 10));
  ASSERT_TRUE(work_until([&] { return path_count(*a_, 3) == 2 && path_count(c, 1) == 2; }));
  turns(kTurns);
  EXPECT_EQ(a_->rail_stats(1).paths, 2u);
  const LogCapture log;
  dynamic_cast<pmd::EmuBus&>(a_->rails().at(1).endpoint.card().bus()).card()->vanish();
  RailEvents events;
  std::set<uint32_t> peers;
  for (uint32_t i = 0; i < 2; ++i) {
    const RailEvent event = next_event(*a_, events);
    EXPECT_EQ(event.rail, 1u);
    EXPECT_FALSE(event.is_up);
    EXPECT_EQ(event.reason, RailReason::kCardGone);
    peers.insert(event.dest_id);
  }
  EXPECT_EQ(peers, (std::set<uint32_t>{2, 3}));
  EXPECT_EQ(a_->rail_stats(1).downs, 2u);
  EXPECT_EQ(a_->rail_stats(1).gone, 1u);
  EXPECT_EQ(a_->rail_stats(1).paths_up, 0u);
  EXPECT_EQ(lines_with("rail 1").size(), 0u);
  EXPECT_EQ(lines_with("close the port").size(), 1u) << "a card that is gone is logged once";
}

TEST_F(RailNewsTest, AnEndedSessionIsNoEventAndLeavesNothingBehind) {
  meet("xy");
  const uint32_t rail = rail_of(*a_, 2);
  RailEvents events;
  set_link(*a_, rail, false);
  EXPECT_FALSE(next_event(*a_, events).is_up);
  a_->cut_off(*a_->known_link(2));
  turns(kTurns);
  RailEvent event;
  EXPECT_FALSE(events.next(a_->rail_news(), &event));
  EXPECT_EQ(a_->rail_stats(rail).paths, 0u);
  set_link(*a_, rail, true);
  // The program is told why its messages may be lost before it can send again.
  EXPECT_EQ(send(at_a_, to_b_, "0"), -EPROTO);
  const LogCapture log;
  EXPECT_EQ(send(at_a_, to_b_, "0"), 0);
  EXPECT_TRUE(next_event(*a_, events).is_up);
  EXPECT_EQ(lines_with("reaches all its peers again").size(), 0u)
      << "what was down in the former session does not count";
  set_link(*a_, rail, false);
  EXPECT_FALSE(next_event(*a_, events).is_up);
  EXPECT_EQ(lines_with("link down").size(), 1u);
  EXPECT_EQ(a_->rail_stats(rail).downs, 2u);
}

TEST_F(RailNewsTest, ReasonsHaveNames) {
  std::set<std::string> names;
  for (const RailReason reason : {RailReason::kNone, RailReason::kNoAnswer, RailReason::kLinkDown,
                                  RailReason::kCardGone, RailReason::kPeerGone}) {
    names.insert(to_string(reason));
  }
  EXPECT_EQ(names.size(), 5u);
}

}  // namespace
}  // namespace rio::msg::test
