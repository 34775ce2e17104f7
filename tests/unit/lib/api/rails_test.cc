// riomsg.h: counters and events of rails.
#include <chrono>
#include <ctime>
#include <string>

#include "fpga/regs/gen/rio_regs.hpp"
#include "lib/api/handles.hpp"
#include "tests/unit/lib/api/riomsg_fixture.hpp"

namespace rio::test {
namespace {

constexpr const char* kCards = "emu:rails-a+emu:rails-b";

class RioMsgRails : public testing::Test {
 protected:
  /// Both ports make progress until `done()`. @return false: it did not become true in time.
  template <class Done>
  bool until(Done&& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLongMs);
    while (!done()) {
      EXPECT_GE(a_.progress(), 0);
      EXPECT_GE(b_.progress(), 0);
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
    }
    return true;
  }
  /// Sends a message, after which the ports search their rails, until both rails have a path.
  void meet() {
    ASSERT_TRUE(until([&] { return from_.send(to_.self(), bytes_of("hello")) == 0; }));
    ASSERT_TRUE(until([&] { return stats(0).paths == 1 && stats(1).paths == 1; }));
    constexpr int kTurns = 200;  // the port looks for what has changed every now and then
    for (int turn = 0; turn < kTurns; ++turn) {
      EXPECT_GE(a_.progress() + b_.progress(), 0);
    }
  }
  rio_msg_rail_stats stats(uint32_t rail) {
    rio_msg_rail_stats stats{};
    EXPECT_EQ(a_.rail_stats(rail, &stats), 0);
    return stats;
  }
  void set_link(uint32_t rail, bool is_up) {
    msg::MessagePort& port = *a_.get()->port;
    port.rails().at(rail).endpoint.card().bus().bar().write32(regs::port::control(), is_up ? 1 : 0);
  }

  static api::Port open(uint32_t dest_id) {
    rio_msg_options options = api::msg_options();
    options.dest_id = dest_id;
    options.buffers = 1024;
    options.response_timeout_us = 2'000'000;  // no doubt only because the machine is slow
    api::Port port;
    EXPECT_RC(api::Port::open(kCards, options, &port), 0);
    return port;
  }

  api::Port a_ = open(1);
  api::Port b_ = open(2);
  api::Context from_ = open_context(a_, 1);
  api::Context to_ = open_context(b_, 1);
};

TEST_F(RioMsgRails, HaveNamesAndCounts) {
  meet();
  EXPECT_EQ(std::string(a_.rail_name(0)).find("emu:rails-a"), 0u);
  EXPECT_EQ(std::string(a_.rail_name(1)).find("emu:rails-b"), 0u);
  EXPECT_EQ(a_.rail_name(2), nullptr);
  rio_msg_rail_stats stats{};
  EXPECT_EQ(a_.rail_stats(2, &stats), -ENOENT);
  constexpr uint32_t kMessages = 200;
  uint32_t sent = 0;
  uint32_t received = 0;
  ASSERT_TRUE(until([&] {
    sent += sent < kMessages && from_.send(to_.self(), bytes_of("four")) == 0 ? 1 : 0;
    api::Message message;
    received += to_.receive(&message) == 1 ? 1 : 0;
    return received > kMessages;  // with that of meet()
  }));
  ASSERT_EQ(a_.flush(kLongMs), 0);
  const rio_msg_rail_stats first = this->stats(0);
  const rio_msg_rail_stats second = this->stats(1);
  EXPECT_GE(first.sent + second.sent, kMessages);
  EXPECT_GE(first.sent_bytes + second.sent_bytes, uint64_t{kMessages} * 20) << "with headers";
  EXPECT_GT(first.received + second.received, 0u) << "credits";
  EXPECT_EQ(first.paths_up + second.paths_up, 2u);
  EXPECT_EQ(first.downs + second.downs + first.moves + second.moves, 0u);
  EXPECT_EQ(first.gone + second.gone, 0u);
}

TEST_F(RioMsgRails, StatsOfOlderAndNewerPrograms) {
  constexpr size_t kWords = sizeof(rio_msg_rail_stats) / sizeof(uint64_t);
  uint64_t words[kWords + 1];
  auto* const stats = reinterpret_cast<rio_msg_rail_stats*>(words);
  words[kWords] = 5;
  EXPECT_EQ(rio_msg_get_rail_stats(a_.get(), 0, stats, sizeof(words)), 0);
  EXPECT_EQ(words[kWords], 0u);
  words[1] = 5;
  EXPECT_EQ(rio_msg_get_rail_stats(a_.get(), 0, stats, sizeof(uint64_t)), 0);
  EXPECT_EQ(words[1], 5u);
  EXPECT_EQ(rio_msg_get_rail_stats(a_.get(), 0, stats, 7), -EINVAL);
}

TEST_F(RioMsgRails, AProgramThatAsksHearsOfACut) {
  meet();
  rio_msg_rail_event event{};
  EXPECT_EQ(a_.next_rail_event(&event), 0) << "a rail that is found is no event";
  set_link(1, false);
  ASSERT_TRUE(until([&] { return a_.next_rail_event(&event) == 1; }));
  EXPECT_EQ(event.rail, 1u);
  EXPECT_EQ(event.dest_id, 2u);
  EXPECT_EQ(event.is_up, 0u);
  EXPECT_EQ(event.reason, uint32_t{RIO_MSG_RAIL_LINK_DOWN});
  EXPECT_EQ(stats(1).downs, 1u);
  EXPECT_EQ(stats(1).paths_up, 0u);
  const uint64_t down_ns = event.time_ns;
  set_link(1, true);
  ASSERT_TRUE(until([&] { return a_.next_rail_event(&event) == 1; }));
  EXPECT_EQ(event.rail, 1u);
  EXPECT_EQ(event.is_up, 1u);
  EXPECT_EQ(event.reason, uint32_t{RIO_MSG_RAIL_LINK_DOWN});
  EXPECT_GT(event.time_ns, down_ns);
  timespec now{};
  ASSERT_EQ(clock_gettime(CLOCK_MONOTONIC, &now), 0);
  EXPECT_LE(event.time_ns,
            static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec));
  EXPECT_EQ(a_.next_rail_event(&event), 0);
  EXPECT_EQ(stats(1).paths_up, 1u);
}

}  // namespace
}  // namespace rio::test
