// Ports on cards in virtual time: messages arrive at computed times, time-outs are counted in
// virtual time, and a cut cable loses nothing.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <vector>

#include "lib/msg/message_context.hpp"
#include "tests/support/virtual_hosts.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
constexpr uint64_t kLimitNs = 10'000 * kMsNs;

class VirtualTime : public testing::Test {
 protected:
  struct End {
    std::unique_ptr<msg::MessagePort> port;
    std::unique_ptr<msg::MessageContext> context;
    msg::Route route;
  };

  explicit VirtualTime(const VirtualHostsSettings& settings = {})
      : rails_(settings.network.cards_per_host) {
    std::string error;
    EXPECT_EQ(VirtualHosts::create(settings, &hosts_, &error), 0) << error;
  }
  ~VirtualTime() override {
    for (End& end : ends_) {
      end.context.reset();
    }
    for (End& end : ends_) {
      end.port.reset();
    }
  }

  void open(uint32_t host, uint32_t connect_ms = 10'000, uint32_t deliver_ms = 60'000) {
    msg::PortConfig config;
    config.connect_ms = connect_ms;
    config.deliver_ms = deliver_ms;
    config.response_timeout_us = 1000;
    End& end = ends_[host];
    ASSERT_EQ(hosts_->open(host, config, &end.port), 0);
    ASSERT_EQ(msg::MessageContext::create(*end.port, 1, &end.context), 0);
    ASSERT_EQ(
        end.port->route(VirtualHosts::id((1 - host) * rails_), 1, 1, msg::Kind::kData, &end.route),
        0);
  }
  template <class Done>
  [[nodiscard]] bool work_until(const Done& done) {
    const auto turn = [this](uint32_t host) {
      return ends_[host].port != nullptr ? ends_[host].port->progress() : 0;
    };
    return hosts_->run(turn, done, kLimitNs);
  }
  void work_for(uint64_t ns) {
    const uint64_t end_ns = hosts_->now_ns() + ns;
    EXPECT_TRUE(work_until([&] { return hosts_->now_ns() >= end_ns; }));
  }
  /// The program is stopped, as by a signal or with its virtual machine, while its cards go on.
  void stop_for(uint64_t ns) {
    const uint64_t end_ns = hosts_->network().now_ns() + ns;
    hosts_->network().step_at(end_ns, 0);  // an event, so that time gets there
    hosts_->network().run(end_ns);
  }
  /// Send from host 0 as soon as it is accepted. @return as MessagePort::send().
  int send(const std::string& text) {
    int rc = -EAGAIN;
    const auto is_taken = [&] {
      rc = ends_[0].port->send(ends_[0].route, text.data(), static_cast<uint32_t>(text.size()));
      return rc != -EAGAIN;
    };
    EXPECT_TRUE(work_until(is_taken));
    return rc;
  }
  /// Take the next message of host 1.
  std::string take() {
    const msg::Inbox& inbox = ends_[1].context->inbox();
    EXPECT_TRUE(work_until([&] { return !inbox.empty(); }));
    const iovec& bytes = inbox.at(0);
    std::string text(static_cast<const char*>(bytes.iov_base), bytes.iov_len);
    ends_[1].context->drop_oldest();
    return text;
  }
  /// Cut or mend the cable.
  void change_cable(sim::FaultKind kind, uint64_t at_ns) {
    sim::NetworkBase& network = hosts_->network().network();
    const uint32_t link = network.topology().next_link(0, 1);
    network.schedule({.at_ns = at_ns, .kind = kind, .target = link});
    network.schedule({.at_ns = at_ns, .kind = kind, .target = network.topology().reverse(link)});
  }

  const uint32_t rails_;
  std::unique_ptr<VirtualHosts> hosts_;
  End ends_[2];
};

TEST_F(VirtualTime, AMessageTakesItsStepItsLinkAndItsWay) {
  open(0);
  open(1);
  ASSERT_EQ(send("first"), 0);  // the session begins
  EXPECT_EQ(take(), "first");
  const uint64_t begin_ns = hosts_->now_ns();
  ASSERT_EQ(ends_[0].port->send(ends_[0].route, "second", 6), 0);
  EXPECT_EQ(take(), "second");
  EXPECT_EQ(hosts_->now_ns() - begin_ns, 40u + 8u + 100u);
}

TEST_F(VirtualTime, APeerThatIsNotThereIsGivenUpAfterVirtualMilliseconds) {
  open(0, 50);
  const uint64_t begin_ns = hosts_->now_ns();
  EXPECT_EQ(send("to a node without a card"), -EHOSTUNREACH);
  const uint64_t took_ns = hosts_->now_ns() - begin_ns;
  EXPECT_GE(took_ns, 50 * kMsNs);
  EXPECT_LE(took_ns, 60 * kMsNs);
}

TEST_F(VirtualTime, APeerIsNotSilentWhileThePortIsNotCalled) {
  open(0, 10'000, 500);
  open(1);
  ASSERT_EQ(send("first"), 0);
  EXPECT_EQ(take(), "first");
  const uint64_t cut_ns = hosts_->network().now_ns();
  change_cable(sim::FaultKind::kLinkDown, cut_ns + 500);
  change_cable(sim::FaultKind::kLinkUp, cut_ns + 1900 * kMsNs);
  ASSERT_EQ(send("second"), 0);
  work_for(20 * kMsNs);
  stop_for(2000 * kMsNs);
  EXPECT_EQ(take(), "second");
  EXPECT_EQ(send("third"), 0);
  EXPECT_EQ(take(), "third");
}

TEST_F(VirtualTime, APeerIsAwaitedAgainAfterAStop) {
  open(0, 500);
  int rc = -EAGAIN;
  const auto ask = [&] {
    rc = ends_[0].port->send(ends_[0].route, "hello", 5);
    return true;
  };
  ASSERT_TRUE(work_until(ask));
  ASSERT_EQ(rc, -EAGAIN) << "there is no session yet";
  work_for(10 * kMsNs);
  stop_for(1000 * kMsNs);
  work_for(10 * kMsNs);
  ASSERT_TRUE(work_until(ask));
  EXPECT_EQ(rc, -EAGAIN) << "the stop counts for little";
  open(1);
  EXPECT_EQ(send("hello"), 0);
  EXPECT_EQ(take(), "hello");
}

TEST_F(VirtualTime, ACableThatIsCutForAWhileLosesNothing) {
  constexpr uint32_t kMessages = 200;
  open(0);
  open(1);
  ASSERT_EQ(send("first"), 0);
  EXPECT_EQ(take(), "first");
  const uint64_t now_ns = hosts_->network().now_ns();
  change_cable(sim::FaultKind::kLinkDown, now_ns + 500);
  change_cable(sim::FaultKind::kLinkUp, now_ns + 20 * kMsNs);
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(send(std::to_string(i)), 0);
  }
  for (uint32_t i = 0; i < kMessages; ++i) {
    ASSERT_EQ(take(), std::to_string(i));
  }
  EXPECT_GT(hosts_->network().now_ns(), now_ns + 20 * kMsNs);
  EXPECT_GT(hosts_->network().network().counters().dropped, 0u);
  EXPECT_TRUE(ends_[1].context->inbox().empty());
}

TEST_F(VirtualTime, APortNeedsABusForEachCard) {
  std::unique_ptr<msg::MessagePort> port;
  EXPECT_EQ(msg::MessagePort::open({}, {}, &port), -EINVAL);
  EXPECT_EQ(msg::MessagePort::open(std::vector<msg::MessagePort::BusCard>(1), {}, &port), -EINVAL);
  EXPECT_EQ(port, nullptr);
}

/// Two hosts with two cards each. A program on node 0 is far from the first one.
class VirtualRails : public VirtualTime {
 protected:
  VirtualRails() : VirtualTime(settings()) {}

  static VirtualHostsSettings settings() {
    constexpr int kNowhere = 77;  // a node that no machine has
    VirtualHostsSettings settings;
    settings.topology = "mesh:2x2";
    settings.network.cards_per_host = 2;
    settings.numa_nodes = {kNowhere, 0};
    return settings;
  }
};

TEST_F(VirtualRails, MessagesGoByTheNearCard) {
  open(0);
  open(1);
  ASSERT_EQ(send("first"), 0);
  EXPECT_EQ(take(), "first");
  msg::MessagePort& port = *ends_[0].port;
  EXPECT_EQ(port.rails().at(0).endpoint.numa_distance(), 20u);
  EXPECT_EQ(port.rails().at(1).endpoint.numa_distance(), 10u);
  const msg::Link& link = *port.known_link(VirtualHosts::id(2));
  EXPECT_TRUE(work_until([&] { return link.path->rail.index == 1; }));
  ASSERT_EQ(send("second"), 0);
  EXPECT_EQ(take(), "second");
}

}  // namespace
}  // namespace rio::test
