// Ports with two rails in virtual time, one of whose links passes nothing.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/msg/message_context.hpp"
#include "tests/support/virtual_hosts.hpp"

namespace rio::test {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
constexpr uint64_t kTimeoutNs = kMsNs;  // response time-out
constexpr uint32_t kRails = 2;

class VirtualRails : public testing::Test {
 protected:
  struct End {
    std::unique_ptr<msg::MessagePort> port;
    std::unique_ptr<msg::MessageContext> context;
    msg::Route route;
  };

  VirtualRails() {
    VirtualHostsSettings settings;
    settings.topology = "mesh:2x2";
    settings.network.cards_per_host = kRails;
    std::string error;
    EXPECT_EQ(VirtualHosts::create(settings, &hosts_, &error), 0) << error;
    for (const uint32_t node : {0u, kRails}) {  // each rail is a network of its own
      set_link(node, node + 1, false);
      set_link(node + 1, node, false);
    }
    msg::PortConfig config;
    config.response_timeout_us = kTimeoutNs / 1000;
    for (uint32_t host = 0; host < ends_.size(); ++host) {
      End& end = ends_[host];
      EXPECT_EQ(hosts_->open(host, config, &end.port), 0);
      EXPECT_EQ(msg::MessageContext::create(*end.port, 1, &end.context), 0);
      EXPECT_EQ(end.context->accept_large(), 0);
      EXPECT_EQ(end.port->route(id(1 - host), 1, 1, msg::Kind::kData, &end.route), 0);
    }
  }
  ~VirtualRails() override {
    for (End& end : ends_) {
      end.context.reset();
    }
    for (End& end : ends_) {
      end.port.reset();
    }
  }

  /// destID of a host's first card.
  [[nodiscard]] static uint32_t id(uint32_t host) { return VirtualHosts::id(host * kRails); }
  void set_link(uint32_t from, uint32_t to, bool is_up) {
    sim::NetworkBase& network = hosts_->network().network();
    network.schedule({.at_ns = hosts_->network().now_ns() + 1,
                      .kind = is_up ? sim::FaultKind::kLinkUp : sim::FaultKind::kLinkDown,
                      .target = network.topology().next_link(from, to)});
  }
  template <class Done>
  [[nodiscard]] bool work_until(const Done& done) {
    constexpr uint64_t kLimitNs = 10'000 * kMsNs;
    return hosts_->run([this](uint32_t host) { return ends_[host].port->progress(); }, done,
                       kLimitNs);
  }
  [[nodiscard]] bool has_path(uint32_t host, uint32_t rail) {
    const msg::Link* const link = ends_[host].port->known_link(id(1 - host));
    const msg::Path* const path = link != nullptr ? link->paths[rail].get() : nullptr;
    return path != nullptr && path->is_found;
  }
  [[nodiscard]] msg::Link& link(uint32_t host) {
    return *ends_[host].port->known_link(id(1 - host));
  }
  [[nodiscard]] msg::Path& path(uint32_t host, uint32_t rail) { return *link(host).paths[rail]; }
  /// The next messages of a host take a rail.
  void use(uint32_t host, uint32_t rail) {
    ends_[host].port->rails().at(rail).outbox.use(path(host, rail));
  }
  /// Both hosts know both paths, and use the first one.
  void meet() {
    ASSERT_TRUE(work_until([&] { return send(0, "hello"); }));
    ASSERT_TRUE(work_until(
        [&] { return has_path(0, 0) && has_path(0, 1) && has_path(1, 0) && has_path(1, 1); }));
    EXPECT_EQ(take(1), "hello");
    use(0, 0);
    use(1, 0);
  }
  /// The links of a rail pass nothing from now on, which no card notices.
  void cut(uint32_t rail) {
    set_link(rail, kRails + rail, false);
    set_link(kRails + rail, rail, false);
    wait(2);
  }
  void wait(uint64_t ns) {
    const uint64_t until_ns = hosts_->now_ns() + ns;
    ASSERT_TRUE(work_until([&] { return hosts_->now_ns() >= until_ns; }));
  }
  [[nodiscard]] bool send(uint32_t host, const std::string& text) {
    End& end = ends_[host];
    return end.port->send(end.route, text.data(), static_cast<uint32_t>(text.size())) == 0;
  }
  /// @return empty: nothing has arrived.
  [[nodiscard]] std::string take(uint32_t host) {
    msg::MessageContext& context = *ends_[host].context;
    if (context.inbox().empty()) {
      return {};
    }
    const iovec& bytes = context.inbox().at(0);
    std::string text(static_cast<const char*>(bytes.iov_base), bytes.iov_len);
    context.drop_oldest();
    return text;
  }

  std::unique_ptr<VirtualHosts> hosts_;
  std::array<End, 2> ends_;
};

TEST_F(VirtualRails, APathThatOneSideDoesNotKnowCarriesNoTransfer) {
  constexpr uint32_t kTransfers = 20;
  constexpr uint32_t kBytes = 64 * 1024;
  set_link(kRails + 1, 1, false);  // host 1 hears by the second rail, host 0 does not
  const std::vector<uint8_t> sent(kBytes, 0x5A);
  std::vector<std::vector<uint8_t>> got(kTransfers, std::vector<uint8_t>(kBytes));
  std::vector<msg::SendTransfer> sends(kTransfers);
  std::vector<msg::RecvTransfer> receives(kTransfers);
  uint32_t begun = 0;
  uint32_t taken = 0;
  uint32_t done = 0;
  const auto begin = [&] {
    const int rc =
        ends_[0].context->send_large(ends_[0].route, begun, sent.data(), kBytes, sends[begun]);
    begun += rc == 0 ? 1 : 0;
    return rc != -EAGAIN;
  };
  for (uint32_t i = 0; i < kTransfers; ++i) {
    ASSERT_TRUE(work_until(begin));
    // Between them the rails ask for each other.
    const uint64_t until_ns = hosts_->now_ns() + 5 * kMsNs;
    ASSERT_TRUE(work_until([&] {
      for (; !ends_[1].context->inbox().empty(); ++taken) {
        ends_[1].context->receive_large(ends_[1].context->take_request(), got[taken].data(), kBytes,
                                        receives[taken]);
      }
      while (const msg::SendTransfer* const transfer = ends_[0].context->next_sent()) {
        EXPECT_EQ(transfer->status, 0);
        ++done;
      }
      return done == i + 1 && hosts_->now_ns() > until_ns;
    })) << i;
  }
  EXPECT_FALSE(has_path(0, 1));
  EXPECT_FALSE(has_path(1, 1)) << "the peer has not answered";
  for (const End& end : ends_) {
    EXPECT_EQ(end.port->stats().cut_off, 0u);
    EXPECT_EQ(end.port->sessions_ended(), 0u);
  }
  for (const std::vector<uint8_t>& bytes : got) {
    EXPECT_TRUE(bytes == sent);
  }
  set_link(kRails + 1, 1, true);
  EXPECT_TRUE(work_until([&] { return has_path(0, 1) && has_path(1, 1); }));
}

// Whether the path that fails is still the one of the host's next messages.
class FailingPath : public VirtualRails, public testing::WithParamInterface<bool> {};

TEST_P(FailingPath, IsReportedToThePeer) {
  meet();
  cut(0);
  ASSERT_TRUE(send(0, "doubtful"));
  if (!GetParam()) {
    use(0, 1);
  }
  ASSERT_TRUE(work_until([&] { return !path(0, 0).state.is_up(); }));
  const uint64_t known_ns = hosts_->now_ns();
  ASSERT_TRUE(work_until([&] { return !path(1, 0).state.is_up(); }));
  EXPECT_LT(hosts_->now_ns() - known_ns, kTimeoutNs / 2) << "nothing of the peer's has failed";
  EXPECT_TRUE(work_until([&] { return take(1) == "doubtful"; }));
  EXPECT_TRUE(path(1, 1).state.is_up());
}

INSTANTIATE_TEST_SUITE_P(Rails, FailingPath, testing::Bool());

TEST_F(VirtualRails, NothingIsResentBeforeAnotherPathThatWasDownHasAnswered) {
  meet();
  path(0, 1).state.link_down(hosts_->now_ns());  // it works, but is asked late
  cut(0);
  ASSERT_TRUE(send(0, "first"));
  wait(kTimeoutNs / 2);
  ASSERT_TRUE(send(0, "second"));
  ASSERT_TRUE(work_until([&] { return !path(0, 0).state.is_up(); }));
  const pmd::TxQueue& failing = ends_[0].port->rails().at(0).outbox.ring();
  const uint32_t posted = failing.next_index();
  EXPECT_TRUE(work_until([&] { return take(1) == "first"; }));
  EXPECT_EQ(failing.next_index(), posted) << "it went by the path that fails";
  EXPECT_TRUE(work_until([&] { return ends_[0].port->stats().restarts == 1; }))
      << "the second message is called back";
  EXPECT_TRUE(work_until([&] { return take(1) == "second"; }));
}

TEST_F(VirtualRails, AGrantOnAPathThatTheSenderKnowsToFailIsRefused) {
  meet();
  cut(0);
  use(0, 1);
  use(1, 1);
  path(0, 0).state.refused(hosts_->now_ns());
  constexpr uint32_t kBytes = 64 * 1024;
  const std::vector<uint8_t> sent(kBytes, 0x5A);
  std::vector<uint8_t> got(kBytes);
  msg::SendTransfer send;
  msg::RecvTransfer receive;
  ASSERT_EQ(ends_[0].context->send_large(ends_[0].route, 0, sent.data(), kBytes, send), 0);
  ASSERT_TRUE(work_until([&] { return !ends_[1].context->inbox().empty(); }));
  const uint64_t begun_ns = hosts_->now_ns();
  ends_[1].context->receive_large(ends_[1].context->take_request(), got.data(), kBytes, receive);
  ASSERT_TRUE(work_until([&] { return ends_[0].context->next_sent() != nullptr; }));
  EXPECT_EQ(send.status, 0);
  EXPECT_EQ(got, sent);
  EXPECT_LT(hosts_->now_ns() - begun_ns, kTimeoutNs) << "without a wait for an answer";
}

}  // namespace
}  // namespace rio::test
