// How busy a card is: its own status in memory, and those of peers, on emulated cards.
#include <gtest/gtest.h>
#include <sched.h>

#include <cstring>
#include <memory>
#include <string>

#include "pmd/api/riopmd.hpp"
#include "tests/support/rail_ask.hpp"
#include "tests/support/wait.hpp"
#include "tests/unit/pmd/api/log_lines.hpp"

namespace rio {
namespace {

constexpr uint32_t kPeriodUs = 1;

EndpointConfig config_of(uint32_t dest_id) {
  EndpointConfig config;
  config.dest_id = dest_id;
  config.message_buffers = 64;
  config.card.response_timeout_us = 10'000'000;
  config.card.receive_timeout_us = 20'000'000;
  return config;
}

std::unique_ptr<Endpoint> must_open(const std::string& name, uint32_t dest_id) {
  std::unique_ptr<Endpoint> endpoint;
  EXPECT_EQ(Endpoint::open(name, config_of(dest_id), &endpoint), 0);
  return endpoint;
}

pmd::RailState must_read(const Endpoint& endpoint) {
  pmd::RailState state;
  EXPECT_EQ(endpoint.rail_watch()->read(&state), 0);
  return state;
}

/// Polls until the card has written a later status. @return it.
pmd::RailState next(Endpoint& endpoint) {
  const uint32_t before = must_read(endpoint).sequence;
  pmd::RailState now;
  EXPECT_TRUE(test::wait_until([&] {
    pmd::RxMessage none{};
    static_cast<void>(endpoint.shared().burst(&none, 1));
    sched_yield();  // to the card's thread, if it has one
    return endpoint.rail_watch()->read(&now) == 0 && now.sequence - before - 1 < 1u << 31;
  })) << "no status after "
      << before;
  return now;
}

class Cards : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string name(const char* wire) {
    return "emu:" + std::string(wire) + GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(Emulated, Cards,
                         testing::Values("", ",exact=1", ",pcie=3", ",pcie=5,torn=1",
                                         ",stepping=thread"));

TEST_P(Cards, TheCardKeepsItsStatusInMemory) {
  const auto endpoint = must_open(name("loop"), 7);
  ASSERT_NE(endpoint, nullptr);
  EXPECT_EQ(endpoint->rail_watch(), nullptr);
  EXPECT_EQ(endpoint->close_rail_watch(), -ENOENT);
  ASSERT_EQ(endpoint->wait_link(10000), 0);
  ASSERT_EQ(endpoint->open_rail_watch(kPeriodUs), 0);
  const pmd::RailState first = must_read(*endpoint);
  EXPECT_NE(first.sequence, 0u);
  EXPECT_TRUE(first.link.up);
  EXPECT_FALSE(first.reading);
  EXPECT_EQ(first.tx_bytes, 0u);
  for (int i = 0; i < 5; ++i) {
    const pmd::RailState later = next(*endpoint);
    EXPECT_NE(later.sequence, first.sequence);
    EXPECT_EQ(later.link.lanes, first.link.lanes);
  }
  test::LogLines log;
  EXPECT_EQ(endpoint->open_rail_watch(kPeriodUs), -EBUSY);
  EXPECT_TRUE(log.had("writes its rail status already"));
  EXPECT_EQ(endpoint->close_rail_watch(), 0);
  EXPECT_EQ(endpoint->rail_watch(), nullptr);
  ASSERT_EQ(endpoint->open_rail_watch(kPeriodUs), 0);
  EXPECT_GT(must_read(*endpoint).sequence, first.sequence);
  EXPECT_EQ(endpoint->close(), 0);
}

/// A message that its receiver has no buffer for is on its way until there is one.
TEST_P(Cards, AMessageOnItsWayShows) {
  const auto endpoint = must_open(name("loop"), 7);
  ASSERT_NE(endpoint, nullptr);
  ASSERT_EQ(endpoint->wait_link(10000), 0);
  ASSERT_EQ(endpoint->open_rail_watch(kPeriodUs), 0);
  pmd::TxMessage message{};
  message.iova = endpoint->buffers()->iova(0);
  message.dest_id = 7;
  message.length_bytes = 1000;
  ASSERT_EQ(endpoint->tx().burst(&message, 1), 1);
  pmd::RailState state;
  for (int i = 0; i < 1000 && state.tx_bytes == 0; ++i) {
    state = next(*endpoint);
  }
  EXPECT_EQ(state.tx_bytes, 1000u);
  const pmd::RxBuffer buffer{endpoint->buffers()->iova(1), 0};
  ASSERT_EQ(endpoint->shared().post(&buffer, 1), 1);
  for (int i = 0; i < 1000 && state.tx_bytes != 0; ++i) {
    state = next(*endpoint);
    pmd::TxDone done{};
    static_cast<void>(endpoint->tx().reap(&done, 1));
  }
  EXPECT_EQ(state.tx_bytes, 0u);
}

TEST_P(Cards, APeerIsAsked) {
  const auto a = must_open(name("rail-peers"), 1);
  const auto b = must_open(name("rail-peers"), 2);
  ASSERT_TRUE(a != nullptr && b != nullptr);
  ASSERT_EQ(a->wait_link(10000), 0);
  ASSERT_EQ(b->wait_link(10000), 0);
  test::RailAsk ask(*a);
  pmd::RxMessage none{};
  const auto peer_works = [&] { static_cast<void>(b->shared().burst(&none, 1)); };
  pmd::RailState state;
  EXPECT_EQ(ask(2, peer_works, &state), 0);
  EXPECT_TRUE(state.link.up);
  EXPECT_EQ(state.sequence, 0u) << "it has written none";
  ASSERT_EQ(b->open_rail_watch(kPeriodUs), 0);
  EXPECT_EQ(ask(2, peer_works, &state), 0);
  EXPECT_NE(state.sequence, 0u);
  EXPECT_EQ(ask(3, peer_works, &state), -ENOTSUP) << "no such destID";
}

TEST(Rail, ACardWithoutTheBlockSaysSo) {
  const auto endpoint = must_open("emu:loop,rail=0", 7);
  ASSERT_NE(endpoint, nullptr);
  test::LogLines log;
  EXPECT_EQ(endpoint->open_rail_watch(kPeriodUs), -ENOTSUP);
  EXPECT_TRUE(log.had("no rails block"));
  test::RailAsk ask(*endpoint);
  pmd::RailState state;
  EXPECT_EQ(ask(
                7, [] {}, &state),
            -ENOTSUP);
}

TEST(Rail, EndpointsOfACardShareOneStatusUntilTheLastOneCloses) {
  auto first = must_open("emu:loop,qps=2", 7);
  ASSERT_NE(first, nullptr);
  EndpointConfig config;
  config.queue_pair = 1;
  std::unique_ptr<Endpoint> second;
  ASSERT_EQ(first->open_queue_pair(config, &second), 0);
  ASSERT_EQ(first->open_rail_watch(kPeriodUs), 0);
  test::LogLines log;
  EXPECT_EQ(second->open_rail_watch(kPeriodUs), -EBUSY);
  EXPECT_EQ(second->rail_watch(), first->rail_watch());
  EXPECT_EQ(first->close(), 0);
  pmd::RailState state;
  EXPECT_EQ(second->rail_watch()->read(&state), 0);
  EXPECT_EQ(second->close(), 0);
}

}  // namespace
}  // namespace rio
