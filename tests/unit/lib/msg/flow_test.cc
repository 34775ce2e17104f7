// Credit: how much a sender may have under way, and that a stalled receiver costs only its own
// senders.
#include "tests/unit/lib/msg/net.hpp"

namespace rio::msg::test {
namespace {

class Flow : public Net {};

TEST_F(Flow, ASenderStopsAtItsShare) {
  const Member a = member(port(1), 0);
  const Member b = member(port(2), 0);
  const Route there = route(a, 2, 0);
  // 224 buffers are left for contexts, and a new sender gets a sixteenth of these at most.
  EXPECT_EQ(fill(a, there, 1000), 14u);
  EXPECT_EQ(try_send(a, there, "more"), -EAGAIN);
  EXPECT_FALSE(a.port->send_tiny(there, "more", 4));
  EXPECT_EQ(b.inbox().count(), 14u);
  for (uint32_t i = 0; i < 14; ++i) {
    EXPECT_EQ(b.take(), std::to_string(i));
  }
  EXPECT_EQ(fill(a, there, 1000), 14u);
  EXPECT_EQ(b.port->stats().cut_off + b.port->stats().bad, 0u);
}

TEST_F(Flow, ShareAndBuffersAreWhatWasConfigured) {
  const Member a = member(port(1), 0);
  PortConfig config = config_of(2);
  config.buffers = 64;
  config.share = 4;
  MessagePort& small = port(config);
  const Member b = member(small, 0);
  EXPECT_EQ(fill(a, route(a, 2, 0), 1000), 4u);
  EXPECT_EQ(small.unshared(), 28u);
}

TEST_F(Flow, AStalledContextStopsOnlyItsOwnSenders) {
  const Member a = member(port(1), 0);
  const Member other = member(port(3), 0);
  MessagePort& two = port(2);
  const Member stalled = member(two, 0);
  const Member quick = member(two, 1);
  const uint32_t held = fill(a, route(a, 2, 0), 1000);
  const uint32_t held_too = fill(other, route(other, 2, 0), 1000);
  EXPECT_EQ(stalled.inbox().count(), held + held_too);
  for (uint32_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(send(a, route(a, 2, 1), "from a"), 0);
    ASSERT_EQ(receive(quick), "from a");
    ASSERT_EQ(send(other, route(other, 2, 1), "from other"), 0);
    ASSERT_EQ(receive(quick), "from other");
  }
  for (uint32_t i = 0; i < held; ++i) {
    EXPECT_EQ(stalled.take(), std::to_string(i));
  }
}

TEST_F(Flow, ManySendersEachGetAShare) {
  constexpr uint32_t kSenders = 30;
  PortConfig config = config_of(1);
  config.buffers = 512;
  const Member to = member(port(config), 0);
  std::vector<Member> senders;
  for (uint32_t id = 2; id < 2 + kSenders; ++id) {
    senders.push_back(member(port(id), 0));
  }
  uint32_t all = 0;
  for (const Member& from : senders) {
    const uint32_t sent = fill(from, route(from, 1, 0), 1000);
    EXPECT_GE(sent, 4u);
    all += sent;
  }
  EXPECT_EQ(to.inbox().count(), all);
  EXPECT_LE(all, 512u - 32);
  for (; all > 0; --all) {
    to.context->drop_oldest();
  }
  for (const Member& from : senders) {
    EXPECT_EQ(send(from, route(from, 1, 0), "once more"), 0);
  }
}

TEST_F(Flow, WithoutBuffersForItAContextIsRefused) {
  PortConfig config = config_of(1);
  config.buffers = 64;
  config.share = 4;
  MessagePort& small = port(config);
  const Member from = member(port(2), 0);
  std::vector<Member> to;
  for (uint16_t id = 0; id < 9; ++id) {
    to.push_back(member(small, id));
  }
  for (uint16_t id = 0; id < 8; ++id) {
    EXPECT_EQ(send(from, route(from, 1, id), "hello"), 0) << id;
  }
  EXPECT_EQ(small.unshared(), 0u);
  EXPECT_EQ(send(from, route(from, 1, 8), "hello"), -ECONNREFUSED);
  to[0] = {};  // its share is free again
  EXPECT_TRUE(work_until([&] { return !to[1].inbox().empty(); }));
  EXPECT_EQ(small.unshared(), 4u);
  EXPECT_EQ(send(from, route(from, 1, 8), "hello"), 0);
}

TEST_F(Flow, AReceiverThatKeepsAMessageDoesNotStopItsSender) {
  const Member a = member(port(1), 0);
  const Member b = member(port(2), 0);
  const Route there = route(a, 2, 0);
  uint32_t sent = 0;
  uint32_t received = 0;
  // The receiver keeps the newest message until the next one has arrived.
  ASSERT_TRUE(work_until([&] {
    while (try_send(a, there, std::to_string(sent)) == 0) {
      ++sent;
    }
    for (; b.inbox().count() > 1; ++received) {
      EXPECT_EQ(b.take(), std::to_string(received));
    }
    return received >= 2000;
  }));
}

TEST_F(Flow, AReceiverMayKeepAWholeShareAndThenDropAllButOne) {
  const Member a = member(port(1), 0);
  const Member b = member(port(2), 0);
  const Route there = route(a, 2, 0);
  // The whole share arrives before any message of it is dropped.
  ASSERT_EQ(send(a, there, "first"), 0);
  ASSERT_EQ(receive(b), "first");
  uint32_t sent = 0;  // sent, and not dropped yet
  for (uint32_t round = 0; round < 100; ++round) {
    while (try_send(a, there, "x") == 0) {
      ++sent;
    }
    ASSERT_TRUE(work_until([&] { return b.inbox().count() == sent; }));
    while (b.inbox().count() > 1) {
      b.context->drop_oldest();
    }
    ASSERT_TRUE(work_until([&] { return try_send(a, there, "y") == 0; })) << round;
    sent = 2;
  }
}

// The counts of credits have 16 bits, the numbers of messages 32.
TEST_F(Flow, CountsAndNumbersWrap) {
  PortConfig one = config_of(1);
  PortConfig two = config_of(2);
  one.first_number = two.first_number = 0xFFFFFFF0;
  const Member a = member(port(one), 0);
  const Member b = member(port(two), 0);
  const Route there = route(a, 2, 0);
  constexpr uint32_t kCount = 3u << 16;
  uint32_t sent = 0;
  uint32_t received = 0;
  ASSERT_TRUE(work_until([&] {
    for (; sent < kCount && try_send(a, there, std::to_string(sent)) == 0; ++sent) {
    }
    for (; !b.inbox().empty(); ++received) {
      if (b.take() != std::to_string(received)) {
        ADD_FAILURE() << received;
        return true;
      }
    }
    return received == kCount;
  }));
  EXPECT_EQ(b.port->stats().cut_off + b.port->stats().bad, 0u);
  // The share is 14. Fewer than half of it may be given back without the sender knowing.
  EXPECT_GE(fill(a, there, 1000), 7u);
}

TEST_F(Flow, AnImpossibleConfigurationIsRefused) {
  std::unique_ptr<MessagePort> none;
  for (const auto& change : std::vector<std::function<void(PortConfig&)>>{
           [](PortConfig& c) { c.buffers = 63; }, [](PortConfig& c) { c.buffers = 16385; },
           [](PortConfig& c) { c.share = 3; }, [](PortConfig& c) { c.share = 1025; },
           [](PortConfig& c) { c.response_timeout_us = 0; },
           [](PortConfig& c) { c.response_timeout_us = 60'000'001; }}) {
    PortConfig config = config_of(1);
    change(config);
    EXPECT_EQ(MessagePort::open(config, &none), -EINVAL);
    EXPECT_EQ(none, nullptr);
  }
}

}  // namespace
}  // namespace rio::msg::test
