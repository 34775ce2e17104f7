// Two Ethernet ports that are wired to each other, through ethdev's functions alone, and a raw
// device on the wire of a third that sends what no port would.
#include <gtest/gtest.h>
#include <rte_bus_vdev.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_rawdev.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "pmd/raw/rte_raw_rio.h"
#include "tests/eal/eal_process.hpp"

namespace rio::test {
namespace {

constexpr uint32_t kTurns = 1'000'000;  // no wait is longer
constexpr uint32_t kHeader = 14;
constexpr uint8_t kEverybody[] = {0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};

class Port {
 public:
  Port(const char* name, rte_mempool* pool, bool scatter = false) : pool_(pool) {
    EXPECT_EQ(rte_eth_dev_get_port_by_name(name, &id_), 0) << name;
    rte_eth_conf conf{};
    conf.rxmode.mtu = 4082;
    conf.rxmode.offloads = scatter ? RTE_ETH_RX_OFFLOAD_SCATTER : 0;
    conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    EXPECT_EQ(rte_eth_dev_configure(id_, 1, 1, &conf), 0);
    EXPECT_EQ(rte_eth_rx_queue_setup(id_, 0, 512, -1, nullptr, pool), 0);
    EXPECT_EQ(rte_eth_tx_queue_setup(id_, 0, 512, -1, nullptr), 0);
    EXPECT_EQ(rte_eth_dev_start(id_), 0);
    EXPECT_EQ(rte_eth_macaddr_get(id_, &address_), 0);
  }
  ~Port() { EXPECT_EQ(rte_eth_dev_stop(id_), 0); }
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;

  /// A frame from here. @param segments of the mbuf.
  [[nodiscard]] rte_mbuf* frame(const uint8_t* to, uint32_t bytes, uint32_t segments = 1,
                                uint32_t shift = 0) const {
    std::vector<uint8_t> all = wanted(to, bytes);
    rte_mbuf* first = nullptr;
    for (uint32_t i = 0; i < segments; ++i) {
      rte_mbuf* const part = rte_pktmbuf_alloc(pool_);
      const uint32_t at = bytes * i / segments;
      const uint32_t length = bytes * (i + 1) / segments - at;
      part->data_off = static_cast<uint16_t>(part->data_off + shift);
      std::memcpy(rte_pktmbuf_append(part, static_cast<uint16_t>(length)), all.data() + at, length);
      if (first == nullptr) {
        first = part;
      } else {
        rte_pktmbuf_chain(first, part);
      }
    }
    return first;
  }
  [[nodiscard]] std::vector<uint8_t> wanted(const uint8_t* to, uint32_t bytes) const {
    std::vector<uint8_t> all(std::max(bytes, kHeader));
    std::memcpy(all.data(), to, 6);
    std::memcpy(all.data() + 6, address_.addr_bytes, 6);
    all[12] = 0x08;
    for (uint32_t i = kHeader; i < bytes; ++i) {
      all[i] = static_cast<uint8_t>(i * 3 + bytes);
    }
    all.resize(bytes);
    return all;
  }
  [[nodiscard]] uint16_t send(rte_mbuf* frame) const { return rte_eth_tx_burst(id_, 0, &frame, 1); }
  /// The next frame, while `other` works. Null: none comes.
  [[nodiscard]] rte_mbuf* receive(const Port& other, uint32_t turns = kTurns) const {
    for (uint32_t i = 0; i < turns; ++i) {
      rte_mbuf* got = nullptr;
      if (rte_eth_rx_burst(id_, 0, &got, 1) == 1) {
        return got;
      }
      other.work();
    }
    return nullptr;
  }
  /// All but receiving frames.
  void work() const {
    rte_eth_tx_burst(id_, 0, nullptr, 0);
    rte_mbuf* none[1];
    rte_eth_rx_burst(id_, 0, none, 0);
  }
  [[nodiscard]] uint64_t xstat(const std::string& name) const {
    uint64_t id = 0;
    uint64_t value = 0;
    EXPECT_EQ(rte_eth_xstats_get_id_by_name(id_, name.c_str(), &id), 0) << name;
    EXPECT_EQ(rte_eth_xstats_get_by_id(id_, &id, &value, 1), 1);
    return value;
  }
  [[nodiscard]] const uint8_t* address() const { return address_.addr_bytes; }
  [[nodiscard]] uint16_t id() const { return id_; }

 private:
  rte_mempool* pool_;
  uint16_t id_ = 0;
  rte_ether_addr address_{};
};

rte_mempool* pool(const char* name, uint16_t room) {
  static std::vector<std::pair<std::string, rte_mempool*>> made;
  for (const auto& [known, one] : made) {
    if (known == name) {
      return one;
    }
  }
  made.emplace_back(
      name, rte_pktmbuf_pool_create(name, 2047, 0, 0,
                                    static_cast<uint16_t>(room + RTE_PKTMBUF_HEADROOM), -1));
  return made.back().second;
}
rte_mempool* large() {
  return pool("large", 4096);
}
rte_mempool* small() {
  return pool("small", 1024);
}

class NetPair : public testing::Test {
 protected:
  void TearDown() override { work(); }
  void work() {
    for (uint32_t i = 0; i < 100; ++i) {
      a_.work();
      b_.work();
    }
  }
  template <class Good>
  bool until(Good&& good) {
    for (uint32_t i = 0; i < kTurns; ++i) {
      if (good()) {
        return true;
      }
      a_.work();
      b_.work();
    }
    return false;
  }
  void expect_frame(const rte_mbuf* got, const std::vector<uint8_t>& wanted) {
    ASSERT_NE(got, nullptr);
    const uint32_t padded = (static_cast<uint32_t>(wanted.size()) + 7) & ~7u;
    EXPECT_EQ(got->pkt_len, padded) << "the card tells lengths in steps of 8";
    std::vector<uint8_t> bytes(got->pkt_len);
    const void* const from = rte_pktmbuf_read(got, 0, got->pkt_len, bytes.data());
    EXPECT_EQ(std::memcmp(from, wanted.data(), wanted.size()), 0);
  }

  Port a_{"net_rio0", large()};
  Port b_{"net_rio1", large()};
};

TEST_F(NetPair, EachLength) {
  for (const uint32_t bytes : {14u, 60u, 64u, 65u, 255u, 256u, 257u, 1500u, 1514u, 4095u, 4096u}) {
    ASSERT_EQ(a_.send(a_.frame(b_.address(), bytes)), 1);
    rte_mbuf* const got = b_.receive(a_);
    expect_frame(got, a_.wanted(b_.address(), bytes));
    EXPECT_EQ(got->nb_segs, 1);
    EXPECT_EQ(got->port, b_.id());
    rte_pktmbuf_free(got);
  }
  EXPECT_EQ(a_.xstat("tx_bounced"), 0u);
}

TEST_F(NetPair, PiecesAndOddPlacesAreCopied) {
  const uint64_t before = a_.xstat("tx_bounced");
  ASSERT_EQ(a_.send(a_.frame(b_.address(), 3001, 3)), 1);
  rte_mbuf* const got = b_.receive(a_);
  expect_frame(got, a_.wanted(b_.address(), 3001));
  rte_pktmbuf_free(got);
  EXPECT_EQ(a_.xstat("tx_bounced"), before + 1);
}

TEST_F(NetPair, MbufsComeBack) {
  const unsigned before = rte_mempool_avail_count(large());
  for (uint32_t i = 0; i < 5000; ++i) {
    rte_mbuf* const frame = a_.frame(b_.address(), 60 + i % 1000);
    ASSERT_NE(frame, nullptr);
    while (a_.send(frame) != 1) {
      b_.work();
    }
    rte_mbuf* const got = b_.receive(a_);
    ASSERT_NE(got, nullptr);
    rte_pktmbuf_free(got);
  }
  EXPECT_TRUE(until([&] { return rte_mempool_avail_count(large()) == before; }));
}

TEST_F(NetPair, LengthsThatAreNoneAreDroppedAndCounted) {
  ASSERT_EQ(a_.send(a_.frame(b_.address(), 13)), 1);
  rte_mbuf* const longer = a_.frame(b_.address(), 4096);
  rte_pktmbuf_chain(longer, a_.frame(b_.address(), 100));
  ASSERT_EQ(a_.send(longer), 1);
  EXPECT_EQ(a_.xstat("tx_bad_lengths"), 2u);
  EXPECT_EQ(b_.receive(a_, 1000), nullptr);
}

TEST_F(NetPair, WhoHasJoinedGetsBroadcasts) {
  ASSERT_TRUE(until([&] { return a_.xstat("rx_joins") == 1 && b_.xstat("rx_joins") == 1; }));
  for (const uint32_t segments : {1u, 2u}) {
    rte_mbuf* const frame = a_.frame(kEverybody, 100, segments);
    rte_mbuf_refcnt_update(frame, 2);  // ours: a free too many would show
    ASSERT_EQ(a_.send(frame), 1);
    rte_mbuf* const got = b_.receive(a_);
    expect_frame(got, a_.wanted(kEverybody, 100));
    rte_pktmbuf_free(got);
    work();
    EXPECT_EQ(rte_mbuf_refcnt_read(frame), 2);
    rte_pktmbuf_free(frame);
    rte_pktmbuf_free(frame);
  }
  ASSERT_EQ(rte_eth_dev_stop(b_.id()), 0);
  for (uint32_t i = 0; i < kTurns && a_.xstat("rx_leaves") == 0; ++i) {
    a_.work();
  }
  ASSERT_EQ(a_.xstat("rx_leaves"), 1u);
  ASSERT_EQ(a_.send(a_.frame(b_.address(), 100)), 1);
  EXPECT_EQ(a_.xstat("tx_no_peer"), 1u) << "it has left";
  ASSERT_EQ(rte_eth_dev_start(b_.id()), 0);
  ASSERT_TRUE(until([&] { return a_.xstat("rx_joins") == 2; }));
  ASSERT_EQ(a_.send(a_.frame(b_.address(), 100)), 1);
  rte_mbuf* const got = b_.receive(a_);
  EXPECT_NE(got, nullptr);
  rte_pktmbuf_free(got);
}

TEST_F(NetPair, NobodyOfThatAddress) {
  const uint8_t other[] = {2, 0, 0, 0, 0, 9};
  const uint8_t absent[] = {0, 1, 0, 1, 0x77, 0x77};
  ASSERT_EQ(a_.send(a_.frame(other, 100)), 1);
  ASSERT_EQ(a_.send(a_.frame(absent, 100)), 1);
  EXPECT_EQ(a_.xstat("tx_no_peer"), 2u);
  rte_eth_stats stats{};
  ASSERT_EQ(rte_eth_stats_get(a_.id(), &stats), 0);
  EXPECT_EQ(stats.oerrors, 2u);
  ASSERT_EQ(rte_eth_stats_reset(a_.id()), 0);
  ASSERT_EQ(rte_eth_stats_get(a_.id(), &stats), 0);
  EXPECT_EQ(stats.oerrors + stats.opackets, 0u);
}

TEST_F(NetPair, FramesOfOthersAreDropped) {
  rte_mbuf* const frame = a_.frame(b_.address(), 100);
  rte_pktmbuf_mtod(frame, uint8_t*)[11] ^= 1;
  ASSERT_EQ(a_.send(frame), 1);
  EXPECT_EQ(b_.receive(a_, 1000), nullptr);
  EXPECT_EQ(b_.xstat("rx_spoofed"), 1u);
}

TEST_F(NetPair, ToldOfLinkAndLimits) {
  rte_eth_link link{};
  ASSERT_EQ(rte_eth_link_get_nowait(a_.id(), &link), 0);
  EXPECT_EQ(link.link_status, RTE_ETH_LINK_UP);
  EXPECT_GT(link.link_speed, 0u);
  rte_eth_dev_info info{};
  ASSERT_EQ(rte_eth_dev_info_get(a_.id(), &info), 0);
  EXPECT_EQ(info.max_mtu, 4082);
  EXPECT_STREQ(info.driver_name, "net_rio");
  EXPECT_EQ(rte_eth_dev_set_mtu(a_.id(), 4083), -EINVAL);
  EXPECT_EQ(rte_eth_dev_set_mtu(a_.id(), 1500), 0);
}

TEST(NetSmallMbufs, FramesTakeSeveralOrAreRefused) {
  {
    Port a("net_rio0", large());
    Port b("net_rio1", small(), true);
    ASSERT_EQ(a.send(a.frame(b.address(), 4000)), 1);
    rte_mbuf* const got = b.receive(a);
    ASSERT_NE(got, nullptr);
    EXPECT_EQ(got->nb_segs, 4);
    std::vector<uint8_t> bytes(4000);
    const auto wanted = a.wanted(b.address(), 4000);
    EXPECT_EQ(std::memcmp(rte_pktmbuf_read(got, 0, 4000, bytes.data()), wanted.data(), 4000), 0);
    rte_pktmbuf_free(got);
  }
  uint16_t id = 0;
  ASSERT_EQ(rte_eth_dev_get_port_by_name("net_rio1", &id), 0);
  rte_eth_conf conf{};
  conf.rxmode.mtu = 1500;
  ASSERT_EQ(rte_eth_dev_configure(id, 1, 1, &conf), 0);
  LogCapture log;
  EXPECT_EQ(rte_eth_rx_queue_setup(id, 0, 512, -1, nullptr, small()), -EINVAL);
  EXPECT_NE(log.text().find("'scatter'"), std::string::npos) << log.text();
}

TEST(NetPlug, CardsOfOthersAndBadArguments) {
  LogCapture log;
  EXPECT_NE(rte_vdev_init("net_rio7", "peers=x"), 0);
  EXPECT_NE(log.text().find("0x100:0x200-0x20f"), std::string::npos) << log.text();
  EXPECT_NE(rte_vdev_init("net_rio7", "peers=65536"), 0);
  EXPECT_NE(rte_vdev_init("net_rio7", "card=nobody"), 0);
  ASSERT_EQ(rte_vdev_init("net_rio7", "card=raw_rio0,peers=1:0x10-0x12"), 0) << log.text();
  uint16_t id = 0;
  EXPECT_EQ(rte_eth_dev_get_port_by_name("net_rio7", &id), 0);
  { const Port port("net_rio7", large()); }
  ASSERT_EQ(rte_vdev_uninit("net_rio7"), 0);
  EXPECT_EQ(rte_eth_dev_get_port_by_name("net_rio7", &id), -ENODEV);
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net",
      {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--vdev=net_rio0,wire=pair",
       "--vdev=net_rio1,wire=pair", "--vdev=raw_rio0,qps=2", "--no-telemetry"});
}
