// Ports with two rails in virtual time, one of whose links passes nothing in one direction.
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
    config.response_timeout_us = 1000;
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

}  // namespace
}  // namespace rio::test
