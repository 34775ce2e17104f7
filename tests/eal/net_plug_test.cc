// Ethernet ports that come and go beside other ports, and the memory that they take for frames.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_port.hpp"

namespace rio::test {
namespace {

TEST(NetPlug, ACardMayBeSharedAndBadArgumentsAreRefused) {
  const Device raw("raw_rio0", "qps=2");
  const Pool pool(4096);
  LogCapture log;
  EXPECT_NE(rte_vdev_init("net_rio7", "peers=x"), 0);
  EXPECT_NE(log.text().find("0x100:0x200-0x20f"), std::string::npos) << log.text();
  EXPECT_NE(rte_vdev_init("net_rio7", "peers=65536"), 0);
  EXPECT_NE(rte_vdev_init("net_rio7", "peers="), 0);
  EXPECT_NE(rte_vdev_init("net_rio7", "peers=5:"), 0);
  EXPECT_NE(rte_vdev_init("net_rio7", "peers=5-4"), 0);
  EXPECT_NE(rte_vdev_init("net_rio7", "mbox=4"), 0);
  EXPECT_NE(rte_vdev_init("net_rio7", "storm=x"), 0);
  EXPECT_NE(rte_vdev_init("net_rio7", "card=nobody"), 0);
  {
    const Device net("net_rio7", "card=raw_rio0,peers=1:0x10-0x12");
    const Port port("net_rio7", pool);
  }
  uint16_t id = 0;
  EXPECT_EQ(rte_eth_dev_get_port_by_name("net_rio7", &id), -ENODEV);
}

TEST(NetPlug, UsersMayKeepFramesOfAGonePort) {
  const Pool pool(4096);
  std::vector<rte_mbuf*> held;
  {
    Pair pair("gone", pool);
    ASSERT_TRUE(pair.meet());
    for (uint32_t i = 0; i < 10; ++i) {
      ASSERT_TRUE(pair.a.send(pair.a.make(frame_bytes(pair.b.mac(), pair.a.mac(), 1500, i))));
      held.push_back(pair.b.receive([&] { pair.work(); }));
      ASSERT_NE(held.back(), nullptr);
    }
  }
  for (uint32_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(take(held[i]), frame_bytes(address(0x200), address(0x100), 1500, i));
  }
}

TEST(NetPlug, PortsAttachAndDetachWhileOthersSend) {
  const Pool pool(4096);
  Pair pair("steady", pool);
  ASSERT_TRUE(pair.meet());
  for (uint32_t round = 0; round < 5; ++round) {
    const Device device("net_rio5", "destid=0x500,wire=other" + std::to_string(round));
    for (uint32_t i = 0; i < 50; ++i) {
      const Bytes bytes = frame_bytes(pair.b.mac(), pair.a.mac(), 60 + 40 * i, round);
      ASSERT_TRUE(pair.a.send_now(pair.a.make(bytes), [&] { pair.work(); }));
      ASSERT_EQ(take(pair.b.receive([&] { pair.work(); })), bytes);
      if (i % 10 == 0) {
        const Port third("net_rio5", pool);
        third.work();
      }
    }
  }
  // The sender's own partner goes, and comes back.
  Device device_c("net_rio6", "destid=0x600,wire=c");
  Port c("net_rio6", pool);
  for (uint32_t round = 0; round < 3; ++round) {
    const Device device_d("net_rio7", "destid=0x700,wire=c");
    const Port d("net_rio7", pool);
    const auto meanwhile = [&] {
      c.work();
      d.work();
    };
    rte_mbuf* got = nullptr;
    for (uint32_t i = 0; i < 2000 && got == nullptr; ++i) {
      (void)c.send(c.make(frame_bytes(d.mac(), c.mac(), 1000)));
      got = d.receive(meanwhile, 100);
    }
    EXPECT_EQ(take(got).size(), 1000u) << round;
  }
  for (uint32_t i = 0; i < 1000; ++i) {
    (void)c.send(c.make(frame_bytes(address(0x700), c.mac(), 1000)));
  }
}

TEST(NetMbufs, MayBeAsSmallAsTheUsers) {
  const Pool small(1024);
  {
    Pair pair("scatter", small, {.scatter = true});
    ASSERT_TRUE(pair.meet());
    for (const uint32_t length : {60u, 1024u, 1025u, 4000u}) {
      const Bytes bytes = frame_bytes(pair.b.mac(), pair.a.mac(), length);
      std::vector<uint32_t> cuts;
      for (uint32_t at = 1024; at < length; at += 1024) {
        cuts.push_back(at);
      }
      ASSERT_TRUE(pair.a.send(pair.a.make(bytes, cuts)));
      EXPECT_EQ(take(pair.b.receive([&] { pair.work(); })), bytes);
    }
  }
  const Device device("net_rio0", "");
  uint16_t id = 0;
  ASSERT_EQ(rte_eth_dev_get_port_by_name("net_rio0", &id), 0);
  rte_eth_conf conf{};
  conf.rxmode.mtu = 1500;
  ASSERT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), 0);
  LogCapture log;
  EXPECT_EQ(rte_eth_rx_queue_setup(id, 0, 512, -1, nullptr, small.get()), -EINVAL);
  EXPECT_NE(log.text().find("'scatter'"), std::string::npos) << log.text();
}

TEST(NetMbufs, HaveThePrivateRoomOfTheUsers) {
  const Pool pool(4096, 511, 128);
  Pair pair("priv", pool);
  ASSERT_TRUE(pair.meet());
  for (const uint32_t length : {60u, 1500u}) {
    ASSERT_TRUE(pair.a.send(pair.a.make(frame_bytes(pair.b.mac(), pair.a.mac(), length))));
    rte_mbuf* const got = pair.b.receive([&] { pair.work(); });
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(rte_pktmbuf_priv_size(got->pool), 128);
    std::memset(rte_mbuf_to_priv(got), 0xEE, 128);
    EXPECT_EQ(take(got).size(), length);
  }
}

TEST(NetMbufs, MayBeFreedFast) {
  const Pool pool(4096);
  Pair pair("fast", pool, {.fast_free = true});
  ASSERT_TRUE(pair.meet());
  for (uint32_t i = 0; i < 2000; ++i) {
    const Bytes bytes = frame_bytes(pair.b.mac(), pair.a.mac(), 60 + i, i);
    ASSERT_TRUE(pair.a.send_now(pair.a.make(bytes), [&] { pair.work(); }));
    ASSERT_EQ(take(pair.b.receive([&] { pair.work(); })), bytes);
  }
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net", {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
