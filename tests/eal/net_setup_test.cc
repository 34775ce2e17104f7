// Ports whose queues are set up in parts, late, again, or not at all.
#include <gtest/gtest.h>
#include <rte_power_intrinsics.h>

#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_peer.hpp"

namespace rio::test {
namespace {

/// A port whose queues are set up one by one.
class NetSetup : public testing::Test {
 protected:
  void configure(uint16_t rx_queues) {
    const rte_eth_conf conf{};
    ASSERT_EQ(rte_eth_dev_get_port_by_name("net_rio0", &id_), 0);
    ASSERT_EQ(rte_eth_dev_configure(id_, rx_queues, 1, &conf), 0);
  }
  void set_up_rx(uint16_t queue) {
    ASSERT_EQ(rte_eth_rx_queue_setup(id_, queue, 64, -1, nullptr, pool_.get()), 0);
  }
  [[nodiscard]] uint16_t poll(uint16_t queue, rte_mbuf** out) const {
    return rte_eth_rx_burst(id_, queue, out, 1);
  }
  /// Non-IP: for queue 0.
  void peer_sends(RawPeer& peer) {
    Bytes bytes = frame_bytes(address(kPort), address(kPeer), 64);
    ASSERT_EQ(peer.send(bytes, 0), 0);
  }

  Pool pool_{4096, 511};
  Device net_{"net_rio0", "wire=setup,destid=0x100,peers=0x200"};
  Device raw_{"raw_rio0", "wire=setup,destid=0x200"};
  uint16_t id_ = 0;
};

TEST_F(NetSetup, AQueueThatStaysGetsItsRing) {
  configure(1);
  set_up_rx(0);
  ASSERT_EQ(rte_eth_tx_queue_setup(id_, 0, 64, -1, nullptr), 0);
  configure(2);
  EXPECT_EQ(rte_eth_dev_start(id_), -EINVAL) << "queue 1 is not set up";
  set_up_rx(1);
  ASSERT_EQ(rte_eth_dev_start(id_), 0);
  {
    rte_mbuf* got = nullptr;
    RawPeer peer("raw_rio0", kPort, [&] { rte_eth_tx_burst(id_, 0, nullptr, 0); });
    peer_sends(peer);
    for (uint32_t i = 0; i < kQuietTurns; ++i) {
      ASSERT_EQ(poll(1, &got), 0);
    }
    ASSERT_EQ(poll(0, &got), 1);
    rte_pktmbuf_free(got);
    // What queue 0 has no mbufs for keeps nothing from queue 1.
    Hoard hoard(pool_, 0);
    peer_sends(peer);
    for (uint32_t i = 0; i < kQuietTurns; ++i) {
      ASSERT_EQ(poll(1, &got), 0);
    }
    rte_eth_stats stats{};
    ASSERT_EQ(rte_eth_stats_get(id_, &stats), 0);
    EXPECT_EQ(stats.imissed, 1u);
    hoard.give(1);
    peer_sends(peer);
    for (uint32_t i = 0; i < kQuietTurns; ++i) {
      ASSERT_EQ(poll(1, &got), 0);
    }
    ASSERT_EQ(poll(0, &got), 1);
    rte_pktmbuf_free(got);
  }
  ASSERT_EQ(rte_eth_dev_stop(id_), 0);
}

TEST_F(NetSetup, QueuesThatAreNotSetUpAreAskedInVain) {
  const rte_eth_conf conf{};
  ASSERT_EQ(rte_eth_dev_get_port_by_name("net_rio0", &id_), 0);
  ASSERT_EQ(rte_eth_dev_configure(id_, 1, 1, &conf), 0);
  rte_eth_burst_mode mode{};
  rte_power_monitor_cond condition{};
  EXPECT_EQ(rte_eth_rx_burst_mode_get(id_, 0, &mode), -EINVAL);
  EXPECT_EQ(rte_eth_tx_burst_mode_get(id_, 0, &mode), -EINVAL);
  EXPECT_EQ(rte_eth_get_monitor_addr(id_, 0, &condition), -EINVAL);
  EXPECT_EQ(rte_eth_tx_done_cleanup(id_, 0, 0), -EINVAL);
}

TEST_F(NetSetup, AnMtuThatQueuesWereNotSetUpForIsRefused) {
  const Pool small{2048};
  rte_eth_conf conf{};
  ASSERT_EQ(rte_eth_dev_get_port_by_name("net_rio0", &id_), 0);
  ASSERT_EQ(rte_eth_dev_configure(id_, 1, 1, &conf), 0);
  ASSERT_EQ(rte_eth_rx_queue_setup(id_, 0, 64, -1, nullptr, small.get()), 0);
  ASSERT_EQ(rte_eth_tx_queue_setup(id_, 0, 64, -1, nullptr), 0);
  ASSERT_EQ(rte_eth_dev_start(id_), 0);
  ASSERT_EQ(rte_eth_dev_stop(id_), 0);
  conf.rxmode.mtu = 4000;
  ASSERT_EQ(rte_eth_dev_configure(id_, 1, 1, &conf), 0);
  EXPECT_EQ(rte_eth_dev_start(id_), -EINVAL) << "its mbufs are of 2048 bytes";
}

TEST_F(NetSetup, CountsNeverGoBack) {
  configure(1);
  const auto set_up_and_start = [&] {
    set_up_rx(0);
    ASSERT_EQ(rte_eth_tx_queue_setup(id_, 0, 64, -1, nullptr), 0);
    ASSERT_EQ(rte_eth_dev_start(id_), 0);
  };
  const auto receive = [&](RawPeer& peer, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      rte_mbuf* got = nullptr;
      peer_sends(peer);
      for (uint32_t turn = 0; turn < kTurns && poll(0, &got) == 0; ++turn) {
      }
      rte_pktmbuf_free(got);
    }
    rte_eth_stats stats{};
    EXPECT_EQ(rte_eth_stats_get(id_, &stats), 0);
    EXPECT_EQ(stats.q_ipackets[0], stats.ipackets);
    return stats.ipackets;
  };
  set_up_and_start();
  {
    RawPeer peer("raw_rio0", kPort, [&] { rte_eth_tx_burst(id_, 0, nullptr, 0); });
    ASSERT_EQ(receive(peer, 3), 3u);
    ASSERT_EQ(rte_eth_stats_reset(id_), 0);
    ASSERT_EQ(receive(peer, 1), 1u);
  }
  ASSERT_EQ(rte_eth_dev_stop(id_), 0);
  set_up_and_start();
  {
    RawPeer peer("raw_rio0", kPort, [&] { rte_eth_tx_burst(id_, 0, nullptr, 0); });
    uint64_t before = 1;
    for (uint32_t i = 0; i < 6; ++i) {
      const uint64_t now = receive(peer, 1);
      EXPECT_EQ(now, before + 1) << i;
      before = now;
    }
  }
  ASSERT_EQ(rte_eth_dev_stop(id_), 0);
}

TEST_F(NetSetup, AStoppedQueueGivesNothingThatOthersReceivedForIt) {
  configure(2);
  set_up_rx(0);
  set_up_rx(1);
  ASSERT_EQ(rte_eth_tx_queue_setup(id_, 0, 64, -1, nullptr), 0);
  ASSERT_EQ(rte_eth_dev_start(id_), 0);
  {
    rte_mbuf* got = nullptr;
    RawPeer peer("raw_rio0", kPort, [&] { rte_eth_tx_burst(id_, 0, nullptr, 0); });
    peer_sends(peer);
    for (uint32_t i = 0; i < kQuietTurns; ++i) {
      ASSERT_EQ(poll(1, &got), 0);
    }
    ASSERT_EQ(rte_eth_dev_rx_queue_stop(id_, 0), 0);
    EXPECT_EQ(poll(0, &got), 0);
    rte_pktmbuf_free(got);
    got = nullptr;
    ASSERT_EQ(rte_eth_dev_rx_queue_start(id_, 0), 0);
    EXPECT_EQ(poll(0, &got), 1);
    rte_pktmbuf_free(got);
  }
  ASSERT_EQ(rte_eth_dev_stop(id_), 0);
}

TEST_F(NetSetup, QueuesThatAreToStartLaterDo) {
  configure(1);
  rte_eth_rxconf rx{};
  rte_eth_txconf tx{};
  rx.rx_deferred_start = 1;
  tx.tx_deferred_start = 1;
  ASSERT_EQ(rte_eth_rx_queue_setup(id_, 0, 64, -1, &rx, pool_.get()), 0);
  ASSERT_EQ(rte_eth_tx_queue_setup(id_, 0, 64, -1, &tx), 0);
  ASSERT_EQ(rte_eth_dev_start(id_), 0);
  rte_eth_rxq_info info{};
  rte_eth_txq_info tx_info{};
  ASSERT_EQ(rte_eth_rx_queue_info_get(id_, 0, &info), 0);
  EXPECT_EQ(info.queue_state, RTE_ETH_QUEUE_STATE_STOPPED);
  EXPECT_EQ(info.conf.rx_deferred_start, 1);
  ASSERT_EQ(rte_eth_tx_queue_info_get(id_, 0, &tx_info), 0);
  EXPECT_EQ(tx_info.queue_state, RTE_ETH_QUEUE_STATE_STOPPED);
  EXPECT_EQ(tx_info.conf.tx_deferred_start, 1);
  {
    rte_mbuf* got = nullptr;
    RawPeer peer("raw_rio0", kPort, [&] { rte_eth_tx_burst(id_, 0, nullptr, 0); });
    peer_sends(peer);
    for (uint32_t i = 0; i < kQuietTurns; ++i) {
      ASSERT_EQ(poll(0, &got), 0);
    }
    ASSERT_EQ(rte_eth_dev_rx_queue_start(id_, 0), 0);
    EXPECT_EQ(poll(0, &got), 1);
    rte_pktmbuf_free(got);
  }
  ASSERT_EQ(rte_eth_dev_stop(id_), 0);
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net-setup",
      {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
