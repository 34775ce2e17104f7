// Ports whose queues are set up partly, late, again, or not at all.
#include <gtest/gtest.h>
#include <rte_power_intrinsics.h>

#include "tests/eal/eal_process.hpp"
#include "tests/eal/net_peer.hpp"

namespace rio::test {
namespace {

/// A port whose queues are set up one by one.
class NetSetup : public testing::Test {
 protected:
  void configure(uint16_t rx_queues, uint32_t mtu = 0) {
    rte_eth_conf conf{};
    conf.rxmode.mtu = mtu;
    ASSERT_EQ(rte_eth_dev_get_port_by_name("net_rio0", &id_), 0);
    ASSERT_EQ(rte_eth_dev_configure(id_, rx_queues, 1, &conf), 0);
  }
  void set_up_rx(uint16_t queue) {
    ASSERT_EQ(rte_eth_rx_queue_setup(id_, queue, 64, -1, nullptr, pool_.get()), 0);
  }
  void set_up_tx() { ASSERT_EQ(rte_eth_tx_queue_setup(id_, 0, 64, -1, nullptr), 0); }
  void start() { ASSERT_EQ(rte_eth_dev_start(id_), 0); }
  void stop() { ASSERT_EQ(rte_eth_dev_stop(id_), 0); }
  /// Polls once. @return whether a frame came.
  [[nodiscard]] bool receives(uint16_t queue) const {
    rte_mbuf* got = nullptr;
    const bool came = rte_eth_rx_burst(id_, queue, &got, 1) == 1;
    rte_pktmbuf_free(got);
    return came;
  }
  void expect_nothing(uint16_t queue) const {
    for (uint32_t i = 0; i < kQuietTurns; ++i) {
      ASSERT_FALSE(receives(queue));
    }
  }
  [[nodiscard]] RawPeer peer() const {
    return {"raw_rio0", kPort, [id = id_] { rte_eth_tx_burst(id, 0, nullptr, 0); }};
  }
  /// Sends a frame without IP, which is for queue 0.
  static void peer_sends(RawPeer& peer) {
    ASSERT_EQ(peer.send(frame_bytes(address(kPort), address(kPeer), 64), 0), 0);
  }

  Pool pool_{4096, 511};
  Device net_{"net_rio0", "wire=setup,destid=0x100,peers=0x200"};
  Device raw_{"raw_rio0", "wire=setup,destid=0x200"};
  uint16_t id_ = 0;
};

TEST_F(NetSetup, AQueueThatStaysSetUpGetsItsRing) {
  configure(1);
  set_up_rx(0);
  set_up_tx();
  configure(2);
  EXPECT_EQ(rte_eth_dev_start(id_), -EINVAL) << "queue 1 is not set up";
  set_up_rx(1);
  start();
  {
    RawPeer sender = peer();
    peer_sends(sender);
    expect_nothing(1);
    ASSERT_TRUE(receives(0));
    // Queue 0's lack of mbufs must not block queue 1.
    Hoard hoard(pool_, 0);
    peer_sends(sender);
    expect_nothing(1);
    rte_eth_stats stats{};
    ASSERT_EQ(rte_eth_stats_get(id_, &stats), 0);
    EXPECT_EQ(stats.imissed, 1u);
    hoard.give(1);
    peer_sends(sender);
    expect_nothing(1);
    ASSERT_TRUE(receives(0));
  }
  stop();
}

TEST_F(NetSetup, QueriesOfMissingQueuesFail) {
  configure(1);
  rte_eth_burst_mode mode{};
  rte_power_monitor_cond condition{};
  EXPECT_EQ(rte_eth_rx_burst_mode_get(id_, 0, &mode), -EINVAL);
  EXPECT_EQ(rte_eth_tx_burst_mode_get(id_, 0, &mode), -EINVAL);
  EXPECT_EQ(rte_eth_get_monitor_addr(id_, 0, &condition), -EINVAL);
  EXPECT_EQ(rte_eth_tx_done_cleanup(id_, 0, 0), -EINVAL);
}

TEST_F(NetSetup, AnMtuBeyondTheQueuesSetUpIsRefused) {
  const Pool small{2048};
  configure(1);
  ASSERT_EQ(rte_eth_rx_queue_setup(id_, 0, 64, -1, nullptr, small.get()), 0);
  set_up_tx();
  start();
  stop();
  configure(1, 4000);
  EXPECT_EQ(rte_eth_dev_start(id_), -EINVAL) << "its mbufs have 2048 bytes";
}

TEST_F(NetSetup, CountsNeverGoBack) {
  configure(1);
  const auto set_up_and_start = [&] {
    set_up_rx(0);
    set_up_tx();
    start();
  };
  const auto receive = [&](RawPeer& sender, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      peer_sends(sender);
      for (uint32_t turn = 0; turn < kTurns && !receives(0); ++turn) {
      }
    }
    rte_eth_stats stats{};
    EXPECT_EQ(rte_eth_stats_get(id_, &stats), 0);
    EXPECT_EQ(stats.q_ipackets[0], stats.ipackets);
    return stats.ipackets;
  };
  set_up_and_start();
  {
    RawPeer sender = peer();
    ASSERT_EQ(receive(sender, 3), 3u);
    ASSERT_EQ(rte_eth_stats_reset(id_), 0);
    ASSERT_EQ(receive(sender, 1), 1u);
  }
  stop();
  set_up_and_start();
  {
    RawPeer sender = peer();
    uint64_t before = 1;
    for (uint32_t i = 0; i < 6; ++i) {
      const uint64_t now = receive(sender, 1);
      EXPECT_EQ(now, before + 1) << i;
      before = now;
    }
  }
  stop();
}

TEST_F(NetSetup, AStoppedQueueReturnsNoFramesReceivedByOthers) {
  configure(2);
  set_up_rx(0);
  set_up_rx(1);
  set_up_tx();
  start();
  {
    RawPeer sender = peer();
    peer_sends(sender);
    expect_nothing(1);
    ASSERT_EQ(rte_eth_dev_rx_queue_stop(id_, 0), 0);
    EXPECT_FALSE(receives(0));
    ASSERT_EQ(rte_eth_dev_rx_queue_start(id_, 0), 0);
    EXPECT_TRUE(receives(0));
  }
  stop();
}

TEST_F(NetSetup, DeferredQueuesStartLater) {
  configure(1);
  rte_eth_rxconf rx{};
  rte_eth_txconf tx{};
  rx.rx_deferred_start = 1;
  tx.tx_deferred_start = 1;
  ASSERT_EQ(rte_eth_rx_queue_setup(id_, 0, 64, -1, &rx, pool_.get()), 0);
  ASSERT_EQ(rte_eth_tx_queue_setup(id_, 0, 64, -1, &tx), 0);
  start();
  rte_eth_rxq_info info{};
  rte_eth_txq_info tx_info{};
  ASSERT_EQ(rte_eth_rx_queue_info_get(id_, 0, &info), 0);
  EXPECT_EQ(info.queue_state, RTE_ETH_QUEUE_STATE_STOPPED);
  EXPECT_EQ(info.conf.rx_deferred_start, 1);
  ASSERT_EQ(rte_eth_tx_queue_info_get(id_, 0, &tx_info), 0);
  EXPECT_EQ(tx_info.queue_state, RTE_ETH_QUEUE_STATE_STOPPED);
  EXPECT_EQ(tx_info.conf.tx_deferred_start, 1);
  {
    RawPeer sender = peer();
    peer_sends(sender);
    expect_nothing(0);
    ASSERT_EQ(rte_eth_dev_rx_queue_start(id_, 0), 0);
    EXPECT_TRUE(receives(0));
  }
  stop();
}

}  // namespace
}  // namespace rio::test

int main(int argc, char** argv) {
  return rio::test::run_tests_in_eal(
      argc, argv, "net-setup",
      {"-d", "librte_raw_rio.so", "-d", "librte_net_rio.so", "--no-telemetry"});
}
